// The documents as a site: it is built, no link or anchor of it is dead, its pages are light and accessible, and they are
// found by their words.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { extname, join } from "node:path";
import { before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { ROOT, checkAccessibility, inBrowser, startSite } from "./harness.mjs";

const BUILT = join(ROOT, "site/dist");
const REPOSITORY = "https://repository.example/rolltop";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png" };
/** The front page, a long one, and one of the API's reference. */
const SHOWN = ["index.html", "architecture.html", "reference/events.html"];
/** What a page may weigh without pictures, as it is transferred. */
const BUDGET = 100_000;
/** A page that grows with each change, and is not read to learn something. */
const GROWING = "changelog.html";

let site;

before(async () => {
  const env = { ...process.env, ROLLTOP_SITE_REPOSITORY: REPOSITORY };
  // Tests beside this one have times to keep.
  execFileSync("nice", ["npm", "--prefix", join(ROOT, "site"), "run", "--silent", "build"], { env, stdio: ["ignore", "ignore", "inherit"] });
  site = await startSite({
    "*": (request, response) => {
      const path = decodeURIComponent(new URL(request.url, "http://site").pathname).slice(1) || "index.html";
      if (!existsSync(join(BUILT, path))) return response.writeHead(404).end();
      const type = TYPES[extname(path)] ?? "application/octet-stream";
      response.writeHead(200, { "content-type": type }).end(readFileSync(join(BUILT, path)));
    },
  });
});

/** Returns the paths of the pages. */
const pages = () => readdirSync(BUILT, { recursive: true }).filter((path) => path.endsWith(".html") && path !== "404.html");

test("no link and no anchor is dead, and every page is listed", () => {
  const texts = new Map(pages().map((path) => [path, readFileSync(join(BUILT, path), "utf8")]));
  const anchors = new Map([...texts].map(([path, text]) => [path, new Set([...text.matchAll(/ (?:id|name)="([^"]+)"/g)].map(([, id]) => id))]));
  const dead = [];
  let count = 0;
  for (const [path, text] of texts) {
    for (const [, given] of text.matchAll(/ (?:href|src|srcset)="([^"]+)"/g)) {
      const { origin, pathname, hash } = new URL(given.replaceAll("&amp;", "&"), `http://site/${path}`);
      if (origin !== "http://site") continue;
      count += 1;
      const target = decodeURIComponent(pathname).slice(1) || "index.html";
      const anchor = decodeURIComponent(hash).slice(1);
      if (!existsSync(join(BUILT, target))) dead.push(`${path}: there is no ${given}`);
      else if (anchor && !anchors.get(target)?.has(anchor)) dead.push(`${path}: there is no anchor ${given}`);
    }
  }
  assert.deepEqual(dead, []);
  assert.ok(count > 1000, `${count} links`);
  const listed = new Set([...texts.get("index.html").matchAll(/ href="\/([^"#]*)"/g)].map(([, path]) => path));
  const missing = [...texts.keys()].filter((path) => !listed.has(path) && !path.startsWith("reference/") && path !== "index.html");
  assert.deepEqual(missing, [], "docs/README.md lists every page: add these, and those from outside of docs/ in site/pages.mjs too");
});

test("no page weighs more than the budget", (t) => {
  const sizes = new Map();
  const size = (path) => {
    if (!sizes.has(path)) sizes.set(path, gzipSync(readFileSync(join(BUILT, path)), { level: 9 }).length);
    return sizes.get(path);
  };
  const weights = pages().map((path) => {
    const text = readFileSync(join(BUILT, path), "utf8");
    const files = [...text.matchAll(/<(?:link rel="(?:preload stylesheet|modulepreload)"|script type="module")[^>]* (?:href|src)="\/([^"]+)"/g)];
    assert.ok(files.length >= 5, `${path} loads ${files.length} files`);
    return [path, files.reduce((sum, [, file]) => sum + size(file), size(path))];
  });
  weights.sort(([, a], [, b]) => b - a);
  for (const [path, weight] of weights.slice(0, 5)) t.diagnostic(`${path}: ${weight} bytes`);
  assert.deepEqual(weights.filter(([path, weight]) => weight > BUDGET && path !== GROWING), []);
});

for (const path of SHOWN) {
  for (const device of ["desktop", "phone"]) {
    test(`${path} is accessible, light and dark: ${device}`, inBrowser({ device }, async ({ page }) => {
      await page.goto(`${site.base}/${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(beyond <= 0, `${beyond} pixels do not fit the width`);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        await page.waitForFunction((dark) => document.documentElement.classList.contains("dark") === dark, colorScheme === "dark");
        await checkAccessibility(page);
        if (process.env.ROLLTOP_TEST_PICTURES) await page.screenshot({ path: join(ROOT, `target/browser/${path.replace(/\W/g, "-")}-${device}-${colorScheme}.png`) });
      }
    }));
  }
}

test("the search finds pages by their words", inBrowser({}, async ({ page }) => {
  await page.goto(site.base);
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("searchbox").fill("season");
  const result = page.locator(".results a").filter({ hasText: "Seasons" }).first();
  await result.click();
  await page.waitForURL(/seasons\.html/);
  await page.getByRole("heading", { name: "Seasons", level: 1 }).waitFor();
}));

test("the picture of the front page follows the switch", inBrowser({}, async ({ page }) => {
  await page.goto(site.base);
  const picture = page.locator("picture img");
  assert.match(await picture.evaluate((image) => image.currentSrc), /console-light/);
  await page.getByRole("switch").first().click();
  await page.waitForFunction(() => /console-dark/.test(document.querySelector("picture img").currentSrc));
}));
