// Tests of `<rolltop-board>` in pages of another origin than the service.

import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { checkAccessibility, inBrowser, ROOT, setHidden, startService, startSite, until } from "./harness.mjs";

const SCRIPT = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");
const JS = { type: "text/javascript; charset=utf-8", body: SCRIPT };
const CLOCK = "2026-01-02T10:07:00Z";

/** Returns a page with this body and the script. */
const html = (body, script = "/rolltop-board.js") => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>A site</title><script type="module" src="${script}"></script></head>
<body><main><h1>A site</h1>${body}</main></body></html>`;

/** Starts a service, and a site whose pages may use it. `body` gets the address of the service. */
async function startBoth(body, { clock = CLOCK, headers = {}, ...options } = {}) {
  const pages = { "/rolltop-board.js": JS };
  const site = await startSite(pages);
  const service = await startService({ clock, origins: [site.base], ...options });
  pages["/"] = { type: "text/html; charset=utf-8", body: html(body(service.base)), headers };
  return { service, site };
}

/** Returns the lines of a widget as texts, such as `1 post-3 5`. */
const lines = (page, selector = "rolltop-board") =>
  page.evaluate((selector) => {
    const parts = [...document.querySelector(selector).shadowRoot.querySelectorAll("[part~=line]")];
    const text = (line, part) => line.querySelector(`[part=${part}]`).textContent;
    return parts.map((line) => `${text(line, "rank")} ${text(line, "subject")} ${text(line, "score")}`);
  }, selector);

const state = (page, selector = "rolltop-board") => page.locator(selector).getAttribute("data-state");

/** Waits until a widget shows these lines. */
async function showing(page, expected, selector = "rolltop-board") {
  let shown;
  const isShown = async () => JSON.stringify((shown = await lines(page, selector))) === JSON.stringify(expected);
  await until(isShown, "the lines").catch(() => assert.deepEqual(shown, expected));
}

/** Waits until a widget has a state. */
const inState = (page, expected, selector = "rolltop-board") =>
  until(async () => (await state(page, selector)) === expected, `the state ${expected} of ${selector}`);

/** Returns the requests of a page whose address has this text, as a list that grows. */
function requestsOf(page, text) {
  const found = [];
  page.on("request", (request) => request.url().includes(text) && found.push(new URL(request.url())));
  return found;
}

/** Returns the streams that a page has open, as a set that changes. */
function streamsOf(page) {
  const open = new Set();
  page.on("request", (request) => request.url().includes("/v1/stream") && open.add(request));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => open.delete(request));
  return open;
}

/** Returns a handler that forwards requests to a service, without this prefix of the path. */
function forward(service, prefix = "", seen = () => {}) {
  return (request, response) => {
    const target = new URL(request.url.slice(prefix.length), service.base);
    const headers = { ...request.headers, host: target.host };
    const onward = httpRequest(target, { method: request.method, headers, agent: false }, (answer) => {
      seen(answer.statusCode, target);
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  };
}

const board = (attributes) => (base) => `<rolltop-board src="${base}" ${attributes}></rolltop-board>`;

test("lines follow what is counted, in order, with shared ranks", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth(board('board="hot-posts" label="Top posts"'));
  await service.count("hot-posts", { "post-1": 3, "post-2": 5 });
  await page.goto(site.base);
  await showing(page, ["1 post-2 5", "2 post-1 3"]);
  assert.equal(await state(page), "live");
  await page.evaluate(() => {
    window.told = [];
    document.addEventListener("rolltop-change", (event) => window.told.push([event.target.localName, event.detail]));
  });
  await service.count("hot-posts", { "post-1": 1234567, "post-3": 5, "post-4": 1 });
  await showing(page, ["1 post-1 1\u202f234\u202f570", "2 post-3 5", "2 post-2 5", "4 post-4 1"]);
  const told = await page.evaluate(() => window.told);
  const [name, detail] = told.at(-1);
  assert.deepEqual([name, detail.board, detail.total, detail.items[0].score], ["rolltop-board", "hot-posts", 4, 1234570]);
  assert.equal(await page.getByRole("list", { name: "Top posts" }).count(), 1);
  assert.equal(await page.getByText("live", { exact: true }).count(), 1);
  await service.call("DELETE", "/v1/boards/hot-posts/subjects/post-1");
  await showing(page, ["1 post-3 5", "1 post-2 5", "3 post-4 1"]);
}));

test("lines have their tiers as parts, and show them where the page wants it", inBrowser({}, async ({ page }) => {
  const style = "<style>rolltop-board::part(tier-first-class) { color: rgb(1, 2, 3); }</style>";
  const { service, site } = await startBoth((base) => style + board('board="hot-posts"')(base));
  const set = (tiers) => service.call("PUT", "/v1/boards/hot-posts/tiers", { tiers });
  await set([{ name: "first class", top: 50 }, { name: "second", rank: 2 }]);
  await service.count("hot-posts", { a: 9, b: 5, c: 1 });
  await page.goto(site.base);
  await showing(page, ["1 a 9", "2 b 5", "3 c 1"]);
  const read = (what) => page.evaluate((what) => {
    const lines = [...document.querySelector("rolltop-board").shadowRoot.querySelectorAll("[part~=line]")];
    return lines.map((line) => what === "part" ? line.getAttribute("part") : line.querySelector("[part=tier]")?.textContent ?? "-");
  }, what);
  const become = async (what, expected) => {
    let found;
    await until(async () => `${(found = await read(what))}` === `${expected}`, what).catch(() => assert.deepEqual(found, expected));
  };
  await become("part", ["line first tier-first-class", "line tier-first-class", "line"]);
  assert.deepEqual(await read("text"), ["-", "-", "-"]);
  const color = () => page.locator("rolltop-board [part~=line]").first().evaluate((line) => getComputedStyle(line).color);
  assert.equal(await color(), "rgb(1, 2, 3)");
  await page.locator("rolltop-board").evaluate((element) => element.toggleAttribute("tiers"));
  await become("text", ["first class", "first class", "-"]);
  await showing(page, ["1 a 9", "2 b 5", "3 c 1"]);
  await checkAccessibility(page);
  // A tier may change alone, and go.
  await set([{ name: "first class", rank: 1 }]);
  await become("text", ["first class", "-", "-"]);
  await page.locator("rolltop-board").evaluate((element) => element.toggleAttribute("tiers"));
  await become("text", ["-", "-", "-"]);
  await set([]);
  await become("part", ["line first", "line", "line"]);
}));

test("lines show how far they have moved", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth(board('board="climbers"'));
  await service.call("PUT", "/v1/boards/climbers", { metric: "COUNT(24h, like, post_id)", slot: "1h", movement: "1h" });
  await service.count("climbers", { a: 3, b: 2, c: 1 });
  await page.goto(site.base);
  await showing(page, ["1 a 3", "2 b 2", "3 c 1"]);
  const read = () => page.evaluate(() => {
    const lines = [...document.querySelector("rolltop-board").shadowRoot.querySelectorAll("[part~=line]")];
    return lines.map((line) => {
      const move = line.querySelector("[part~=move]");
      return move ? [move.textContent, move.getAttribute("part"), move.getAttribute("aria-label")].join("|") : "none";
    });
  });
  const become = async (expected) => {
    let found;
    await until(async () => `${(found = await read())}` === `${expected}`, "movement").catch(() => assert.deepEqual(found, expected));
  };
  // What the ranks were before the board was defined is not known.
  await become(["none", "none", "none"]);
  await service.setClock("2026-01-02T11:00:00Z");
  await become(["|move|", "|move|", "|move|"]);
  await service.count("climbers", { c: 5, d: 4 });
  await become(["▲2|move up|up 2", "|move|", "▼2|move down|down 2", "▼2|move down|down 2"]);
  assert.equal(await page.getByRole("img", { name: "up 2" }).count(), 1);
  await checkAccessibility(page);
}));

test("scores are exact", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth(board('board="top-sellers"'));
  await service.call("POST", "/v1/boards/top-sellers/increments", { increments: [{ subject: "a", amount: 12.5 }] });
  const body = '{"subject": "b", "amount": 268071406391.07}';
  const headers = { "content-type": "application/json" };
  assert.ok((await fetch(`${service.base}/v1/boards/top-sellers/increments`, { method: "POST", headers, body })).ok);
  await page.goto(site.base);
  await showing(page, ["1 b 268\u202f071\u202f406\u202f391.07", "2 a 12.5"]);
}));

test("lines leave with their slots, until nothing is counted", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth((base) =>
    `<rolltop-board src="${base}" board="hot-posts"><em slot="empty">Nobody yet</em></rolltop-board>`);
  await page.goto(site.base);
  await page.getByText("Nobody yet").waitFor();
  assert.equal(await page.locator("rolltop-board").getAttribute("data-empty"), "");
  await service.count("hot-posts", { "post-1": 3 });
  await service.setClock("2026-01-02T12:07:00Z");
  await service.count("hot-posts", { "post-2": 2 });
  await showing(page, ["1 post-1 3", "2 post-2 2"]);
  assert.ok(!(await page.getByText("Nobody yet").isVisible()));
  await service.setClock("2026-01-03T10:30:00Z");
  await showing(page, ["1 post-2 2"]);
  await service.setClock("2026-01-04T10:30:00Z");
  await page.getByText("Nobody yet").waitFor();
  assert.equal(await state(page), "live");
}));

test("widgets of a page share one connection, which changes once", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth((base) =>
    ["hot-posts", "top-sellers", "hot-posts", "plays-today", "device-logins"]
      .map((name, at) => `<rolltop-board id="w${at}" src="${base}${at % 2 ? "/" : ""}" board="${name}"></rolltop-board>`)
      .join(""));
  const opened = requestsOf(page, "/v1/stream");
  const open = streamsOf(page);
  await page.goto(site.base);
  for (let at = 0; at < 5; at++) await inState(page, "live", `#w${at}`);
  assert.equal(opened.length, 1);
  assert.deepEqual(opened[0].searchParams.getAll("view").sort(),
    ["device-logins,limit=10", "hot-posts,limit=10", "plays-today,limit=10", "top-sellers,limit=10"]);
  assert.equal(open.size, 1);

  // Two more at once, one of which is new: one more connection in place of the first.
  await page.evaluate(() => {
    for (const limit of ["10", "25"]) {
      const added = document.querySelector("#w0").cloneNode();
      added.id = `limit-${limit}`;
      added.setAttribute("limit", limit);
      document.querySelector("main").append(added);
    }
  });
  await inState(page, "live", "#limit-25");
  await inState(page, "live", "#limit-10");
  assert.equal(opened.length, 2);
  assert.equal(open.size, 1);

  // A move within the page, and one of two widgets of a view, change nothing.
  await page.evaluate(async () => {
    document.querySelector("main").prepend(document.querySelector("#w4"));
    document.querySelector("#w0").remove();
    await new Promise((resolve) => setTimeout(resolve, 200));
  });
  assert.equal(opened.length, 2);
  await page.evaluate(() => document.querySelectorAll("rolltop-board").forEach((widget) => widget.remove()));
  await until(() => open.size === 0, "no connection");
  assert.equal(opened.length, 2);
}));

