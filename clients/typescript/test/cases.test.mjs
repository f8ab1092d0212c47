// The table of cases that all clients run: `clients/cases.json`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { rolltop } from "rolltop";

const { calls, answers } = JSON.parse(readFileSync(process.env.ROLLTOP_TEST_CASES, "utf8"));
const NEVER = 60_000;

/** Returns an argument as a program gives it. */
function given(value) {
  if (typeof value !== "object" || Array.isArray(value)) return value;
  if ("float" in value) return Number(value.float);
  if ("integer" in value) return BigInt(value.integer);
  if ("decimal" in value) return value.decimal;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, given(member)]));
}

/** Returns what was sent, with the texts of numbers, and without an id that was not given. */
function compared(item, expected) {
  if (typeof item !== "object") return String(item);
  const members = Object.entries(item).filter(([name]) => name !== "id" || "id" in expected);
  return Object.fromEntries(members.map(([name, value]) => [name, compared(value, {})]));
}

/** Answers a request as the table says. */
function reply(script, response, items) {
  const rejected = (script.rejected ?? []).map((one) => ({ detail: "", ...one }));
  const receipt = { accepted: items.length - rejected.length, duplicates: 0, rejected };
  if (script === "break") return response.destroy();
  if (script === "cut") {
    const text = JSON.stringify(receipt);
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
    return response.write(text.slice(0, -5), () => response.destroy());
  }
  const { status = 500, code, page, retry_after } = script;
  const type = page ? "text/html" : "application/json";
  response.writeHead(status, { "content-type": type, ...(retry_after && { "retry-after": retry_after }) });
  const problem = { status, code, title: code, detail: "a test" };
  response.end(page ? "<html>" : JSON.stringify(status === 200 ? (script.body ?? receipt) : problem));
}

/** Starts a server that gives these answers in turn. Returns its address and the items of each request. */
async function serve(t, scripts) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()));
    const [items] = Object.values(body);
    requests.push(items);
    reply(scripts[requests.length - 1] ?? {}, response, items);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, url: `http://127.0.0.1:${server.address().port}` };
}

for (const { add, event, sends, error } of calls) {
  test(JSON.stringify(add ?? event), async (t) => {
    const { requests, url } = await serve(t, [{ status: 200 }]);
    const service = rolltop({ url, batchMillis: NEVER });
    const { subject, amount, type, fields, ...options } = given(add ?? event);
    const call = () => (add ? service.board("b").add(subject, amount, options) : service.event(type, fields, options));
    if (error) assert.throws(call, { name: "TypeError", message: new RegExp(error) });
    else assert.equal(await call(), true);
    await service.close();
    if (error) return assert.deepEqual(requests, []);
    const [[item]] = requests;
    assert.ok(item.id);
    assert.deepEqual(compared(item, sends), sends);
  });
}

for (const { name, subjects, batch, give_up, waits = 0, ...expected } of answers) {
  for (const [ends, isTold] of [["flush", true], ["close", false], ["flush", false]]) {
    if (ends === "flush" && !isTold && !expected.fails) continue;
    test(`${name}: ${ends}, ${isTold ? "told" : "not told"}`, { timeout: 60_000 }, async (t) => {
      t.mock.method(console, "error", () => {});
      const { requests, url } = await serve(t, expected.answers);
      const told = [];
      const reports = {
        onRejected: (item, code) => told.push([item.increment.subject, code]),
        onError: (error, items) => told.push(...items.map((item) => [item.increment.subject, error.code])),
      };
      const giveUpAfter = give_up === undefined ? undefined : give_up * 1000;
      const settings = { batchMillis: NEVER, batchItems: batch, giveUpAfter };
      const service = rolltop({ url, ...settings, ...(isTold && reports) });
      const began = performance.now();
      for (const subject of subjects) await service.board("b").add(subject);
      const failure = await service[ends]().then(() => undefined, (error) => error.code);
      assert.equal(failure, isTold ? undefined : expected.fails);
      // What was raised is not raised again.
      await service.close();
      assert.ok(performance.now() - began >= waits * 1000 - 5);
      assert.deepEqual(
        requests.map((items) => items.map((item) => item.subject).join("")),
        expected.requests,
      );
      assert.deepEqual(told, isTold ? expected.told : []);
      const ids = new Set(requests.flat().map((item) => `${item.subject} ${item.id}`));
      assert.equal(ids.size, subjects.length);
    });
  }
}
