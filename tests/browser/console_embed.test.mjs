// Tests of what the console shows to copy: what is posted to an empty board. It is run as it is.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { inUtc, visit } from "./console.mjs";
import { startService } from "./harness.mjs";

const run = promisify(execFile);
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

const pathOf = (name, query) => `boards/${encodeURIComponent(name)}?${new URLSearchParams(query)}`;

/** Runs commands in a shell, and returns what they print. */
async function shell(text, env = {}) {
  const quiet = text.replaceAll("curl ", "curl -sS --noproxy '*' ");
  return (await run("bash", ["-ec", quiet], { env: { ...process.env, ...env } })).stdout;
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
});
