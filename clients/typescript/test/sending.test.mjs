// How items are sent, with answers that the tests make up.

import assert from "node:assert/strict";
import { test } from "node:test";
import { rolltop, RolltopError } from "rolltop";
import { distribution } from "rolltop/distribution";

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
const receipt = (init) => {
  const { increments, events } = JSON.parse(init.body);
  return Response.json({ accepted: (increments ?? events).length, duplicates: 0, rejected: [] });
};
const problem = (status, code, headers = {}) =>
  Response.json(
    { type: `/problems/${code}`, title: code, status, detail: code, code, request_id: "r-1" },
    { status, headers },
  );

/** A client whose requests are answered by these functions in turn, the last one again and again. */
function client(answers, options = {}) {
  const requests = [];
  const fetch = async (url, init) => {
    requests.push({
      url,
      ...init,
      at: performance.now(),
      items: init.body && Object.values(JSON.parse(init.body))[0],
    });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    return answer(init);
  };
  return { requests, service: rolltop({ url: "http://service/base/", fetch, batchMillis: 20, ...options }) };
}

test("a batch is repeated with the same ids until it is answered", async () => {
  const answers = [
    () => Promise.reject(new TypeError("fetch failed")),
    () => problem(503, "overloaded"),
    () => new Response("<html>", { status: 502 }),
    () => problem(429, "rate_limited"),
    () => new Response("<html>welcome to our hotel</html>"),
    receipt,
  ];
  const { requests, service } = client(answers, { key: "rt_key" });
  service.board("b").add("a");
  service.board("b").add("b", 2, { id: "own" });
  await service.flush();
  assert.equal(requests.length, 6);
  assert.equal(new Set(requests.map((request) => request.body)).size, 1);
  assert.equal(requests[0].items[1].id, "own");
  assert.equal(requests[0].url, "http://service/base/v1/boards/b/increments");
  assert.equal(requests[0].headers.authorization, "Bearer rt_key");
  assert.deepEqual(service.counts, { accepted: 2, duplicates: 0, rejected: 0, failed: 0, unknown: 0, dropped: 0 });
});

test("Retry-After is waited for", async () => {
  const { requests, service } = client([() => problem(503, "overloaded", { "retry-after": "1" }), receipt]);
  service.board("b").add("a");
  await service.flush();
  const waited = requests[1].at - requests[0].at;
  assert.ok(waited >= 990 && waited < 3000, `${waited}`);
});

test("a request without an answer is ended and repeated", async () => {
  const never = (init) =>
    new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const { requests, service } = client([never, receipt], { timeout: 50 });
  service.board("b").add("a");
  await service.flush();
  assert.equal(requests.length, 2);
  const slow = client([never], { timeout: 20, retries: 0 });
  await assert.rejects(slow.service.board("b").top(), { code: "timeout", status: 0 });
});

test("what is refused for good is reported once", async () => {
  const errors = [];
  const { requests, service } = client([() => problem(403, "forbidden")], {
    onError: (...args) => errors.push(args),
  });
  service.event("like", { post: 1 }, { id: "e-1" });
  await service.flush();
  assert.equal(requests.length, 1);
  const [[error, items]] = errors;
  assert.ok(error instanceof RolltopError);
  assert.deepEqual(
    [error.status, error.code, error.requestId, error.problem.code],
    [403, "forbidden", "r-1", "forbidden"],
  );
  assert.deepEqual(items, [{ event: { type: "like", fields: { post: 1 }, id: "e-1" } }]);
});

test("giveUpAfter ends the attempts", async () => {
  const errors = [];
  const { requests, service } = client([() => problem(503, "overloaded")], {
    giveUpAfter: 300,
    onError: (error, items) => errors.push([error.code, items.length]),
  });
  service.board("b").add("a");
  await service.flush();
  assert.deepEqual(errors, [["overloaded", 1]]);
  assert.ok(requests.length >= 2);
});

test("giveUpAfter includes the time of an attempt", async () => {
  const never = (init) =>
    new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const { requests, service } = client([never], { timeout: 60, giveUpAfter: 40, onError: () => {} });
  service.board("b").add("a");
  await service.flush();
  assert.deepEqual([requests.length, service.counts.failed], [1, 1]);
});