test("many widgets take few connections", inBrowser({}, async ({ page }) => {
  const names = Array.from({ length: 65 }, (_, at) => `board-${at}`);
  const { service, site } = await startBoth((base) =>
    names.map((name) => `<rolltop-board src="${base}" board="${name}"></rolltop-board>`).join(""));
  for (const name of names) {
    await service.call("PUT", `/v1/boards/${name}`, { metric: `COUNT(24h, ${name}, post_id)`, slot: "1h" });
    await service.count(name, { [name]: 1 });
  }
  const opened = requestsOf(page, "/v1/stream");
  await page.goto(site.base);
  for (const name of names) await page.getByText(name, { exact: true }).waitFor();
  assert.equal(await page.locator("[data-state=live]").count(), 60);
  assert.equal(await page.locator("[data-state=polling]").count(), 5);
  assert.deepEqual(opened.map((url) => url.searchParams.getAll("view").length), [20, 20, 20]);
}));

test("a hidden page has no connection", inBrowser({}, async ({ page }) => {
  const service = await startService({ clock: CLOCK });
  let connections = 0;
  const onward = forward(service);
  const site = await startSite({
    "/": html(board('board="hot-posts"')("/")),
    "/rolltop-board.js": JS,
    "*": (request, response) => {
      connections += 1;
      response.on("close", () => (connections -= 1));
      onward(request, response);
    },
  });
  const opened = requestsOf(page, "/v1/");
  await page.goto(site.base);
  await inState(page, "live");
  assert.equal(connections, 1);
  await setHidden(page, true);
  await until(() => connections === 0, "no connection");
  await service.count("hot-posts", { "post-1": 3 });
  // What is changed meanwhile opens none either.
  await page.evaluate(() => document.querySelector("rolltop-board").setAttribute("limit", "25"));
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)));
  assert.equal(opened.length, 1);
  await setHidden(page, false);
  await showing(page, ["1 post-1 3"]);
  assert.equal(await state(page), "live");
  assert.equal(opened.length, 2);
}));

