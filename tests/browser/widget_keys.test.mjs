// Tests of `<rolltop-board>` with publishable keys, in pages of another origin than the service.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { becomes } from "./console.mjs";
import { inBrowser, makeKey, ROOT, startSite, until } from "./harness.mjs";
import { authorizationOf, configWith, isAbsent, REFUSED, startWithKeys, watch } from "./keys.mjs";

const SCRIPT = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");

/** Starts a site, and a service with publishable keys for it. `make` gets the origin of the site and returns keys. */
async function startSiteWithKeys(make) {
  const pages = { "/rolltop-board.js": { type: "text/javascript; charset=utf-8", body: SCRIPT } };
  const site = await startSite(pages);
  const keys = make(site.base);
  const service = await startWithKeys(Object.values(keys));
  const show = (...elements) => {
    pages["/"] = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A site</title>
      <script type="module" src="/rolltop-board.js"></script></head><body><main><h1>A site</h1>
      ${elements.map((attributes, at) => `<rolltop-board id="w${at}" src="${service.base}" ${attributes}></rolltop-board>`).join("")}
      </main></body></html>`;
  };
  return { site, service, keys, show };
}

const publishable = (origin, boards) => makeKey({ kind: "publishable", scopes: ["view"], boards, origins: [origin] });

const inState = (page, expected, selector = "rolltop-board") =>
  becomes(() => page.locator(selector).getAttribute("data-state"), expected, `the state of ${selector}`);

const message = (page, selector = "rolltop-board") => page.locator(`${selector} [part=message]`).textContent();

const subjects = (page, selector = "rolltop-board") => page.locator(`${selector} [part=subject]`).allTextContents();

test("a widget of another origin is live with a publishable key", inBrowser({}, async ({ page }) => {
  const { site, service, keys, show } = await startSiteWithKeys((origin) => ({ hot: publishable(origin, ["hot-*"]) }));
  const seen = watch(page);
  show(`board="hot-posts" key="${keys.hot.text}"`);
  await service.count("hot-posts", { a: 1 });
  await page.goto(site.base);
  await becomes(() => subjects(page), ["a"]);
  await inState(page, "live");
  await service.count("hot-posts", { b: 2 });
  await becomes(() => subjects(page), ["b", "a"]);
  assert.ok(seen.calls.length > 0);
  for (const call of seen.calls) assert.equal(await authorizationOf(call), `Bearer ${keys.hot.text}`);
  isAbsent(keys.hot, seen.texts);
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
}));

test("a widget without a key says so, asks rarely, and follows its attribute", inBrowser({}, async ({ page, allow }) => {
  allow(REFUSED);
  const { site, service, keys, show } = await startSiteWithKeys((origin) => ({
    hot: publishable(origin, ["hot-*"]),
    other: publishable(origin, ["ever"]),
    elsewhere: publishable("https://shop.example", ["hot-*"]),
  }));
  const seen = watch(page);
  show('board="hot-posts"');
  await service.count("hot-posts", { a: 1 });
  await page.clock.install();
  await page.goto(site.base);
  await page.clock.resume();
  await inState(page, "error");
  assert.match(await message(page), /^This ranking cannot be shown: the attribute 'key' is missing: the operation needs the scope 'view'/);
  const asked = seen.calls.length;
  await page.clock.runFor(20_000);
  assert.equal(seen.calls.length, asked, "it does not ask again within 20 s");

  const element = page.locator("rolltop-board");
  const set = (key) => element.evaluate((element, key) => element.setAttribute("key", key), key);
  await set(keys.hot.text);
  await becomes(() => subjects(page), ["a"]);
  await inState(page, "live");
  await set(keys.other.text);
  await inState(page, "error");
  assert.match(await message(page), /board 'hot-posts' is not one of the boards that the caller may use/);
  assert.deepEqual(await subjects(page), []);
  // The property is the same.
  await element.evaluate((element, key) => (element.key = key), keys.hot.text);
  await inState(page, "live");
  assert.equal(await element.getAttribute("key"), keys.hot.text);
  await set(keys.elsewhere.text);
  await inState(page, "error");
  assert.match(await message(page), new RegExp(`the key is not for pages of origin '${site.base}'`));
  await set("not a key");
  await inState(page, "error");
  assert.match(await message(page), /the attribute 'key' is not a key/);
  await set(`rtp_0000000000000000_${"0".repeat(64)}`);
  await becomes(async () => /the key is not known; it may have been revoked/.test(await message(page)), true);
  await element.evaluate((element) => (element.key = null));
  await becomes(async () => /the attribute 'key' is missing/.test(await message(page)), true);
  for (const key of Object.values(keys)) isAbsent(key, seen.texts);
}));

test("widgets with the same key share a stream, others do not", inBrowser({}, async ({ page }) => {
  const { site, service, keys, show } = await startSiteWithKeys((origin) => ({
    one: publishable(origin, ["*"]),
    two: publishable(origin, ["*"]),
  }));
  const seen = watch(page);
  const [one, two] = [keys.one.text, keys.two.text];
  show(`board="hot-posts" key="${one}"`, `board="ever" key="${one}"`, `board="hot-posts" key="${two}"`);
  await service.count("hot-posts", { a: 1 });
  await page.goto(site.base);
  for (const at of [0, 1, 2]) await inState(page, "live", `#w${at}`);
  const streams = seen.calls.filter((request) => request.url().includes("/v1/stream"));
  const sent = await Promise.all(streams.map(async (request) => [new URL(request.url()).searchParams.getAll("view").length, await authorizationOf(request)]));
  assert.deepEqual(sent.sort(), [[1, `Bearer ${two}`], [2, `Bearer ${one}`]]);
}));