test("what may have counted is not sent again after unknownFor, and the rest is", async () => {
  const lost = () => Promise.reject(new TypeError("fetch failed"));
  const refused = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }));
  const errors = [];
  const options = { unknownFor: 200, onError: (error, items) => errors.push([error.code, items.length]) };
  for (const answer of [lost, () => problem(503, "store_timeout"), () => new Response("", { status: 504 })]) {
    const { requests, service } = client([answer], options);
    service.board("b").add("a");
    const began = performance.now();
    await service.flush();
    assert.ok(performance.now() - began >= 200);
    assert.ok(requests.every(({ at }) => at - requests[0].at <= 250));
    assert.deepEqual(errors.splice(0), [["unknown", 1]]);
    assert.equal(service.counts.failed, 1);
  }
  // These say that nothing was counted, so they are repeated for as long as it takes.
  for (const answer of [refused, () => problem(503, "board_frozen"), () => problem(429, "rate_limited")]) {
    const { requests, service } = client([answer, answer, answer, answer, receipt], { ...options, unknownFor: 50 });
    service.board("b").add("a");
    await service.flush();
    assert.equal(requests.length, 5);
    assert.deepEqual([service.counts.accepted, errors.length], [1, 0]);
  }
});

test("a batch that is too large is divided, and keeps its order", async () => {
  const limited = (init) => (JSON.parse(init.body).increments.length > 3 ? problem(413, "too_large") : receipt(init));
  const { requests, service } = client([limited]);
  for (let i = 0; i < 10; i++) service.board("b").add(`s-${i}`);
  await service.flush();
  const sent = requests.filter((request) => request.items.length <= 3).flatMap((request) => request.items);
  assert.deepEqual(
    sent.map((item) => item.subject),
    Array.from({ length: 10 }, (_, i) => `s-${i}`),
  );
  assert.equal(service.counts.accepted, 10);
});

test("items are sent when there are enough of them, or after a time", async () => {
  const { requests, service } = client([receipt], { batchItems: 3, batchMillis: 60 });
  const board = service.board("b");
  for (let i = 0; i < 4; i++) board.add("a");
  await pause(20);
  assert.deepEqual(
    requests.map((request) => request.items.length),
    [3],
  );
  await pause(100);
  assert.deepEqual(
    requests.map((request) => request.items.length),
    [3, 1],
  );
  assert.throws(() => rolltop({ url: "http://service", batchItems: 1001 }), RangeError);
});

test("one request of a board is in progress, and add waits while the queue is full", async () => {
  let running = 0;
  const slow = async (init) => {
    assert.equal(++running, 1);
    await pause(10);
    running--;
    return receipt(init);
  };
  const { service } = client([slow], { batchItems: 5, maxItems: 10 });
  const board = service.board("b");
  let waited = 0;
  for (let i = 0; i < 40; i++) {
    const before = performance.now();
    assert.equal(await board.add(`${i}`), true);
    if (performance.now() - before > 5) waited++;
  }
  await service.flush();
  assert.ok(waited >= 3, `${waited}`);
  assert.equal(service.counts.accepted, 40);
});

test("full: drop", async () => {
  const { service } = client([receipt], { maxItems: 2, full: "drop" });
  const board = service.board("b");
  assert.deepEqual(await Promise.all([board.add("a"), board.add("b"), board.add("c")]), [true, true, false]);
  await service.flush();
  assert.deepEqual([service.counts.accepted, service.counts.dropped], [2, 1]);
});

test("coalesced items wait as one, and not those of other keys", async () => {
  const { requests, service } = client([receipt], { maxItems: 4, full: "drop" });
  const board = service.board("b", { coalesce: true });
  for (let i = 0; i < 1000; i++) board.add("a");
  board.add("a", "0.000000001", { by: "x" });
  board.add("a", -2, { by: "x" });
  board.add("a", 1e21);
  await service.flush();
  const items = requests[0].items.map(({ id, ...item }) => (assert.equal(typeof id, "string"), item));
  assert.match(requests[0].body, /"amount":-1999999999e-9,/);
  assert.deepEqual(items, [
    { subject: "a", amount: 1000 },
    { subject: "a", by: "x", amount: -1.999999999 },
    { subject: "a", amount: 1e21 },
  ]);
  board.add("a");
  await service.flush();
  assert.notEqual(requests[1].items[0].id, requests[0].items[0].id);
});

test("close sends what is left, and ends after its timeout", async () => {
  const { requests, service } = client([receipt], { batchMillis: 10_000 });
  const board = service.board("b");
  board.add("a");
  await service.close();
  assert.equal(requests.length, 1);
  assert.throws(() => board.add("b"), /closed/);

  const errors = [];
  const dead = client([() => problem(503, "overloaded")], {
    batchItems: 1,
    onError: (error, items) => errors.push([error.code, items.length]),
  });
  for (const subject of ["a", "b", "c"]) dead.service.board("b").add(subject);
  await dead.service.close({ timeout: 50 });
  assert.equal(dead.service.counts.failed, 3);
  assert.ok(errors.every(([code]) => code === "closed"));
});

