// Tests of attributes of subjects in the console: rankings show names, the page of a subject shows and changes all of
// them, and a board is defined that has those of another.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkAccessibility, makeKey, startService } from "./harness.mjs";
import { becomes, BOARDS, CLOCK, inUtc, lines, ranks, requestsOf, visit } from "./console.mjs";

const REFUSED = /status of (409|422)/;

/** Sends JSON as it is written. */
async function send(service, method, path, body) {
  const response = await fetch(`${service.base}/v1/boards/${path}`, { method, headers: { "content-type": "application/json" }, body });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
}

const textOf = async (service, path) => (await fetch(`${service.base}/v1/boards/${path}`)).text();

/** Returns what is typed in the form, such as `name "Ann"`. */
const typed = (page) =>
  page.locator(".attributes li").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("input")].map(({ value }) => value).join(" ")));

describe("attributes in the console", { concurrency: 4 }, () => {
  test("rankings show the names of subjects", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { u1: 5, u2: 3 });
    await send(service, "PUT", "hot-posts/subjects/u1/attributes", '{"name": "<b>Ann</b>", "level": 3}');
    await visit(page, service, "boards/hot-posts");
    await ranks(page, ["1 u1 <b>Ann</b> 5", "2 u2 3"]);
    await checkAccessibility(page);
    // A name alone is a change.
    await send(service, "PATCH", "hot-posts/subjects/u2/attributes", '{"name": 7}');
    await ranks(page, ["1 u1 <b>Ann</b> 5", "2 u2 7 3"]);
    await send(service, "PATCH", "hot-posts/subjects/u2/attributes", '{"name": ["no text"]}');
    await ranks(page, ["1 u1 <b>Ann</b> 5", "2 u2 3"]);
    await page.locator(".ranking a").first().click();
    await becomes(() => page.locator(".title .name").textContent(), "<b>Ann</b>");
    await ranks(page, ["1 u1 <b>Ann</b> 5", "2 u2 3"]);
  }));

  test("rankings of keys and of periods show them too", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.call("PUT", "/v1/boards/genres", { metric: "COUNT(24h, play, song BY genre)", slot: "1h" });
    await service.call("PUT", "/v1/boards/cup", { metric: "COUNT(all, goal, player)", season: { every: "manual" }, attributes: "hot-posts" });
    const increments = [{ subject: "s1", by: "jazz", attributes: { name: "So What" } }, { subject: "s1", by: "rock" }];
    await service.call("POST", "/v1/boards/genres/increments", { increments });
    await service.call("POST", "/v1/boards/cup/increments", { subject: "u1", attributes: { name: "Ann" } });
    await visit(page, service, "boards/genres");
    await becomes(() => page.locator(".best").allTextContents(), ["1. s1 So What 1", "1. s1 1"]);
    await visit(page, service, "boards/genres/subjects/s1?by=jazz");
    await becomes(() => typed(page), ['name "So What"']);
    await visit(page, service, "boards/genres/subjects/s1?by=rock");
    await page.getByRole("button", { name: "Add an attribute" }).waitFor();
    assert.deepEqual(await typed(page), []);
    await service.call("POST", "/v1/boards/cup/close?period=1");
    await visit(page, service, "boards/cup?period=1");
    await ranks(page, ["1 u1 Ann 1"]);
    await page.getByText("Attributes of its subjects are those of the board hot-posts.").waitFor();
    await page.locator(".ranking a").first().click();
    await page.getByText("They are those of the board hot-posts", { exact: false }).waitFor();
    await becomes(() => typed(page), ['name "Ann"']);
  }));

  test("the attributes of a subject are added, changed and removed", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    const own = '{"huge":12345678901234567890.10,"name":"Ann","tags":["a",{"b":null}]}';
    await send(service, "PUT", "hot-posts/subjects/a%2F1/attributes", own);
    await visit(page, service, "boards/hot-posts/subjects/a%2F1");
    const form = page.locator(".attributes");
    await form.waitFor();
    const tells = await page.evaluate(() => JSON.parse("1", (_, __, context) => context?.source) === "1");
    assert.ok(tells, "this browser tells the text of numbers");
    await becomes(() => typed(page), ["huge 12345678901234567890.10", 'name "Ann"', 'tags ["a", {"b": null}]']);
    await checkAccessibility(page);
    const add = form.getByRole("button", { name: "Add an attribute" });
    const save = form.getByRole("button", { name: "Save" });
    const status = form.getByRole("status");
    await save.click();
    await becomes(() => status.textContent(), "Nothing has changed.");

    const patches = requestsOf(page, /attributes$/);
    // Another page sets one meanwhile, which stays.
    await send(service, "PATCH", "hot-posts/subjects/a%2F1/attributes", '{"other": true}');
    await form.getByLabel("Value of attribute 2, as JSON").fill('"Eve 👍"');
    await add.click();
    await form.getByLabel("Name of attribute 4").fill("level");
    await form.getByLabel("Value of attribute 4, as JSON").fill("Lots");
    await save.click();
    await form.getByText("The value of “level” is not JSON. Texts are in quotes", { exact: false }).waitFor();
    await form.getByLabel("Value of attribute 4, as JSON").fill("0.100");
    await form.getByRole("button", { name: "Remove attribute 3" }).click();
    assert.equal(await add.evaluate((button) => document.activeElement === button), true);
    assert.equal(await form.locator(".notice").count(), 0);
    await save.click();
    await becomes(() => status.textContent(), "Saved.");
    const sent = patches.filter((request) => request.method() === "PATCH").map((request) => request.postData());
    assert.deepEqual(sent, ['{"name":"Eve 👍","level":0.100,"tags":null}']);
    const now = '{"huge":12345678901234567890.10,"level":0.100,"name":"Eve 👍","other":true}';
    assert.ok((await textOf(service, "hot-posts/subjects/a%2F1/attributes")).includes(now));
    await becomes(() => typed(page), ["huge 12345678901234567890.10", "level 0.100", 'name "Eve 👍"', "other true"]);

    // What the service refuses stays in the boxes.
    allow(REFUSED);
    await form.getByLabel("Name of attribute 4").fill("no name");
    await save.click();
    await form.getByText("the name of an attribute has", { exact: false }).waitFor();
    await form.getByLabel("Name of attribute 4").fill("level");
    await save.click();
    await form.getByText("“level” is there twice.").waitFor();
    for (const _ of [1, 2, 3, 4]) await form.getByRole("button", { name: "Remove attribute 1" }).click();
    await save.click();
    await becomes(() => status.textContent(), "Saved. The subject has no attributes.");
    assert.deepEqual((await service.call("GET", "/v1/boards/hot-posts/subjects/a%2F1/attributes")).attributes, {});
    await checkAccessibility(page);
  }));

  test("a page that may only read shows them, and says nothing where there are none", inUtc({ device: "phone" }, async ({ page }) => {
    const key = makeKey({ scopes: ["admin"], boards: ["*"] });
    const service = await startService({ clock: CLOCK, config: `anonymous = "read"\n${BOARDS}${key.table}`, key: key.text });
    await service.count("hot-posts", { a: 1, b: 1 });
    await service.call("PUT", "/v1/boards/hot-posts/subjects/a/attributes", { name: "Ann", about: "x".repeat(300) });
    await visit(page, service, "boards/hot-posts/subjects/a");
    const section = page.getByRole("region", { name: "Attributes" });
    await becomes(() => section.locator("tbody tr").allTextContents(), [`about"${"x".repeat(300)}"`, 'name"Ann"']);
    assert.equal(await section.getByRole("button").count(), 0);
    const { width, view } = await page.evaluate(() => ({ width: document.documentElement.scrollWidth, view: innerWidth }));
    assert.ok(width <= view, `${width} > ${view}`);
    await checkAccessibility(page);
    await visit(page, service, "boards/hot-posts");
    await ranks(page, ["1 b 1", "1 a Ann 1"]);
    await page.locator(".ranking a").first().click();
    await page.getByRole("heading", { name: "b", exact: true }).waitFor();
    assert.equal(await section.count(), 0);
  }));

  test("a board is defined that has the attributes of another", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await visit(page, service, "define");
    await page.getByLabel("Name of the board").fill("kills");
    await page.getByText("More: further windows", { exact: false }).click();
    const keeper = page.getByLabel("Attributes of subjects are those of the board");
    allow(REFUSED);
    await keeper.fill("Hot Posts");
    await page.locator(".error", { hasText: "a board's name is" }).waitFor();
    await keeper.fill("players");
    await page.getByText("board 'kills' names board 'players' for its attributes, which does not exist", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Define" }).click();
    await page.getByText("Attributes of its subjects are those of the board players.").waitFor();
    assert.equal((await service.call("GET", "/v1/boards/kills")).attributes, "players");
    await service.count("kills", { a: 1 });
    await ranks(page, ["1 a 1"]);
    await page.locator(".ranking a").first().click();
    await page.getByText("board 'kills' names board 'players' for its attributes, which does not exist", { exact: false }).waitFor();
    assert.deepEqual(await lines(page), ["1 a 1"]);
  }));
});
