// Makes the pictures of the console in the README: node tests/browser/pictures.mjs (after cargo build).
//
// A day of made-up likes on a simulated clock, always the same.

import { join } from "node:path";
import { test } from "node:test";
import { inBrowser, Random, ROOT, startService, until } from "./harness.mjs";

const NOW = Date.parse("2026-11-23T15:42:10Z");
const HOUR = 3_600_000;
const POSTS = [
  "first-snow", "street-food", "tiny-house", "night-train", "old-bridge", "rooftop-garden", "lost-cat", "jazz-bar",
  "sea-glass", "wild-horses", "paper-kite", "red-canoe", "moonlight", "corner-bakery", "lighthouse", "fox-cubs",
];

const service = await startService({ clock: new Date(NOW - 25 * HOUR).toISOString() });
const random = new Random(7);
for (let from = NOW - 25 * HOUR; from < NOW; from += HOUR / 6) {
  await service.setClock(new Date(from).toISOString());
  // Few at night, most in the evening, and posts that become popular for some hours.
  const hour = new Date(from).getUTCHours();
  const number = Math.round((14 + 12 * Math.sin(((hour - 11) / 24) * 2 * Math.PI)) * (0.7 + 0.6 * random.number()));
  const events = Array.from({ length: number }, () => {
    const favorite = Math.floor(((from / HOUR) % 48) / 6);
    const post = random.number() < 0.25 ? favorite : Math.floor(POSTS.length * random.number() ** 2.2);
    return { type: "like", fields: { post_id: POSTS[post] } };
  });
  await service.call("POST", "/v1/events", { events });
}
await service.setClock(new Date(NOW).toISOString());

for (const scheme of ["light", "dark"]) {
  const options = { scheme, reducedMotion: true, context: { viewport: { width: 1048, height: 760 }, deviceScaleFactor: 1.5, timezoneId: "UTC" } };
  test(scheme, inBrowser(options, async ({ page }) => {
    await page.goto(`${service.base}/#/boards/hot-posts`);
    await until(async () => (await page.locator(".ranking li").count()) === 10, "the ranking");
    await page.screenshot({ path: join(ROOT, `docs/console-${scheme}.png`) });
  }));
}