test("a callback that throws does not end the sending", async (t) => {
  t.mock.method(console, "error", () => {});
  const answers = [() => problem(403, "forbidden"), receipt];
  const { service } = client(answers, {
    onError: () => {
      throw new Error("a mistake of the page");
    },
  });
  service.board("b").add("a");
  await service.flush();
  service.board("b").add("b");
  await service.flush();
  assert.deepEqual([service.counts.failed, service.counts.accepted], [1, 1]);
  assert.equal(console.error.mock.callCount(), 1);
});

test("ids exist on pages without randomUUID", async (t) => {
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  t.after(() => delete crypto.randomUUID);
  const { requests, service } = client([receipt]);
  service.board("b").add("a");
  await service.flush();
  assert.match(requests[0].items[0].id, /^\d+-\d+-\d+-\d+$/);
});

test("a page that is hidden sends what is queued, up to 64 KiB, with the ids of later attempts", async (t) => {
  const page = new EventTarget();
  globalThis.addEventListener = page.addEventListener.bind(page);
  const document = (globalThis.document = new EventTarget());
  t.after(() => ["addEventListener", "document"].forEach((name) => delete globalThis[name]));
  const { requests, service } = client([receipt], { batchMillis: 10_000 });
  const board = service.board("b", { coalesce: true });
  board.add("a", 2);
  document.visibilityState = "hidden";
  document.dispatchEvent(new Event("visibilitychange"));
  page.dispatchEvent(new Event("pagehide"));
  board.add("a", 3);
  await pause(5);
  assert.equal(requests.length, 1);
  assert.equal(requests[0].keepalive, true);
  await service.flush();
  // What was sent before is sent on its own, because it may be too late for it.
  assert.deepEqual(
    requests.map(({ items }) => items.map((item) => item.amount)),
    [[2], [2], [3]],
  );
  assert.equal(requests[1].items[0].id, requests[0].items[0].id);

  for (let i = 0; i < 400; i++) board.add("é".repeat(200) + i);
  page.dispatchEvent(new Event("pagehide"));
  await pause(5);
  const bytes = Buffer.byteLength(requests[3].body);
  assert.ok(bytes <= 65_536 && bytes > 64_000, `${bytes}`);
  await service.close();
  page.dispatchEvent(new Event("pagehide"));
});

test("what was sent from a hidden page that slept is not sent again too late, what is added later is", async (t) => {
  const page = new EventTarget();
  globalThis.addEventListener = page.addEventListener.bind(page);
  t.after(() => delete globalThis.addEventListener);
  const errors = [];
  const { requests, service } = client([receipt], {
    batchMillis: 10_000,
    unknownFor: 100,
    onError: (error, items) => errors.push([error.code, items.map((item) => item.increment.subject)]),
  });
  const board = service.board("b");
  board.add("a");
  page.dispatchEvent(new Event("pagehide"));
  await pause(150);
  board.add("b");
  await service.close();
  assert.deepEqual(errors, [["unknown", ["a"]]]);
  assert.deepEqual(
    requests.map(({ items }) => items.map((item) => item.subject)),
    [["a"], ["b"]],
  );
});

test("what could never be sent, or would count at another time, is refused at once", () => {
  for (const url of ["localhost:7401", "127.0.0.1:7401", "", "http://"]) assert.throws(() => rolltop({ url }), TypeError);
  const { service } = client([() => Response.json({})]);
  assert.throws(() => service.board("b").add("a", 1, { at: new Date(Number.NaN) }), TypeError);
  assert.throws(() => service.board("b").add("a", Number.NaN), TypeError);
});

test("a name that an address cannot carry is refused before anything is sent", async () => {
  const { requests, service } = client([() => Response.json({})]);
  const error = { name: "TypeError", message: /^no name in a path: / };
  const board = service.board("b");
  for (const name of ["", ".", ".."]) {
    assert.throws(() => service.board(name), error);
    for (const call of ["subject", "neighbors", "count", "remove"]) await assert.rejects(board[call](name), error);
    await assert.rejects(service.call("DELETE", `/v1/boards/b/keys/${name}`), error);
  }
  for (const name of ["%2e", "%2E%2E", ".%2e?x=1", "..?x=1", "?x=1", "/x"]) {
    await assert.rejects(service.call("GET", `/v1/boards/b/subjects/${name}`), error);
  }
  // Half of a surrogate pair, which would become another character.
  const half = "a\ud800";
  await assert.rejects(async () => board.subject(half), URIError);
  await assert.rejects(async () => board.top({ by: half }), URIError);
  // It would become a part of the host.
  await assert.rejects(service.call("GET", ".evil.example/v1/boards"), error);
  assert.equal(requests.length, 0);
  // These only look like those above.
  for (const name of ["...", ".a", "a..", "%2E%2E", "/", "a//b", "?"]) {
    await board.subject(name);
    assert.equal(decodeURIComponent(new URL(requests.at(-1).url).pathname), `/base/v1/boards/b/subjects/${name}`);
  }
});

