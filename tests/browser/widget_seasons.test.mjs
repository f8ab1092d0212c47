// Tests of `<rolltop-board>` with the periods of a season.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inBrowser, ROOT, startService, startSite, until } from "./harness.mjs";

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