test("a service that starts again is found again, and lines stay meanwhile", inBrowser({}, async ({ page, allow }) => {
  allow(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET/);
  const { service, site } = await startBoth(board('board="hot-posts"'), { args: ["--durability", "always"] });
  await service.count("hot-posts", { "post-1": 3 });
  await page.goto(site.base);
  await showing(page, ["1 post-1 3"]);
  await service.kill();
  await inState(page, "reconnecting");
  assert.deepEqual(await lines(page), ["1 post-1 3"]);
  await page.getByText("reconnecting").waitFor();
  await service.restart();
  await service.count("hot-posts", { "post-1": 1 });
  await showing(page, ["1 post-1 4"]);
  await inState(page, "live");
}));

test("without a service there is a message, and the widget goes on trying", inBrowser({}, async ({ page, allow }) => {
  allow(/ERR_CONNECTION_REFUSED/);
  const { service, site } = await startBoth(board('board="hot-posts"'));
  await service.kill();
  await page.clock.install();
  await page.goto(site.base);
  await page.getByText("Loading…").waitFor();
  await until(async () => (await page.clock.runFor(1_000), (await state(page)) === "error"), "an error");
  const message = `no answer from ${service.base}: does the service run there, and is ${site.base} one of its cors_origins, or is a key missing?`;
  await page.getByText(message).waitFor();
  await service.restart();
  await until(async () => (await page.clock.runFor(1_000), (await state(page)) === "live"), "live");
}));

test("a service that does not allow the page's origin is named", inBrowser({}, async ({ page, allow }) => {
  allow(/CORS policy|ERR_FAILED/);
  const service = await startService();
  const site = await startSite({ "/": html(board('board="hot-posts"')(service.base)), "/rolltop-board.js": JS });
  await page.clock.install();
  await page.goto(site.base);
  await until(async () => (await page.clock.runFor(1_000), (await state(page)) === "error"), "an error");
  await page.getByText(`is ${site.base} one of its cors_origins, or is a key missing?`).waitFor();
}));