test("reads are repeated, writes by call are not", async () => {
  const { requests, service } = client([() => problem(503, "overloaded")], { retries: 2 });
  await assert.rejects(service.board("b").top(), { status: 503 });
  assert.equal(requests.length, 3);
  await assert.rejects(service.call("POST", "/v1/rollover"), { status: 503 });
  assert.equal(requests.length, 4);
});

test("a signal ends a request, and what waits for the next attempt", async () => {
  const { service } = client([() => problem(503, "overloaded", { "retry-after": "60" })]);
  const reason = new Error("enough");
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 30);
  await assert.rejects(service.board("b").top({ signal: controller.signal }), reason);
  await assert.rejects(service.board("b").top({ signal: controller.signal }), reason);
});

test("a token may come from a function", async () => {
  let count = 0;
  const { requests, service } = client([() => Response.json({ items: [], next: null })], {
    token: async () => `t-${++count}`,
  });
  await service.boards();
  await service.boards();
  assert.deepEqual(
    requests.map((request) => request.headers.authorization),
    ["Bearer t-1", "Bearer t-2"],
  );
});

test("exact decimals", async () => {
  const knows = JSON.parse("1", (_, __, context) => context?.source) === "1";
  if (!knows) return void assert.throws(() => rolltop({ url: "http://service", decimals: "string" }), /newer engine/);
  const text = '{"items":[{"rank":1,"subject":"a","score":9007199254740993.10}],"total":1,"next":null}';
  const { service } = client([() => new Response(text)], { decimals: "string" });
  const page = await service.board("b").top();
  assert.deepEqual(page.items, [{ rank: 1, subject: "a", score: "9007199254740993.10" }]);
  const ranges =
    '{"window":{"from":"2026-01-01T11:00:00Z","slots":24},"percentiles":[{"percentile":50.0,"score":2.50}],' +
    '"ranges":[{"from":null,"to":0.10,"subjects":0},{"from":0.10,"to":null,"subjects":7}]}';
  const other = client([() => new Response(ranges)], { decimals: "string" });
  const found = await distribution(other.service.board("b"), { percentiles: [50], scores: ["0.10"] });
  assert.equal(found.window.from, "2026-01-01T11:00:00Z");
  assert.deepEqual(found.percentiles, [{ percentile: 50, score: "2.50" }]);
  assert.deepEqual(found.ranges, [{ from: null, to: "0.10", subjects: 0 }, { from: "0.10", to: null, subjects: 7 }]);
});

test("lines of a final period whose subjects were removed have none", async () => {
  const items = [["a", 3], [null, 2], [null, 1]].map(([subject, score], at) => ({ rank: at + 1, subject, score }));
  const lines = [...items, { complete: true, next: null, problem: null }].map((line) => `${JSON.stringify(line)}\n`);
  const { service } = client([() => Response.json({ items, next: null }), () => new Response(lines.join(""))]);
  const board = service.board("b");
  assert.deepEqual((await board.top({ period: "2026-10" })).items, items);
  const exported = [];
  for await (const line of board.export({ period: "2026-10" })) exported.push(line);
  assert.deepEqual(exported, items);
});

test("types of events that no board counts are counted, and logged once", async (t) => {
  const log = t.mock.method(console, "error", () => {});
  const unknown = () => Response.json({ accepted: 0, duplicates: 0, rejected: [], unknown: 2, unknown_types: { dislike: 2 } });
  const { service } = client([unknown]);
  for (let i = 0; i < 2; i++) {
    service.event("dislike", {});
    service.event("dislike", {});
    await service.flush();
  }
  assert.deepEqual([service.counts.unknown, log.mock.callCount()], [4, 1]);
});

test("after one item that is too large, batches grow again", async () => {
  const limited = (init) => (init.body.includes("large") ? problem(413, "too_large") : receipt(init));
  const { requests, service } = client([limited], { onError: () => {} });
  const board = service.board("b");
  for (let i = 0; i < 64; i++) board.add(i === 0 ? "large" : `s-${i}`);
  await service.flush();
  const sent = requests.map((request) => request.items.length);
  assert.deepEqual(sent, [64, 32, 16, 8, 4, 2, 1, 1, 2, 4, 8, 16, 32]);
  assert.deepEqual([service.counts.accepted, service.counts.failed], [63, 1]);
});