test("a page has three streams, however many keys", inBrowser({}, async ({ page }) => {
  const { site, service, keys, show } = await startSiteWithKeys((origin) =>
    Array.from({ length: 5 }, () => publishable(origin, ["hot-posts"])));
  const seen = watch(page);
  show(...keys.map(({ text }) => `board="hot-posts" key="${text}"`));
  await service.count("hot-posts", { a: 1 });
  await page.goto(site.base);
  const states = () => page.locator("rolltop-board").evaluateAll((all) => all.map((one) => one.dataset.state).sort());
  await becomes(states, ["live", "live", "live", "polling", "polling"]);
  assert.equal(seen.calls.filter((request) => request.url().includes("/v1/stream")).length, 3);
  await page.evaluate(() => document.querySelector("[data-state=live]").remove());
  await becomes(states, ["live", "live", "live", "polling"]);
}));

test("a widget whose key is revoked says so", inBrowser({}, async ({ page, allow }) => {
  allow(REFUSED);
  const { site, service, keys, show } = await startSiteWithKeys((origin) => ({
    hot: publishable(origin, ["hot-*"]),
    other: publishable(origin, ["ever"]),
  }));
  const seen = watch(page);
  show(`board="hot-posts" key="${keys.hot.text}"`);
  await service.count("hot-posts", { a: 1 });
  await page.goto(site.base);
  await inState(page, "live");
  service.configure(configWith([keys.other]));
  await inState(page, "error");
  assert.match(await message(page), /the key is not known; it may have been revoked/);
  const asked = seen.calls.length;
  await pause(3_000);
  assert.equal(seen.calls.length, asked, "it does not ask again at once");
}));

test("a page whose origin no key names is told where to look", inBrowser({}, async ({ page, allow }) => {
  allow(/CORS policy|ERR_FAILED/);
  const { site, keys, show } = await startSiteWithKeys(() => ({ hot: publishable("https://shop.example", ["hot-*"]) }));
  show(`board="hot-posts" key="${keys.hot.text}"`);
  await page.clock.install();
  await page.goto(site.base);
  await until(async () => (await page.clock.runFor(1_000), (await page.locator("rolltop-board").getAttribute("data-state")) === "error"), "an error");
  assert.ok((await message(page)).includes(`is ${site.base} one of the origins of the key?`), await message(page));
}));