for (const [how, refuse] of Object.entries({
  "are refused": (_, response) => response.writeHead(502).end(),
  "never begin": () => {},
  "are kept back": (_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders(),
  "are pages of a proxy": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>Sign in"),
})) {
  test(`where streams ${how}, the ranking is polled`, inBrowser({}, async ({ page, allow }) => {
    allow(/502/);
    const service = await startService({ clock: CLOCK });
    const statuses = [];
    const onward = forward(service, "/prefix", (status, { pathname }) => pathname.endsWith("/rankings") && statuses.push(status));
    let isRefused = true;
    const proxy = (request, response) =>
      isRefused && request.url.startsWith("/prefix/v1/stream") ? refuse(request, response) : onward(request, response);
    const site = await startSite({
      "/": html('<rolltop-board src="/prefix/" board="hot-posts"></rolltop-board>'),
      "/rolltop-board.js": JS,
      "*": proxy,
    });
    const opened = requestsOf(page, "/v1/stream");
    await service.count("hot-posts", { "post-1": 3 });
    await page.clock.install();
    await page.goto(site.base);
    const later = (time) => page.clock.runFor(time);
    await until(async () => (await later(500), (await state(page)) === "polling"), "polling");
    assert.deepEqual(await lines(page), ["1 post-1 3"]);
    // Nothing has changed, so polls get 304.
    // In small steps: a busy service answers later than in a moment of this clock.
    await until(async () => (await later(250), statuses.length >= 3), "further polls");
    assert.deepEqual(statuses.slice(0, 3), [200, 304, 304]);
    await service.count("hot-posts", { "post-1": 1 });
    await until(async () => (await later(250), (await lines(page))[0] === "1 post-1 4"), "the change");
    assert.equal(opened.length, 1);
    // A stream is tried again after minutes.
    isRefused = false;
    // Once it is, the clock stands: ten seconds of it, which pass in a moment here, would be a stream that never begins.
    await until(async () => (await later(1_000), opened.length === 2), "a second stream");
    await inState(page, "live");
    assert.equal(opened.length, 2);
    await service.count("hot-posts", { "post-1": 1 });
    await showing(page, ["1 post-1 5"]);
  }));
}

test("a service that has too much to do is asked again soon", inBrowser({}, async ({ page, allow }) => {
  allow(/503/);
  const service = await startService({ clock: CLOCK });
  let isBusy = true;
  const onward = forward(service);
  const site = await startSite({
    "/": html('<rolltop-board src="/" board="hot-posts"></rolltop-board>'),
    "/rolltop-board.js": JS,
    "/v1/stream": (request, response) => (isBusy ? response.writeHead(503).end() : onward(request, response)),
    "*": onward,
  });
  const opened = requestsOf(page, "/v1/stream");
  await page.clock.install();
  await page.goto(site.base);
  await inState(page, "polling");
  isBusy = false;
  const before = opened.length;
  let waited = 0;
  await until(async () => (await page.clock.runFor(1_000), (waited += 1), opened.length > before), "another stream");
  await inState(page, "live");
  assert.ok(waited < 40, `${waited} seconds`);
}));

test("what a page does wrong is reported, and does not end the stream", inBrowser({}, async ({ page, allow }) => {
  allow(/no names today/);
  const { service, site } = await startBoth(board('board="hot-posts"'));
  const opened = requestsOf(page, "/v1/");
  await page.goto(site.base);
  await inState(page, "live");
  await page.evaluate(() => {
    const widget = document.querySelector("rolltop-board");
    widget.nameOf = (subject) => {
      if (subject === "bad") throw new Error("no names today");
      return subject;
    };
  });
  const reported = page.waitForEvent("pageerror");
  await service.count("hot-posts", { bad: 1 });
  assert.match((await reported).message, /no names today/);
  await showing(page, ["1 bad 1"]);
  await service.call("DELETE", "/v1/boards/hot-posts/subjects/bad");
  await service.count("hot-posts", { good: 1 });
  await showing(page, ["1 good 1"]);
  assert.equal(opened.length, 1);
}));

test("a stream that falls silent is opened again", inBrowser({}, async ({ page }) => {
  const service = await startService({ clock: CLOCK });
  const onward = forward(service);
  let isCut = true;
  const site = await startSite({
    "/": html('<rolltop-board src="/" board="hot-posts"></rolltop-board>'),
    "/rolltop-board.js": JS,
    "/v1/stream": async (request, response) => {
      if (!isCut) return onward(request, response);
      // The beginning of a stream, and then nothing, as if the network were gone.
      const answer = await fetch(service.base + request.url);
      const { value } = await answer.body.getReader().read();
      response.writeHead(200, { "content-type": "text/event-stream" }).write(value);
    },
    "*": onward,
  });
  await page.clock.install();
  await page.goto(site.base);
  await inState(page, "live");
  await service.count("hot-posts", { "post-1": 1 });
  isCut = false;
  await page.clock.runFor(30_000);
  assert.equal(await state(page), "live");
  await page.clock.runFor(15_000);
  await until(async () => (await page.clock.runFor(1_000), (await lines(page)).length === 1), "the change");
}));

test("a problem of the store is over with the next change", inBrowser({}, async ({ page }) => {
  const frame = { window: { from: null, to: null, slots: 1 }, as_of: CLOCK, retiring: 0, total: 1 };
  const item = (score) => ({ rank: 1, subject: "pöst 👍", score });
  const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify({ view: "board,limit=10", [name]: data })}\n\n`;
  let stream;
  const site = await startSite({
    "/": html('<rolltop-board src="/" board="board"></rolltop-board>'),
    "/rolltop-board.js": JS,
    "/v1/stream": (_, response) => (stream = response.writeHead(200, { "content-type": "text/event-stream" })).flushHeaders(),
  });
  await page.goto(site.base);
  await until(() => stream, "the request");
  // In pieces of a byte.
  const send = async (text) => {
    for (const byte of Buffer.from(text)) await new Promise((resolve) => stream.write(Buffer.of(byte), resolve));
  };
  await send(`retry: 2000\n\n${event("page", { ...frame, board: "board", metric: "m", items: [item(1)] })}`);
  await showing(page, ["1 pöst 👍 1"]);
  assert.equal(await state(page), "live");
  await send(event("problem", { status: 503, code: "store_unavailable", detail: "no store" }));
  await inState(page, "reconnecting");
  assert.deepEqual(await lines(page), ["1 pöst 👍 1"]);
  await send(`: heartbeat\n\n${event("change", { ...frame, rows: [{ position: 1, ...item(2) }], gone: [] })}`);
  await inState(page, "live");
  assert.deepEqual(await lines(page), ["1 pöst 👍 2"]);
}));

test("a board that cannot be read has an error, and others are live", inBrowser({}, async ({ page, allow }) => {
  allow(/404|409|422/);
  const { service, site } = await startBoth((base) => {
    const one = (id, attributes) => `<rolltop-board id="${id}" src="${base}" ${attributes}></rolltop-board>`;
    return [
      one("good", 'board="hot-posts"'),
      one("unknown", 'board="nope"'),
      one("malformed", 'board="Hot Posts"'),
      one("unranked", 'board="users-per-device"'),
      one("window", 'board="hot-posts" window="3h"'),
      one("comma", 'board="hot-posts" window="7d,limit=10"'),
      one("missing", ""),
      '<rolltop-board id="scheme" src="javascript:alert(1)" board="hot-posts"></rolltop-board>',
    ].join("");
  });
  await service.count("hot-posts", { "post-1": 3 });
  await page.clock.install();
  const open = streamsOf(page);
  await page.goto(site.base);
  await page.clock.resume();
  await showing(page, ["1 post-1 3"], "#good");
  await inState(page, "live", "#good");
  const message = (id) => page.locator(`#${id} [part=message]`).textContent();
  for (const id of ["unknown", "malformed", "unranked", "window", "comma", "missing", "scheme"]) {
    await inState(page, "error", `#${id}`);
    assert.match(await message(id), /^This ranking cannot be shown: /);
  }
  assert.match(await message("unknown"), /unknown board 'nope'; define it with PUT \/v1\/boards\/nope \(at http:/);
  assert.match(await message("malformed"), /a board's name is/);
  assert.match(await message("unranked"), /is not ranked/);
  assert.match(await message("window"), /has no window '3h'; its only window is 24h/);
  assert.match(await message("missing"), /the attribute 'board' is missing/);
  assert.match(await message("scheme"), /the attribute 'src' is not an address/);
  assert.equal(open.size, 1);

  // The others go on, and the board is found when there is one.
  await service.call("PUT", "/v1/boards/nope", { metric: "COUNT(24h, view, page)", slot: "1h" });
  await service.count("nope", { "page-1": 7 });
  await service.count("hot-posts", { "post-1": 1 });
  await showing(page, ["1 post-1 4"], "#good");
  await until(async () => (await page.clock.runFor(5_000), (await state(page, "#unknown")) === "live"), "the board is found");
  await showing(page, ["1 page-1 7"], "#unknown");
  await inState(page, "live", "#good");

  // And one that is removed has an error again.
  await service.call("DELETE", "/v1/boards/nope");
  await inState(page, "error", "#unknown");
  assert.equal(await state(page, "#good"), "live");
}));

test("where no board can be read, each says why", inBrowser({}, async ({ page, allow }) => {
  allow(/404|409/);
  const { service, site } = await startBoth((base) =>
    `<rolltop-board id="a" src="${base}" board="nope"></rolltop-board>
     <rolltop-board id="b" src="${base}" board="users-per-device"><b slot="error">Sorry</b></rolltop-board>
     <rolltop-board id="c" src="${base}/elsewhere" board="hot-posts"></rolltop-board>`);
  const open = streamsOf(page);
  await page.goto(site.base);
  for (const id of ["a", "b", "c"]) await inState(page, "error", `#${id}`);
  await page.getByText("unknown board 'nope'").waitFor();
  await page.getByText("Sorry").waitFor();
  await page.getByText("path /elsewhere/v1/boards/hot-posts/rankings does not exist").waitFor();
  assert.equal(open.size, 0);
}));

const HOSTILE = [
  '<img src=x onerror="window.broken = 1">',
  "<script>window.broken = 1</script>",
  "\u202egnp.exe",
  "line\u2028separator\u2029",
  "x".repeat(512),
  "👩‍👩‍👧‍👦 🏳️‍🌈 é́́́",
  "a/../b?c=d#e&f=%2e",
  "..",
  "$& $1 {subject}",
  "שלום עולם",
  "__proto__",
];

test("names are text, and encoded in addresses", inBrowser({ device: "phone" }, async ({ page }) => {
  const { service, site } = await startBoth((base) =>
    `<rolltop-board id="a" src="${base}" board="hot-posts" limit="25" href="/posts/{subject}?from={subject}"></rolltop-board>
     <rolltop-board id="b" src="${base}" board="hot-posts" limit="25" href="javascript:alert('{subject}')"></rolltop-board>
     <rolltop-board id="c" src="${base}" board="hot-posts" limit="25" href="{subject}"></rolltop-board>`);
  await service.count("hot-posts", Object.fromEntries(HOSTILE.map((subject, at) => [subject, 100 - at])));
  await page.goto(site.base);
  const expected = HOSTILE.map((subject, at) => `${at + 1} ${subject} ${100 - at}`);
  for (const id of ["#a", "#b", "#c"]) await showing(page, expected, id);
  assert.equal(await page.evaluate(() => window.broken), undefined);
  const links = await page.locator("#a [part=subject]").evaluateAll((found) => found.map((link) => link.getAttribute("href")));
  const encoded = HOSTILE.map((subject) => {
    const name = encodeURIComponent(subject);
    return subject === ".." ? null : new URL(`/posts/${name}?from=${name}`, site.base).href;
  });
  assert.deepEqual(links, encoded);
  assert.equal(await page.locator("#b a").count(), 0);
  for (const link of await page.locator("#c a").evaluateAll((found) => found.map((link) => link.href))) {
    assert.ok(link.startsWith(`${site.base}/`), link);
  }
  // Nothing is wider than the page.
  const { width, view } = await page.evaluate(() => ({ width: document.documentElement.scrollWidth, view: innerWidth }));
  assert.ok(width <= view, `${width} > ${view}`);
  await checkAccessibility(page);
}));

test("a ranking that is given up while it is read leaves nothing behind", inBrowser({}, async ({ page, allow }) => {
  allow(/404/);
  const { service, site } = await startBoth((base) => `<rolltop-board src="${base}" board="later"></rolltop-board>`);
  await page.goto(site.base);
  await inState(page, "error");
  // It is read again when the page is shown again. The answer comes when the element is gone and the board is there.
  let answer;
  const isAsked = new Promise((resolve) => {
    void page.route("**/v1/boards/later/rankings*", async (route) => {
      resolve();
      await new Promise((go) => (answer = go));
      await route.continue();
    });
  });
  await setHidden(page, true);
  await setHidden(page, false);
  await isAsked;
  await page.evaluate(() => document.querySelector("rolltop-board").remove());
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
  await service.call("PUT", "/v1/boards/later", { metric: "COUNT(1h, like, post_id)", slot: "1m" });
  await service.count("later", { a: 1 });
  const add = (id) =>
    page.evaluate(([id, src]) => {
      const element = document.createElement("rolltop-board");
      Object.assign(element, { id });
      for (const [name, value] of Object.entries({ src, board: "later" })) element.setAttribute(name, value);
      document.body.append(element);
    }, [id, service.base]);
  const open = streamsOf(page);
  await add("first");
  await inState(page, "live", "#first");
  const isRead = page.waitForResponse(/later\/rankings/);
  answer();
  await isRead;
  await add("second");
  await inState(page, "live", "#second");
  assert.equal(open.size, 1, "both share a stream");
  await setHidden(page, true);
  await until(() => open.size === 0, "a hidden page has no stream");
}));

test("a page may give subjects names", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth(board('board="hot-posts" href="/posts/{subject}"'));
  await service.count("hot-posts", { 17: 3, 18: 2 });
  // The property may be set before the script is loaded.
  await page.addInitScript(() => document.addEventListener("readystatechange", () => {
    const widget = document.querySelector("rolltop-board");
    if (document.readyState !== "interactive") return;
    window.wasDefined = customElements.get("rolltop-board") !== undefined;
    widget.nameOf = (subject) => ({ 17: "<b>Ten soups</b>" })[subject];
  }));
  await page.goto(site.base);
  await showing(page, ["1 <b>Ten soups</b> 3", "2 18 2"]);
  assert.equal(await page.evaluate(() => window.wasDefined), false);
  assert.equal(await page.getByRole("link", { name: "Ten soups" }).getAttribute("href"), `${site.base}/posts/17`);
  await page.evaluate(() => (document.querySelector("rolltop-board").nameOf = (subject) => `post ${subject}`));
  await showing(page, ["1 post 17 3", "2 post 18 2"]);
  await page.evaluate(() => (document.querySelector("rolltop-board").nameOf = null));
  await showing(page, ["1 17 3", "2 18 2"]);
}));

