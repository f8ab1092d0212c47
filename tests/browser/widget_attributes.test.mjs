// Tests of names, pictures and links of subjects in `<rolltop-board>`, which are attributes of the subjects.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkAccessibility, inBrowser, ROOT, startService, startSite, until } from "./harness.mjs";

const SCRIPT = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");
const PICTURE = { type: "image/svg+xml", body: '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="teal"/></svg>' };

/** Starts a service, and a site with a widget of a board. */
async function start(attributes, { headers = {} } = {}) {
  const referrers = [];
  const pages = {
    "/rolltop-board.js": { type: "text/javascript; charset=utf-8", body: SCRIPT },
    "/ann.svg": (request, response) => {
      referrers.push(request.headers.referer);
      response.writeHead(200, { "content-type": PICTURE.type }).end(PICTURE.body);
    },
    "/eve.svg": PICTURE,
  };
  const site = await startSite(pages);
  const service = await startService({ clock: "2026-01-02T10:07:00Z", origins: [site.base] });
  const body = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A site</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <script type="module" src="/rolltop-board.js"></script></head>
    <body><main><h1>A site</h1><rolltop-board src="${service.base}" board="hot-posts" ${attributes}></rolltop-board></main></body></html>`;
  pages["/"] = { body, type: "text/html; charset=utf-8", headers };
  const set = (subject, attributes, method = "PATCH") =>
    service.call(method, `/v1/boards/hot-posts/subjects/${encodeURIComponent(subject)}/attributes`, attributes);
  return { service, site, set, referrers };
}

/** Returns what the lines show: text, address of the picture, and of the link. */
const lines = (page) =>
  page.evaluate(() => [...document.querySelector("rolltop-board").shadowRoot.querySelectorAll("[part~=line]")].map((line) => {
    const subject = line.querySelector("[part~=subject]");
    const picture = line.querySelector("[part=picture]");
    return [subject.textContent, picture && (picture.querySelector("img")?.src ?? ""), subject.getAttribute("href")];
  }));

/** Waits until a widget shows these lines. */
async function showing(page, expected) {
  let shown;
  const isShown = async () => JSON.stringify((shown = await lines(page))) === JSON.stringify(expected);
  await until(isShown, "the lines").catch(() => assert.deepEqual(shown, expected));
}

const change = (page, attributes) =>
  page.evaluate((attributes) => {
    const widget = document.querySelector("rolltop-board");
    for (const [name, value] of Object.entries(attributes)) value === null ? widget.removeAttribute(name) : widget.setAttribute(name, value);
  }, attributes);

test("lines show names, pictures and links of subjects, and follow them", inBrowser({}, async ({ page }) => {
  const { service, site, set, referrers } = await start('name-from="name" picture-from="picture" link-from="site" href="/posts/{subject}"', {
    headers: { "content-security-policy": "default-src 'self'; script-src 'self'; connect-src *; require-trusted-types-for 'script'" },
  });
  await service.count("hot-posts", { u1: 5, u2: 3, u3: 1 });
  await set("u1", { name: "Ann", picture: "/ann.svg", site: "https://ann.example/me", level: 3 });
  await set("u2", { name: 12 });
  const opened = [];
  page.on("request", (request) => request.url().includes("/v1/stream") && opened.push(new URL(request.url()).searchParams.get("view")));
  await page.goto(site.base);
  const posts = (subject) => `${site.base}/posts/${subject}`;
  await showing(page, [
    ["Ann", `${site.base}/ann.svg`, "https://ann.example/me"],
    ["12", "", posts("u2")],
    ["u3", "", posts("u3")],
  ]);
  assert.deepEqual(opened, ["hot-posts,limit=10,attributes=name;picture;site"]);
  const image = page.locator("rolltop-board img");
  await until(() => image.evaluate((image) => image.naturalWidth > 0), "the picture");
  const about = await image.evaluate(({ alt, loading, referrerPolicy, clientWidth, clientHeight }) =>
    [alt, loading, referrerPolicy, clientWidth, clientHeight]);
  assert.deepEqual(about, ["", "lazy", "no-referrer", 28, 28]);
  assert.deepEqual(referrers, [undefined]);
  await checkAccessibility(page);
  const width = () => page.evaluate(() => document.querySelector("rolltop-board").shadowRoot.querySelector("[part=picture]").clientWidth);
  assert.equal(await width(), 28);

  // An attribute alone is a change, and so is one that goes.
  await set("u2", { name: "Bob <b>", picture: "/eve.svg" });
  await set("u1", { picture: null, site: null });
  await showing(page, [["Ann", "", posts("u1")], ["Bob <b>", `${site.base}/eve.svg`, posts("u2")], ["u3", "", posts("u3")]]);
  await service.count("hot-posts", { u2: 10 });
  await showing(page, [["Bob <b>", `${site.base}/eve.svg`, posts("u2")], ["Ann", "", posts("u1")], ["u3", "", posts("u3")]]);
  await set("u2", {}, "PUT");
  await showing(page, [["u2", "", posts("u2")], ["Ann", "", posts("u1")], ["u3", "", posts("u3")]]);

  // The function of the page comes first.
  await page.evaluate(() => (document.querySelector("rolltop-board").nameOf = (subject) => (subject === "u1" ? "me" : undefined)));
  await showing(page, [["u2", "", posts("u2")], ["me", "", posts("u1")], ["u3", "", posts("u3")]]);
  await page.evaluate(() => (document.querySelector("rolltop-board").nameOf = null));

  await change(page, { "picture-from": null, "link-from": " " });
  await until(() => opened.length === 2, "another stream");
  assert.equal(opened[1], "hot-posts,limit=10,attributes=name");
  await showing(page, [["u2", null, posts("u2")], ["Ann", null, posts("u1")], ["u3", null, posts("u3")]]);
  await change(page, { "name-from": null });
  await showing(page, [["u2", null, posts("u2")], ["u1", null, posts("u1")], ["u3", null, posts("u3")]]);
  await until(() => opened.length === 3, "a stream without attributes");
  assert.equal(opened[2], "hot-posts,limit=10");
}));

test("attributes of subjects are text, and only addresses of the web", inBrowser({ device: "phone" }, async ({ page, allow }) => {
  allow(/404|ERR_NAME_NOT_RESOLVED|another host: https:\/\/pictures\.example\/ok/);
  const { service, site, set } = await start('name-from="name" picture-from="picture" link-from="picture" tie');
  const refused = [
    "javascript:window.broken=1", " \tjava\nscript:window.broken=1", "data:image/svg+xml,<svg/>", "data:text/html,<script>1</script>",
    "blob:null/1", "file:///etc/passwd", "ftp://pictures.example/a", "https://bank.example@127.0.0.1/a", "http://[", "  ", "vbscript:x", "mailto:a@b.example",
  ];
  const others = [7, true, ["/ann.svg"], { url: "/ann.svg" }];
  const all = [...refused, ...others];
  await service.count("hot-posts", Object.fromEntries(all.map((_, at) => [`s${at}`, 100 - at])));
  for (const [at, picture] of all.entries()) await set(`s${at}`, { name: `<img src=x onerror="window.broken = 1">${at}`, picture });
  await page.goto(site.base);
  await change(page, { limit: "100" });
  await showing(page, all.map((_, at) => [`<img src=x onerror="window.broken = 1">${at}`, "", null]));
  assert.equal(await page.evaluate(() => window.broken), undefined);

  // Relative ones are of the page, and a picture that cannot be loaded leaves its place empty.
  for (const [at] of all.entries()) await service.call("DELETE", `/v1/boards/hot-posts/subjects/s${at}`);
  await service.count("hot-posts", { a: 3, b: 2, c: 1 });
  await set("a", { name: { first: "Ann" }, picture: "ann.svg?x=1#y" });
  await set("b", { name: " \n", picture: "https://pictures.example/ok" });
  await set("c", { name: "x".repeat(300), picture: "/none.svg" });
  await showing(page, [
    ["a", `${site.base}/ann.svg?x=1#y`, `${site.base}/ann.svg?x=1#y`],
    ["b", "", "https://pictures.example/ok"],
    ["x".repeat(300), "", `${site.base}/none.svg`],
  ]);
  const { width, view } = await page.evaluate(() => ({ width: document.documentElement.scrollWidth, view: innerWidth }));
  assert.ok(width <= view, `${width} > ${view}`);
  await checkAccessibility(page);
  // Names of attributes that objects have by themselves are no attributes.
  await change(page, { "name-from": "constructor", "picture-from": "__proto__", "link-from": "toString" });
  await showing(page, [["a", "", null], ["b", "", null], ["c", "", null]]);
}));

