// The API explorer at /swagger-ui/ in a browser: it works under its content security policy, and no page can frame it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inBrowser, startService, startSite } from "./harness.mjs";

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