test("the focus stays on a subject when lines move", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth(board('board="hot-posts" href="/posts/{subject}"'));
  await service.count("hot-posts", { a: 10, b: 20, c: 30, d: 40 });
  await page.goto(site.base);
  await showing(page, ["1 d 40", "2 c 30", "3 b 20", "4 a 10"]);
  const focused = () => page.evaluate(() => document.activeElement.shadowRoot?.activeElement?.textContent);
  for (let presses = 0; presses < 3; presses++) await page.keyboard.press("Tab");
  assert.equal(await focused(), "b");
  await page.evaluate(() => {
    window.blurs = 0;
    document.querySelector("rolltop-board").shadowRoot.activeElement.addEventListener("blur", () => (window.blurs += 1));
  });
  for (const [amounts, expected] of [
    [{ b: 100 }, ["1 b 120", "2 d 40", "3 c 30", "4 a 10"]],
    [{ a: 200, d: 200 }, ["1 d 240", "2 a 210", "3 b 120", "4 c 30"]],
    [{ c: 300, e: 400, a: 200 }, ["1 a 410", "2 e 400", "3 c 330", "4 d 240", "5 b 120"]],
  ]) {
    await service.count("hot-posts", amounts);
    await showing(page, expected);
    assert.deepEqual([await focused(), await page.evaluate(() => window.blurs)], ["b", 0]);
  }
  await page.keyboard.press("Shift+Tab");
  assert.equal(await focused(), "d");
  // If its line is gone, the focus is on the list, and goes on from there.
  await service.call("DELETE", "/v1/boards/hot-posts/subjects/d");
  await showing(page, ["1 a 410", "2 e 400", "3 c 330", "4 b 120"]);
  assert.equal(await focused(), await page.locator("ol").textContent());
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "a");
}));

