// The API explorer at /swagger-ui/ in a browser: it works under its content security policy, and no page can frame it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inBrowser, makeKey, startService, startSite } from "./harness.mjs";

const CLOCK = "2026-01-02T10:07:00Z";

test("an operation is executed, and nothing violates the policy", inBrowser({}, async ({ page }) => {
  const service = await startService({ clock: CLOCK });
  await page.goto(`${service.base}/swagger-ui/`);
  await page.getByRole("heading", { name: /^Rolltop/ }).first().waitFor();
  const operation = page.locator("#operations-boards-listBoards");
  await operation.locator("button.opblock-summary-control").click();
  await operation.getByRole("button", { name: "Execute" }).click();
  await operation.locator(".live-responses-table .response-col_status").getByText("200").waitFor();
  assert.match(await operation.locator(".live-responses-table").innerText(), /hot-posts/);
}));

test("Authorize takes a key, and requests then have it", inBrowser({}, async ({ page, allow }) => {
  allow(/status of 401/);
  const key = makeKey({ scopes: ["read"] });
  const service = await startService({ clock: CLOCK, config: `[boards.hot-posts]\nmetric = "COUNT(24h, like, post_id)"\nslot = "1h"\n${key.table}` });
  const calls = [];
  page.on("request", (request) => new URL(request.url()).pathname.startsWith("/v1/") && calls.push(request));
  await page.goto(`${service.base}/swagger-ui/`);
  const operation = page.locator("#operations-boards-listBoards");
  await operation.locator("button.opblock-summary-control").click();
  const status = operation.locator(".live-responses-table .response-col_status");
  await operation.getByRole("button", { name: "Execute" }).click();
  await status.getByText("401").waitFor();
  await page.locator(".scheme-container").getByRole("button", { name: "Authorize" }).click();
  const dialog = page.locator(".dialog-ux");
  await dialog.getByRole("textbox").or(dialog.locator("input")).first().fill(key.text);
  await dialog.locator("button.authorize[type=submit]").click();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await operation.getByRole("button", { name: "Execute" }).click();
  await status.getByText("200").waitFor();
  assert.match(await operation.locator(".live-responses-table").innerText(), /hot-posts/);
  const sent = await Promise.all(calls.map(async (request) => (await request.allHeaders()).authorization));
  assert.deepEqual(sent, [undefined, `Bearer ${key.text}`]);
  assert.ok(calls.every((request) => !request.url().includes(key.text)));
  assert.equal(await page.evaluate(() => localStorage.length), 0);
}));

test("the link to a removal names no board that exists", inBrowser({}, async ({ page }) => {
  const service = await startService({ clock: CLOCK });
  await page.goto(`${service.base}/swagger-ui/#/boards/removeBoard`);
  const operation = page.locator("#operations-boards-removeBoard");
  const name = await operation.locator("tr[data-param-name=board] input").inputValue();
  const { items } = await service.call("GET", "/v1/boards");
  assert.ok(name !== "" && items.every(({ board }) => board !== name), name);
}));

test("a page of another origin cannot show it in a frame", inBrowser({}, async ({ page, allow }) => {
  const service = await startService({ clock: CLOCK });
  const site = await startSite({ "/": `<!doctype html><title>t</title><iframe src="${service.base}/swagger-ui/"></iframe>` });
  allow(/frame-ancestors/);
  const violation = page.waitForEvent("console", (message) => /frame-ancestors/.test(message.text()));
  await page.goto(site.base);
  await violation;
  const frames = page.frames().filter((frame) => frame.url().startsWith(service.base));
  for (const frame of frames) assert.equal(await frame.locator(".swagger-ui").count(), 0);
}));