test("what is no name of an attribute is said", inBrowser({}, async ({ page, allow }) => {
  allow(/422/);
  const { site } = await start('name-from="no name"');
  await page.goto(site.base);
  await page.getByText("'attributes' must be names with commas between them").waitFor();
}));

test("polled rankings, and those of a season, have attributes too", inBrowser({}, async ({ page }) => {
  const { service, site } = await start('name-from="name"');
  await service.call("PUT", "/v1/boards/people", { metric: "COUNT(all, kill, player)", season: { every: "1mo" } });
  await service.call("POST", "/v1/boards/people/increments", { subject: "u1", amount: 2, attributes: { name: "Ann" } });
  await page.goto(site.base);
  await change(page, { board: "people", period: "2026-01" });
  await showing(page, [["Ann", null, null]]);
  assert.equal(await page.locator("rolltop-board").getAttribute("data-state"), "polling");
}));

test("lines show what orders equal scores, where the page wants it", inBrowser({ context: { locale: "en-GB", timezoneId: "UTC" } }, async ({ page }) => {
  const { service, site } = await start("");
  await service.call("PUT", "/v1/boards/laps", { metric: "COUNT(24h, lap, driver)", slot: "1h", tie_break: { most: 1000000, order: "asc" } });
  await service.call("PUT", "/v1/boards/firsts", { metric: "COUNT(24h, lap, driver)", slot: "1h", ties: "first" });
  for (const [subject, tie_break] of [["a", 12345], ["b", 20]]) await service.call("POST", "/v1/boards/laps/increments", { subject, amount: 1, tie_break });
  await service.count("firsts", { a: 1 });
  await page.goto(site.base);
  const ties = () => page.evaluate(() => [...document.querySelector("rolltop-board").shadowRoot.querySelectorAll("[part=tie]")].map((tie) => tie.textContent));
  await change(page, { board: "laps" });
  await showing(page, [["b", null, null], ["a", null, null]]);
  assert.deepEqual(await ties(), []);
  await change(page, { tie: "" });
  await until(async () => (await ties()).length === 2, "the ties");
  assert.deepEqual(await ties(), ["20", "12\u202f345"]);
  await checkAccessibility(page);
  await change(page, { board: "firsts" });
  await showing(page, [["a", null, null]]);
  assert.deepEqual(await ties(), ["02/01/2026, 10:07:00"]);
  await change(page, { board: "hot-posts" });
  await service.count("hot-posts", { c: 1 });
  await showing(page, [["c", null, null]]);
  assert.deepEqual(await ties(), []);
}));
