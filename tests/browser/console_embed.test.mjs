// Tests of what the console shows to copy: what is posted to an empty board, and how a board is used in a page, from a
// command line and in programs. What is shown is run as it is.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";
import { inUtc, visit } from "./console.mjs";
import { checkAccessibility, ROOT, startService, startSite, until } from "./harness.mjs";
import { ADMIN, REFUSED, startWithKeys } from "./keys.mjs";

const run = promisify(execFile);
const { buildSync } = createRequire(join(ROOT, "web/package.json"))("esbuild");

const folder = mkdtempSync(join(tmpdir(), "rolltop-embed-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Boards of many kinds, each with event types of its own, and the key of the ranking whose page is visited. */
const KINDS = {
  count: ['metric = "COUNT(24h, e1, post-id)"', 'slot = "1h"'],
  sum: ['metric = "SUM(7d, e2, amount, seller_id)"', 'slot = "1h"', "decimals = 2"],
  terms: ['metric = "SUM(24h, e3*5 + e3: amount*0.1 + f3*2 - g3, customer)"', 'slot = "1h"', "decimals = 3"],
  mean: ['metric = "AVG(30d, e4, stars, film_id)"', 'slot = "1d"', "decimals = 1"],
  best: ['metric = "MAX(all, e5: points + f5: score, player)"'],
  distinct: ['metric = "COUNT_DISTINCT(24h, e6, post_id, user_id)"', 'slot = "1h"'],
  capped: ['metric = "COUNT(7d, e7, post_id)"', 'slot = "1d"', 'cap = {per = "user_id", most = 10, every = "1d"}'],
  second: ['metric = "SUM(all, e8, points, player)"', 'tie_break = {most = 1000, order = "asc", field = "seconds"}'],
  tabs: ['metric = "COUNT(24h, e9, post_id)"', 'slot = "1h"', 'windows = ["7d/6h", "all"]'],
  network: ['metric = "COUNT(1h, e10, (prefix(ip, 20), device_id))"', 'slot = "1m"'],
  keys: ['metric = "COUNT(24h, e11, post_id BY community)"', 'slot = "1h"'],
  "keys-capped": ['metric = "COUNT(7d, e12, post_id BY community)"', 'slot = "1d"', 'cap = {per = "user_id", most = 1, every = "1d"}'],
  "keys-two": ['metric = "COUNT_DISTINCT(24h, e13, post BY (country, prefix(ip, 16)), user)"', 'slot = "1h"'],
  "keys-network": ['metric = "COUNT(24h, e14, post BY prefix(ip, 33))"', 'slot = "1h"'],
  filtered: [`metric = "COUNT(24h, e15, post WHERE channel = 'app')"`, 'slot = "1h"'],
  unranked: ['metric = "COUNT_DISTINCT(30d, e17, device, user)"', 'slot = "1d"', "ranked = false"],
};
const CONFIG = Object.entries(KINDS).map(([name, lines]) => `[boards."${name}"]\n${lines.join("\n")}\n`).join("\n");

/** The pages with a panel: each board, and one ranking of boards with many. */
const PAGES = [
  ...Object.keys(KINDS).map((name) => [name, {}]),
  ["keys", { by: "rust & \"c\"'s <b>" }],
  ["keys-two", { by: '["se","203.0.0.0/16"]' }],
  ["keys-network", { by: "198.51.100.7/32" }],
  ["tabs", { window: "7d" }],
];

/** The boards whose programs and tags are run: those of one shape differ in names only. */
const RUN = ["count", "sum", "mean", "distinct", "capped", "second", "keys", "keys-two", "tabs", "unranked"];

const pathOf = (name, query) => `boards/${encodeURIComponent(name)}?${new URLSearchParams(query)}`;

/** Runs commands in a shell, and returns what they print. */
async function shell(text, env = {}) {
  const quiet = text.replaceAll("curl ", "curl -sS --noproxy '*' ");
  return (await run("bash", ["-ec", quiet], { env: { ...process.env, ...env } })).stdout;
}

/** Runs a program against the sources of the client for TypeScript. */
async function typeScript(text) {
  const outfile = join(folder, `${Math.random()}.mjs`);
  const alias = { rolltop: join(ROOT, "clients/typescript/src/index.ts") };
  const stdin = { contents: text, resolveDir: ROOT, loader: "ts" };
  buildSync({ stdin, alias, outfile, bundle: true, format: "esm", platform: "node", logLevel: "silent" });
  return (await run(process.execPath, [outfile])).stdout;
}

/** Runs a program against the sources of the client for Python, or only compiles it where what that needs is not installed. */
async function python(text, t) {
  const file = join(folder, `${Math.random()}.py`);
  writeFileSync(file, text);
  const hasClient = await run("python3", ["-c", "import httpx2"]).then(() => true, () => false);
  if (!hasClient) {
    t.diagnostic("without httpx2 for Python its text is compiled, and not run");
    await run("python3", ["-m", "py_compile", file]);
    return null;
  }
  return (await run("python3", [file], { env: { ...process.env, PYTHONPATH: join(ROOT, "clients/python/src") } })).stdout;
}

/** Opens the panel, and returns its texts by language. */
async function textsOf(page) {
  const panel = page.locator("details.embed");
  if (!(await panel.evaluate((details) => details.open))) await panel.locator("summary").click();
  const texts = {};
  for (const button of await panel.getByRole("group", { name: "Language" }).getByRole("button").all()) {
    await button.click();
    const name = await button.textContent();
    texts[name] = await panel.getByRole("region", { name, exact: true }).textContent();
  }
  return texts;
}

describe("the console", () => {
  test("what it shows to post to an empty board is counted there, on boards of all kinds", inUtc({}, async ({ page }) => {
    const service = await startService({ config: CONFIG });
    for (const [name, query] of PAGES.filter(([name]) => !["filtered", "unranked"].includes(name))) {
      if (name === "tabs" && query.window) continue;
      await visit(page, service, pathOf(name, query));
      await page.getByText("Nothing has been counted in this window yet").waitFor();
      const command = await page.locator(".empty").getByRole("region", { name: "Command" }).textContent();
      const receipt = JSON.parse(await shell(command));
      assert.deepEqual([receipt.accepted, receipt.rejected], [1, []], `${name}: ${command}`);
      if (!name.startsWith("keys") || query.by) await page.locator(".ranking li").waitFor();
    }
  }));

  test("the texts for a page, a command line and programs work, for boards of all kinds", inUtc({}, async ({ page, context, t }) => {
    let html = "";
    const site = await startSite({ "/": (_, response) => response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(html) });
    const service = await startService({ config: CONFIG, origins: [site.base] });
    const other = await context.newPage();
    for (const [name, query] of PAGES) {
      // A page behind another one draws once in a second.
      await page.bringToFront();
      await visit(page, service, pathOf(name, query));
      const panel = page.locator("details.embed");
      await panel.waitFor();
      // Nothing was counted in the ranking yet, unless it is another window of one.
      const isNew = !["filtered", "unranked"].includes(name) && query.window === undefined;
      const event = isNew ? await page.locator(".empty").getByRole("region", { name: "Command" }).textContent() : null;
      const texts = await textsOf(page);
      const expected = ["Web page", "curl", "TypeScript", "Python"].slice(name === "unranked" ? 1 : 0);
      assert.deepEqual(Object.keys(texts), expected, name);

      const answers = (await shell(texts.curl.replace("\n\n", "; echo\n\n"))).split("\n").filter((line) => line !== "");
      const [receipt, read] = answers.map((line) => JSON.parse(line));
      assert.deepEqual([receipt.accepted, receipt.rejected], [1, []], `${name}: ${texts.curl}`);
      const subject = name === "unranked" ? read.subject : read.items[0].subject;
      if (name === "unranked") assert.equal(read.value, 1, texts.curl);

      // What the service makes of the fields of an event is what the increments name.
      if (event !== null) await shell(event);
      if (name !== "unranked") {
        const of = new URLSearchParams(read.by ? { by: read.by } : {});
        assert.equal((await service.call("GET", `/v1/boards/${name}/rankings?${of}`)).total, 1, name);
      }
      if (!RUN.includes(name)) continue;

      const [printed, inPython] = await Promise.all([typeScript(texts.TypeScript), python(texts.Python, t)]);
      assert.match(printed, name === "unranked" ? /^1$/m : /rank: 1/, `${name}: ${texts.TypeScript}`);
      if (inPython !== null) assert.match(inPython, name === "unranked" ? /^1$/m : /'rank': 1/, `${name}: ${texts.Python}`);
      if (name === "unranked") continue;
      html = `<!doctype html><title>A page</title>${texts["Web page"]}`;
      await other.bringToFront();
      await other.goto(site.base);
      const board = other.locator("rolltop-board");
      await until(async () => (await board.getAttribute("data-state")) === "live", `${name} is live: ${html}`);
      const shown = await board.evaluate((element) => element.page.items.map((item) => item.subject));
      assert.deepEqual(shown, [subject], `one subject was counted: ${html}`);
    }
  }));

  test("where a key is needed, the texts take it from the environment", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await startWithKeys([]);
    await visit(page, service, "boards/hot-posts");
    await page.locator("form.key input").fill(ADMIN.text);
    await page.locator("form.key input").press("Enter");
    await page.locator("details.embed").waitFor();
    const texts = await textsOf(page);
    assert.ok(!JSON.stringify(texts).includes(ADMIN.text), "no text has the key");
    const [receipt, read] = (await shell(texts.curl.replace("\n\n", "; echo\n\n"), { ROLLTOP_KEY: ADMIN.text })).split("\n").map((line) => JSON.parse(line));
    assert.deepEqual([receipt.accepted, read.items], [1, [{ rank: 1, subject: "post-1", score: 1 }]]);
    assert.match(texts["Web page"], /key="rtp_…"/);
    assert.match(texts.TypeScript, /key: process.env.ROLLTOP_KEY/);
    assert.match(texts.Python, /os.environ\["ROLLTOP_KEY"\]/);
  }));

  for (const [device, scheme] of [["desktop", "light"], ["phone", "dark"], ["desktop", "dark"], ["phone", "light"]]) {
    test(`how to use a board is open while it is empty, and copied with a button, on a ${scheme} ${device}`, inUtc({ device, scheme, context: { permissions: ["clipboard-read", "clipboard-write"] } }, async ({ page }) => {
      const service = await startService({ config: CONFIG });
      await visit(page, service, "boards/capped");
      const panel = page.locator("details.embed");
      const isOpen = () => panel.evaluate((details) => details.open);
      await panel.waitFor();
      assert.equal(await isOpen(), true);
      await page.locator(".empty").waitFor();
      for (const name of ["Web page", "Python", "TypeScript", "curl"]) {
        await panel.getByRole("button", { name, exact: true }).click();
        await checkAccessibility(page);
        const picture = join(ROOT, `target/browser/embed-${name.replace(" ", "-")}-${device}-${scheme}.png`);
        await page.screenshot({ path: picture, fullPage: true });
      }
      const text = await panel.getByRole("region", { name: "curl" }).textContent();
      await panel.getByRole("button", { name: "Copy curl" }).click();
      await panel.getByText("Copied", { exact: true }).waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
      // What was opened stays open when the first item is counted.
      await shell(text);
      await page.locator(".ranking li").waitFor();
      assert.equal(await isOpen(), true);
      await visit(page, service, "");
      await visit(page, service, "boards/capped");
      await page.locator(".ranking li").waitFor();
      assert.equal(await isOpen(), false);
      assert.equal(await panel.evaluate((details) => [...details.querySelectorAll("button")].some((button) => button.checkVisibility())), false);
    }));
  }
});