for (const reducedMotion of [false, true]) {
  test(`lines move ${reducedMotion ? "at once for users who ask for less motion" : "to their places"}`,
    inBrowser({ reducedMotion }, async ({ page }) => {
      const { service, site } = await startBoth(board('board="hot-posts"'));
      await service.count("hot-posts", { a: 10, b: 20 });
      await page.goto(site.base);
      await showing(page, ["1 b 20", "2 a 10"]);
      await page.evaluate(() => {
        window.moved = [];
        const animate = Element.prototype.animate;
        Element.prototype.animate = function (...given) {
          window.moved.push(this.querySelector("[part=subject]").textContent);
          return animate.apply(this, given);
        };
      });
      await service.count("hot-posts", { a: 15, c: 1 });
      await showing(page, ["1 a 25", "2 b 20", "3 c 1"]);
      assert.deepEqual(await page.evaluate(() => window.moved), reducedMotion ? [] : ["a", "b", "c"]);
    }));
}

test("attributes may change at any time", inBrowser({}, async ({ page }) => {
  const { service, site } = await startBoth(board('board="hot-posts" limit="2"'),
    { config: '[boards.hot-posts]\nmetric = "COUNT(24h, like, post_id)"\nslot = "1h"\nwindows = ["7d/6h"]\n[boards.other]\nmetric = "COUNT(24h, play, track)"\nslot = "1h"\n' });
  await service.count("hot-posts", Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`post-${at}`, 100 - at])));
  await service.count("other", { song: 1 });
  const opened = requestsOf(page, "/v1/stream");
  await page.goto(site.base);
  await showing(page, ["1 post-0 100", "2 post-1 99"]);
  const set = (name, value) =>
    page.evaluate(([name, value]) => document.querySelector("rolltop-board").setAttribute(name, value), [name, value]);
  const count = async (number) => until(async () => (await lines(page)).length === number, `${number} lines`);
  await set("limit", "7");
  await count(7);
  assert.equal(opened.length, 1, "seven lines are among the ten");
  await set("limit", "27");
  await count(27);
  assert.equal(opened.length, 2);
  for (const [limit, number] of [["0", 10], ["-1", 1], ["1000", 30], ["many", 10]]) {
    await set("limit", limit);
    await count(number);
  }
  await service.setClock("2026-01-04T10:07:00Z");
  await count(0);
  await set("window", "7d");
  await count(10);
  await set("board", "other");
  await set("window", "");
  await count(0);
  await service.count("other", { song: 3 });
  await showing(page, ["1 song 3"]);
  await set("label", "Songs");
  await page.getByRole("list", { name: "Songs" }).waitFor();
  await set("href", "/songs/{subject}");
  await page.getByRole("link", { name: "song" }).waitFor();
  await page.evaluate(() => document.querySelector("rolltop-board").removeAttribute("href"));
  await until(async () => (await page.getByRole("link").count()) === 0, "no links");
  assert.deepEqual(await page.evaluate(() => {
    const { state, page } = document.querySelector("rolltop-board");
    return [state, page.board, page.items.length];
  }), ["live", "other", 1]);
}));

