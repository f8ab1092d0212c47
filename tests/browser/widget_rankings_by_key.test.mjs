// Tests of `<rolltop-board>` with boards that have a ranking for each key.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { becomes, CLOCK, requestsOf } from "./console.mjs";
import { checkAccessibility, inBrowser, ROOT, startService, startSite } from "./harness.mjs";

const SCRIPT = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");
const CONFIG = `
[boards.by-community]
metric = "COUNT(24h, like, post_id BY community)"
slot = "1h"
windows = ["7d/6h"]
`;
const REFUSED = /status of 422/;

/** Starts a service, and a site with a page that has an element for each set of attributes. */
async function startWith(...elements) {
  const pages = { "/rolltop-board.js": { type: "text/javascript; charset=utf-8", body: SCRIPT } };
  const site = await startSite(pages);
  const service = await startService({ clock: CLOCK, origins: [site.base], config: CONFIG });
  const quoted = (value) => `"${value.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"`;
  const element = (given, at) => {
    const attributes = { id: `w${at}`, src: service.base, board: "by-community", ...given };
    const texts = Object.entries(attributes).map(([name, value]) => `${name}=${quoted(value)}`);
    return `<rolltop-board ${texts.join(" ")}></rolltop-board>`;
  };
  pages["/"] = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A site</title>
    <script type="module" src="/rolltop-board.js"></script></head><body><main><h1>A site</h1>
    ${elements.map(element).join("")}
    </main></body></html>`;
  return { site, service };
}

/** Counts `[key, subject, amount]`. */
async function countIn(service, items) {
  const increments = items.map(([by, subject, amount]) => ({ by, subject, amount }));
  const { rejected } = await service.call("POST", "/v1/boards/by-community/increments", { increments });
  assert.deepEqual(rejected, []);
}

/** Waits until an element shows these subjects and scores. */
const shows = (page, expected, selector = "rolltop-board") => {
  const read = (all) => all.map((line) => {
    const text = (part) => line.querySelector(`[part=${part}]`).textContent;
    return `${text("subject")} ${text("score")}`;
  });
  const lines = () => page.locator(`${selector} [part~=line]`).evaluateAll(read);
  return becomes(lines, expected, `the lines of ${selector}`);
};

const state = (page, expected, selector = "rolltop-board") =>
  becomes(() => page.locator(selector).getAttribute("data-state"), expected, `the state of ${selector}`);

const set = (page, name, value) =>
  page.evaluate(([name, value]) => document.querySelector("rolltop-board").setAttribute(name, value), [name, value]);

describe("the element", { concurrency: 4 }, () => {
  test("it follows the ranking of its key, on one connection with others", inBrowser({}, async ({ page }) => {
    const hostile = `a/b, by=c & "d" ü`;
    const { site, service } = await startWith({ by: "rust" }, { by: "art" }, { by: "rust" }, { by: hostile });
    const opened = requestsOf(page, /\/v1\/stream/);
    await countIn(service, [["rust", "a", 2], ["art", "b", 3], [hostile, "c", 4]]);
    await page.goto(site.base);
    for (const [at, expected] of [["a 2"], ["b 3"], ["a 2"], ["c 4"]].entries()) await shows(page, expected, `#w${at}`);
    assert.equal(opened.length, 1);
    const views = new URL(opened[0].url()).searchParams.getAll("view").sort();
    assert.deepEqual(views, [hostile, "art", "rust"].map((by) => `by-community,limit=10,by=${by}`));
    await countIn(service, [["rust", "new", 9], [hostile, "new", 1]]);
    await shows(page, ["new 9", "a 2"], "#w0");
    await shows(page, ["new 9", "a 2"], "#w2");
    await shows(page, ["c 4", "new 1"], "#w3");
    await shows(page, ["b 3"], "#w1");
    await page.getByRole("list", { name: "by-community, art" }).waitFor();
    assert.equal(await page.evaluate(() => document.querySelector("#w0").page.by), "rust");
    await checkAccessibility(page);
  }));

  test("it shows another ranking when the key changes, and no other in between", inBrowser({}, async ({ page }) => {
    const { site, service } = await startWith({ by: "rust", label: "Top posts" });
    await countIn(service, [["rust", "a", 2], ["art", "b", 3], [" art", "c", 4]]);
    await page.goto(site.base);
    await shows(page, ["a 2"]);
    const kept = await page.evaluate(async () => {
      const element = document.querySelector("rolltop-board");
      element.setAttribute("by", "art");
      await Promise.resolve();
      return element.shadowRoot.querySelectorAll("[part~=line]").length;
    });
    assert.equal(kept, 0);
    await shows(page, ["b 3"]);
    await set(page, "by", " art");
    await shows(page, ["c 4"]);
    await set(page, "window", "7d");
    await countIn(service, [[" art", "d", 5], ["art", "e", 6]]);
    await shows(page, ["d 5", "c 4"]);
    await set(page, "by", "nobody");
    await page.getByText("Nothing counted yet.").waitFor();
    await state(page, "live");
  }));

  test("where streams do not work, it reads the ranking of its key", inBrowser({}, async ({ page, allow }) => {
    allow(/status of 404/);
    const { site, service } = await startWith({ by: "a&b=c", window: "7d" });
    await countIn(service, [["a&b=c", "a", 2], ["a", "b", 3]]);
    const headers = { "access-control-allow-origin": "*" };
    await page.route("**/v1/stream*", (route) => route.fulfill({ status: 404, headers }));
    await page.goto(site.base);
    await shows(page, ["a 2"]);
    await state(page, "polling");
  }));

  test("a key that is missing, or one too many, is said until that is right", inBrowser({}, async ({ page, allow }) => {
    allow(REFUSED);
    const { site, service } = await startWith({});
    await service.call("PUT", "/v1/boards/one-ranking", { metric: "COUNT(24h, like, post_id)", slot: "1h" });
    await countIn(service, [["rust", "a", 2]]);
    await page.goto(site.base);
    await state(page, "error");
    const message = page.locator("rolltop-board [part=message]");
    await message.getByText("has a ranking for each community, and the request names none; give it as 'by'").waitFor();
    await set(page, "by", "rust");
    await shows(page, ["a 2"]);
    await set(page, "board", "one-ranking");
    await message.getByText("board 'one-ranking' has one ranking").waitFor();
    await page.evaluate(() => document.querySelector("rolltop-board").removeAttribute("by"));
    await state(page, "live");
  }));
});
