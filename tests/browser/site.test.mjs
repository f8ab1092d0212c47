// The example site: what a visitor sees and does.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { atEnd, checkAccessibility, inBrowser, program, ROOT, until } from "./harness.mjs";

const PROGRAM = join(dirname(program()), "examples/site");
// A program from elsewhere has no examples beside it.
const skip = existsSync(PROGRAM) || process.env.CI || !process.env.ROLLTOP_TEST_PROGRAM ? false : `${PROGRAM} does not exist`;

/** Starts the example on free ports. Returns the addresses of the site and of Rolltop. */
async function startExample() {
  assert.ok(existsSync(PROGRAM), `${PROGRAM} does not exist: run "cargo build --example site"`);
  const args = ["--listen", "127.0.0.1:0", "--rolltop-listen", "127.0.0.1:0"];
  const child = spawn(PROGRAM, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, RUST_LOG: "warn" } });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // It removes its temporary directory then.
  atEnd(() => (child.kill("SIGINT"), ended));
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
  const addresses = await until(() => {
    assert.equal(child.exitCode, null);
    const found = printed.match(/http:\/\/[\d.:]+/g);
    return found?.length === 2 && found;
  }, "the addresses");
  return { site: addresses[0], rolltop: addresses[1], child };
}

/** Lets a page have the widget where the program does not serve it. */
async function withWidget(context, rolltop) {
  const url = `${rolltop}/rolltop-board.js`;
  if ((await fetch(url)).ok) return;
  const body = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");
  const headers = { "access-control-allow-origin": "*" };
  await context.route(url, (route) => route.fulfill({ contentType: "text/javascript", headers, body }));
}

const top = (page) => page.locator("rolltop-board").first().locator("[part~=line]").allInnerTexts();
const isTop = (page, ...expected) =>
  until(async () => JSON.stringify((await top(page)).map((line) => line.split(/\s*\n\s*/))) === JSON.stringify(expected), `the top is ${expected}`);

for (const device of ["desktop", "phone"]) {
  for (const scheme of ["light", "dark"]) {
    test(`a like counts once, on a ${scheme} ${device}`, { skip }, inBrowser({ device, scheme }, async ({ page, context }) => {
      const { site, rolltop } = await startExample();
      await withWidget(context, rolltop);
      await page.goto(site);
      await page.getByText("No likes in ten minutes.").waitFor();
      await page.getByRole("button", { name: "Like: Moss is winning" }).click();
      await isTop(page, ["1", "Moss is winning", "1"]);
      assert.ok(await page.getByRole("button", { name: "Liked: Moss is winning" }).isDisabled());
      const [{ name, httpOnly, sameSite }] = await context.cookies();
      assert.deepEqual([name, httpOnly, sameSite], ["person", true, "Lax"]);
      // Sending it again changes nothing.
      const again = await page.evaluate(() => fetch("/like/moss", { method: "POST" }).then((response) => response.status));
      assert.equal(again, 200);
      await page.getByRole("button", { name: "Like: The night trains are back" }).click();
      await isTop(page, ["1", "The night trains are back", "1"], ["1", "Moss is winning", "1"]);
      await page.reload();
      assert.ok(await page.getByRole("button", { name: "Liked: Moss is winning" }).isDisabled());
      await isTop(page, ["1", "The night trains are back", "1"], ["1", "Moss is winning", "1"]);
      await page.getByRole("link", { name: "Moss is winning" }).first().click();
      await page.waitForURL(`${site}/#moss`);
      await checkAccessibility(page);
      await page.screenshot({ path: join(ROOT, `target/browser/site-${device}-${scheme}.png`) });
    }));
  }
}

test("others move the list", { skip }, inBrowser({}, async ({ page, context }) => {
  const { site, rolltop } = await startExample();
  await withWidget(context, rolltop);
  await page.goto(site);
  await page.getByRole("button", { name: "Let others like too" }).click();
  await until(async () => (await top(page)).length >= 5, "five posts with likes", 60_000);
  const total = async () => (await top(page)).reduce((sum, line) => sum + Number(line.split("\n").at(-1)), 0);
  await page.getByRole("button", { name: "Stop the others" }).click();
  await page.getByRole("button", { name: "Let others like too" }).waitFor();
  await checkAccessibility(page);
  assert.ok((await total()) >= 5);
}));

test("it works without JavaScript", { skip }, inBrowser({ context: { javaScriptEnabled: false } }, async ({ page, context }) => {
  const { site, rolltop } = await startExample();
  await page.goto(site);
  await page.getByRole("button", { name: "Like: Moss is winning" }).click();
  await page.waitForURL(`${site}/#moss`);
  assert.ok(await page.getByRole("button", { name: "Liked: Moss is winning" }).isDisabled());
  const response = await fetch(`${rolltop}/v1/boards/example-posts/rankings`);
  const { items } = await response.json();
  assert.deepEqual(items, [{ rank: 1, subject: "moss", score: 1 }]);
  void context;
}));

test("a port that is taken is named", { skip }, async () => {
  const { site, rolltop } = await startExample();
  for (const [flag, other, url] of [["--listen", "--rolltop-listen", site], ["--rolltop-listen", "--listen", rolltop]]) {
    const child = spawn(PROGRAM, [flag, new URL(url).host, other, "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
    atEnd(() => child.kill("SIGKILL"));
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (said += text));
    await until(() => child.exitCode !== null, "the end");
    assert.equal(child.exitCode, 1);
    assert.ok(said.includes(flag) && said.includes(new URL(url).host), said);
  }
});