test("a script that comes late, and twice, is one", inBrowser({}, async ({ page }) => {
  const service = await startService({ clock: CLOCK });
  await service.count("hot-posts", { "post-1": 3 });
  // Without `src` the service is where the script is.
  const site = await startSite({
    "/": html('<rolltop-board board="hot-posts"><a href="/top">The top posts</a></rolltop-board>', "/none.js"),
    "/none.js": { type: "text/javascript", body: "" },
    "/rolltop/rolltop-board.js": JS,
    "*": forward(service, "/rolltop"),
  });
  const opened = requestsOf(page, "/v1/stream");
  await page.goto(site.base);
  await page.getByRole("link", { name: "The top posts" }).waitFor();
  await page.evaluate(async () => {
    for (const query of ["", "?again"]) {
      const script = document.createElement("script");
      script.type = "module";
      script.src = `/rolltop/rolltop-board.js${query}`;
      const loaded = new Promise((resolve) => (script.onload = resolve));
      document.head.append(script);
      await loaded;
    }
  });
  await showing(page, ["1 post-1 3"]);
  assert.ok(!(await page.getByRole("link", { name: "The top posts" }).isVisible()));
  assert.deepEqual(opened.map((url) => url.pathname), ["/rolltop/v1/stream"]);
}));

test("a page without boards asks nothing", inBrowser({}, async ({ page }) => {
  const { site } = await startBoth(() => "");
  const asked = requestsOf(page, "/v1/");
  await page.goto(site.base);
  await page.evaluate(() => customElements.whenDefined("rolltop-board"));
  await page.evaluate(() => {
    const widget = document.createElement("rolltop-board");
    document.body.append(widget);
    widget.remove();
  });
  assert.equal(asked.length, 0);
}));

