// Tests of `<rolltop-board>` with the periods of a season.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkAccessibility, inBrowser, ROOT, startService, startSite, until } from "./harness.mjs";

const SCRIPT = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");
const BOARD = '[boards.sellers]\nmetric = "COUNT(all, sale, seller)"\nseason = { every = "1mo" }\n';

/** Returns what a widget shows: its state, whether it says how up to date it is, and its lines. */
const shown = (page, selector) =>
  page.evaluate((selector) => {
    const board = document.querySelector(selector);
    const part = (name, within = board.shadowRoot) => within.querySelector(`[part~=${name}]`);
    const lines = [...board.shadowRoot.querySelectorAll("[part~=line]")];
    const texts = lines.map((line) => `${part("subject", line).textContent} ${part("score", line).textContent}`);
    return [board.dataset.state, !part("status").hidden, ...texts].join(", ");
  }, selector);

const showing = (page, selector, expected) =>
  until(async () => (await shown(page, selector)) === expected, `${expected} in ${selector}`);

test("a final period is shown beside the current one, and another can be chosen", inBrowser({}, async ({ page, allow }) => {
  const pages = { "/rolltop-board.js": { type: "text/javascript; charset=utf-8", body: SCRIPT } };
  const site = await startSite(pages);
  const service = await startService({ clock: "2026-01-30T10:00:00Z", config: BOARD, origins: [site.base] });
  await service.count("sellers", { a: 3, b: 2 });
  await service.setClock("2026-02-01T02:00:00Z");
  await service.count("sellers", { c: 9 });
  const of = (id, more) => `<rolltop-board id="${id}" src="${service.base}" board="sellers" ${more}></rolltop-board>`;
  const body = `<!doctype html><title>A site</title><script type="module" src="/rolltop-board.js"></script>
    ${of("now", "")}${of("last", 'period="2026-01"')}${of("named", 'period="2026-02"')}`;
  pages["/"] = { type: "text/html; charset=utf-8", body };
  await page.goto(site.base);
  await showing(page, "#now", "live, true, c 9");
  await showing(page, "#last", "polling, false, a 3, b 2");
  await showing(page, "#named", "polling, true, c 9");

  await service.count("sellers", { d: 10 });
  await showing(page, "#now", "live, true, d 10, c 9");
  await showing(page, "#named", "polling, true, d 10, c 9");
  await page.locator("#now").evaluate((board) => board.setAttribute("period", "2026-01"));
  await showing(page, "#now", "polling, false, a 3, b 2");
  allow(/status of 404/);
  await page.locator("#now").evaluate((board) => board.setAttribute("period", "2025-01"));
  await until(async () => (await shown(page, "#now")).startsWith("error"), "an error");
  assert.match(await page.locator("#now").evaluate((board) => board.shadowRoot.textContent), /has no period '2025-01'/);
  await page.locator("#now").evaluate((board) => board.removeAttribute("period"));
  await showing(page, "#now", "live, true, d 10, c 9");
}));

test("lines whose subjects were removed say so", inBrowser({}, async ({ page }) => {
  const pages = { "/rolltop-board.js": { type: "text/javascript; charset=utf-8", body: SCRIPT } };
  const site = await startSite(pages);
  const service = await startService({ clock: "2026-01-30T10:00:00Z", config: BOARD, origins: [site.base] });
  await service.count("sellers", { a: 5, b: 4, c: 3, d: 2 });
  await service.setClock("2026-02-01T02:00:00Z");
  const removed = new Set();
  await page.route("**/rankings*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    for (const line of json.items) if (removed.has(line.subject)) line.subject = null;
    const { etag, ...headers } = response.headers();
    await route.fulfill({ status: 200, headers, json });
  });
  const body = `<!doctype html><html lang="en"><title>A site</title><script type="module" src="/rolltop-board.js"></script><main><h1>Sellers</h1>
    <rolltop-board id="last" src="${service.base}" board="sellers" period="2026-01" href="/of/{subject}"></rolltop-board></main>`;
  pages["/"] = { type: "text/html; charset=utf-8", body };
  await page.goto(site.base);
  await page.locator("#last").evaluate((board) => (board.nameOf = (subject) => subject.toUpperCase()));
  await showing(page, "#last", "polling, false, A 5, B 4, C 3, D 2");
  // A final period is read again after minutes, and when more lines are wanted.
  const read = (limit) => page.locator("#last").evaluate((board, limit) => board.setAttribute("limit", limit), limit);
  removed.add("b").add("c");
  await read(25);
  await showing(page, "#last", "polling, false, A 5, removed 4, removed 3, D 2");
  const of = (attribute) => page.locator("#last").evaluate(
    (board, attribute) => [...board.shadowRoot.querySelectorAll("[part~=subject]")].map((one) => one.getAttribute(attribute)), attribute);
  assert.deepEqual(await of("href"), [`${site.base}/of/a`, null, null, `${site.base}/of/d`]);
  assert.deepEqual(await of("part"), ["subject", "subject removed", "subject removed", "subject"]);
  removed.add("a");
  await read(50);
  await page.locator("#last").evaluate((board) => board.setAttribute("removed", "gelöscht"));
  await showing(page, "#last", "polling, false, gelöscht 5, gelöscht 4, gelöscht 3, D 2");
  assert.deepEqual(await page.locator("#last").evaluate((board) => board.page.items.map(({ subject }) => subject)), [null, null, null, "d"]);
  await checkAccessibility(page);
}));