/** Returns the least contrast of a text on a bar, which axe does not measure, and that of the dot. */
const contrasts = (page) =>
  page.evaluate(() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (...colors) => {
      for (const color of colors) {
        context.fillStyle = color;
        context.fillRect(0, 0, 1, 1);
      }
      const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((level) => {
        const share = level / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const ground = getComputedStyle(document.documentElement).backgroundColor;
    const root = document.querySelector("rolltop-board").shadowRoot;
    const style = (part) => getComputedStyle(root.querySelector(`[part=${part}]`));
    const bar = style("bar").backgroundColor;
    const texts = ["rank", "subject", "score"].map((part) =>
      contrast(luminance(ground, bar), luminance(ground, bar, style(part).color)));
    return [Math.min(...texts), contrast(luminance(ground), luminance(ground, style("dot").backgroundColor))];
  });

for (const scheme of ["light", "dark"]) {
  for (const device of ["desktop", "phone"]) {
    test(`it is accessible on a ${scheme} ${device}`, inBrowser({ scheme, device }, async ({ page, allow }) => {
      const { service, site } = await startBoth((base) =>
        `<h2 id="h">Posts</h2>
         <rolltop-board id="a" src="${base}" board="hot-posts" label="Top posts" href="/posts/{subject}"></rolltop-board>
         <rolltop-board id="b" src="${base}" board="hot-posts" limit="3"></rolltop-board>
         <rolltop-board id="c" src="${base}" board="top-sellers"></rolltop-board>
         <rolltop-board id="d" src="${base}" board="nope"></rolltop-board>`);
      await service.count("hot-posts", Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`post-${at}`, 500 - at * 40])));
      await page.goto(site.base);
      // The background of a page without one is not known to axe.
      await page.addStyleTag({ content: ":root { background: light-dark(#fff, #121212); color: light-dark(#222, #ddd) }" });
      for (const id of ["#a", "#b", "#c"]) await inState(page, "live", id);
      await inState(page, "error", "#d");
      await checkAccessibility(page);
      const [least, dot] = await contrasts(page);
      assert.ok(least >= 4.5, `the contrast of text on a bar is ${least}`);
      assert.ok(dot >= 3, `the contrast of the dot is ${dot}`);
      assert.equal(await page.evaluate(() => {
        const roots = [...document.querySelectorAll("rolltop-board")].map(({ shadowRoot }) => shadowRoot);
        return roots.filter((root) => root.querySelector("[aria-live], [role=status], [role=alert]")).length;
      }), 0, "nothing is announced");
      await service.kill();
      allow(/ERR_/);
      await inState(page, "reconnecting", "#a");
      await checkAccessibility(page);
    }));
  }
}

test("it works under a strict content security policy", inBrowser({}, async ({ page }) => {
  const policy = (base) => `default-src 'self'; script-src 'self' ${base}; connect-src ${base}; require-trusted-types-for 'script'`;
  const headers = {};
  const { service, site } = await startBoth(board('board="hot-posts" href="/posts/{subject}" label="Top"'), { headers });
  headers["content-security-policy"] = policy(service.base);
  await service.count("hot-posts", { "post-1": 3 });
  await page.goto(site.base);
  await showing(page, ["1 post-1 3"]);
  await service.count("hot-posts", { "post-2": 6 });
  await showing(page, ["1 post-2 6", "2 post-1 3"]);
  // The style is applied, that of the bars too.
  const bars = () => page.locator("[part=bar]").evaluateAll((found) => found.map((bar) => Math.round(bar.getBoundingClientRect().width)));
  await until(async () => { const [first, second] = await bars(); return first > 100 && Math.abs(second * 2 - first) <= 2; }, "bars");
}));

test("the service serves the script", inBrowser({}, async ({ t, page }) => {
  const pages = {};
  const site = await startSite(pages);
  const service = await startService({ clock: CLOCK, origins: [site.base] });
  const url = `${service.base}/rolltop-board.js`;
  const response = await fetch(url);
  if (response.status === 404) return t.skip("this program does not serve it");
  assert.match(response.headers.get("content-type"), /^text\/javascript/);
  assert.equal(await response.text(), SCRIPT);
  pages["/"] = html('<rolltop-board board="hot-posts"></rolltop-board>', url);
  await service.count("hot-posts", { "post-1": 3 });
  await page.goto(site.base);
  await showing(page, ["1 post-1 3"]);
}));

test("it is small", () => {
  const size = gzipSync(SCRIPT, { level: 9 }).length;
  assert.ok(size < 10_000, `${size} bytes`);
});
