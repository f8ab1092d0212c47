// Tests of boards with a ranking for each key in the console: the keys, the ranking of one, its subjects, and removals.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkAccessibility, makeKey, startService } from "./harness.mjs";
import { becomes, CLOCK, figure, focused, heights, bars, inUtc, lines, ranks, requestsOf, visit } from "./console.mjs";
import { ADMIN } from "./keys.mjs";

const REFUSED = /status of 422/;

const CONFIG = `
[boards.by-community]
metric = "COUNT(24h, like, post_id BY community)"
slot = "1h"
windows = ["1h/1m"]
max_keys = 500

[boards.hot-posts]
metric = "COUNT(24h, like, post_id)"
slot = "1h"
`;

/** Counts `[key, subject, amount, at]`. */
async function countIn(service, items, board = "by-community") {
  const increments = items.map(([by, subject, amount, at]) => ({ by, subject, amount, at }));
  const { rejected } = await service.call("POST", `/v1/boards/${board}/increments`, { increments });
  assert.deepEqual(rejected, []);
}

async function start(items = [], config = CONFIG) {
  const service = await startService({ clock: CLOCK, config });
  if (items.length > 0) await countIn(service, items);
  return service;
}

/** Returns the keys of the list. */
const keys = (page) => page.locator(".rankings .boards-name").evaluateAll((all) => all.map((one) => one.textContent));

/** Returns the row of a key. */
const row = (page, key) => page.locator(".rankings li", { has: page.getByText(key, { exact: true }) });

/** Returns what the ranking of a key has, as `[subject, score]`. */
const rankingOf = async (service, by) => {
  const { items } = await service.call("GET", `/v1/boards/by-community/rankings?${new URLSearchParams({ by })}`);
  return items.map(({ subject, score }) => [subject, score]);
};

const back = (page) => page.getByRole("navigation", { name: "Board" }).getByRole("link");

// Most of the time is spent waiting.
describe("the console", { concurrency: 4 }, () => {
  test("boards are listed with the number of their keys, without an error", inUtc({}, async ({ page }) => {
    const service = await start([["rust", "a", 2], ["rust", "b", 1], ["art", "a", 1]]);
    const reads = requestsOf(page, /\/v1\/boards\/by-community/);
    await visit(page, service);
    const listed = page.locator(".boards > li", { has: page.getByText("by-community", { exact: true }) });
    const figures = "3.0 events per hour2 keys3 rankedlast 24 hours, 1 hourfloor 3 Mar 11:00, head 10:00";
    await becomes(() => listed.locator(".boards-figures").textContent(), figures);
    assert.ok(reads.length > 0);
    await page.getByRole("link", { name: "by-community" }).click();
    await page.getByRole("heading", { name: "A ranking for each community" }).waitFor();
    await becomes(() => heights(page), bars(24, { 23: 100 }), "the slots of all keys together");
  }));

  test("keys are listed by name, a page at a time, with the first lines of each", inUtc({}, async ({ page }) => {
    const many = Array.from({ length: 30 }, (_, index) => [`topic-${index + 10}`, "p", index + 1]);
    const service = await start([...many, ["rust", "a", 1], ["rust", "b", 7], ["rust", "c", 3], ["rust", "d", 2]]);
    await visit(page, service, "boards/by-community");
    const expected = ["rust", ...Array.from({ length: 30 }, (_, index) => `topic-${index + 10}`)];
    await becomes(() => keys(page), expected.slice(0, 25));
    await page.getByText("31 keys of at most 500", { exact: true }).waitFor();
    assert.equal(await row(page, "rust").textContent(), "rust 4 subjects1. b 72. c 33. d 2");
    // What is counted shows without a reload.
    await countIn(service, [["rust", "a", 10], ["art", "z", 5]]);
    await becomes(() => row(page, "rust").textContent(), "rust 4 subjects1. a 112. b 73. c 3");
    await becomes(() => keys(page), ["art", ...expected.slice(0, 24)]);
    await page.getByRole("link", { name: "Next keys" }).click();
    await becomes(() => keys(page), expected.slice(24));
    await becomes(() => focused(page), "h2 A ranking for each community", "the focus");
    await page.reload();
    await becomes(() => keys(page), expected.slice(24), "the same page after a reload");
    assert.equal(await page.getByRole("link", { name: "Next keys" }).count(), 0);
    await page.getByRole("link", { name: "From the beginning" }).click();
    await becomes(() => keys(page), ["art", ...expected.slice(0, 24)]);
    assert.equal(await page.getByRole("link", { name: "From the beginning" }).count(), 0);
    await page.goBack();
    await becomes(() => keys(page), expected.slice(24), "back to the page before");
  }));

  test("keys are searched by their beginning, the exact one included", inUtc({}, async ({ page }) => {
    const topics = Array.from({ length: 30 }, (_, index) => `topic-${index + 10}`);
    const names = ["art", "mus", "music", "musicals", "Music", "näh", "rust", ...topics];
    const service = await start(names.map((name) => [name, "p", 1]));
    await visit(page, service, "boards/by-community");
    const search = page.getByRole("searchbox", { name: "Search keys by their beginning" });
    await search.fill("mus");
    await becomes(() => keys(page), ["mus", "music", "musicals"]);
    await search.fill("music");
    await becomes(() => keys(page), ["music", "musicals"]);
    await search.fill("musical");
    await becomes(() => keys(page), ["musicals"]);
    await search.fill("n");
    await becomes(() => keys(page), ["näh"]);
    await search.fill("topic-");
    await becomes(async () => (await keys(page)).length, 25);
    await page.getByRole("link", { name: "Next keys" }).click();
    await becomes(() => keys(page), names.slice(-5));
    assert.equal(await page.getByRole("link", { name: "Next keys" }).count(), 0);
    await search.fill("topic-1");
    await becomes(() => keys(page), names.slice(7, 17), "a search begins at its first key");
    await page.reload();
    await becomes(() => keys(page), names.slice(7, 17), "the same after a reload");
    assert.equal(await search.inputValue(), "topic-1");
    await search.fill("nobody & co");
    await page.getByText("No key begins with “nobody & co”").waitFor();
    assert.deepEqual(await keys(page), []);
    await page.getByRole("link", { name: "Show the ranking of this key" }).click();
    await page.getByRole("heading", { level: 1, name: "nobody & co" }).waitFor();
    await page.getByText("Nothing has been counted in this window yet").waitFor();
    // The event that is shown counts in this ranking.
    const command = await page.getByRole("region", { name: "Command" }).textContent();
    await service.call("POST", "/v1/events", JSON.parse(/-d '(.*)'/.exec(command)[1]));
    await ranks(page, ["1 post-1 1"]);
  }));

  test("a key opens by a click, and stays in the address of its subjects and windows", inUtc({}, async ({ page }) => {
    const items = Array.from({ length: 12 }, (_, index) => ["art", `s-${index + 10}`, 100 - index]);
    const earlier = "2026-03-04T05:10:00Z";
    items.push(["rust", "a", 5], ["rust", "b", 3, earlier], ["rust", "b", 1], ["art", "b", 50]);
    const service = await start(items);
    await visit(page, service, "boards/by-community");
    await page.getByRole("link", { name: "rust", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "rust" }).waitFor();
    await ranks(page, ["1 a 5", "2 b 4"]);
    assert.match(page.url(), /#\/boards\/by-community\?by=rust$/);
    assert.equal(await page.title(), "rust in by-community – Rolltop");
    await page.getByText("2 subjects ranked", { exact: true }).waitFor();
    assert.equal(await page.locator(".strip").count(), 0, "the slots of the board are those of all keys");
    await page.reload();
    await ranks(page, ["1 a 5", "2 b 4"]);

    await page.getByRole("link", { name: "b", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "b" }).waitFor();
    assert.match(page.url(), /#\/boards\/by-community\/subjects\/b\?by=rust$/);
    await becomes(() => figure(page, "Score").textContent(), "4");
    await becomes(() => figure(page, "Rank").textContent(), "2 of 2");
    await becomes(() => heights(page), bars(24, { 18: 100, 23: 33 }));
    await ranks(page, ["1 a 5", "2 b 4"]);
    assert.equal(await page.title(), "b in rust in by-community – Rolltop");
    await page.reload();
    await becomes(() => figure(page, "Score").textContent(), "4");
    await page.getByRole("list", { name: "Ranking around b" }).getByRole("link", { name: "a" }).click();
    await becomes(() => figure(page, "Rank").textContent(), "1 of 2", "a neighbor is one of the same key");
    await back(page).first().click();
    await ranks(page, ["1 a 5", "2 b 4"]);

    await page.getByRole("navigation", { name: "Windows" }).getByRole("link", { name: "1 hour" }).click();
    await ranks(page, ["1 a 5", "2 b 1"]);
    await page.getByRole("link", { name: "b", exact: true }).click();
    await becomes(() => figure(page, "Score").textContent(), "1");
    assert.deepEqual([...new URLSearchParams(page.url().split("?")[1])].sort(), [["by", "rust"], ["window", "1h"]]);
    await back(page).first().click();
    await ranks(page, ["1 a 5", "2 b 1"]);
    await page.getByLabel("Find a subject by its exact name").fill("b");
    await page.keyboard.press("Enter");
    await becomes(() => figure(page, "Score").textContent(), "1");
    await back(page).last().click();
    await becomes(() => row(page, "art").locator(".best").first().textContent(), "1. s-10 100");
    await page.getByRole("link", { name: "art", exact: true }).click();
    await page.getByLabel("Show").selectOption("25");
    await becomes(async () => (await lines(page)).length, 13);
    assert.match(page.url(), /by=art/);
  }));

  test("a window lists the keys that are ranked in it", inUtc({}, async ({ page }) => {
    const service = await start([["now", "a", 1], ["earlier", "a", 1, "2026-03-04T05:10:00Z"]]);
    await visit(page, service, "boards/by-community");
    await becomes(() => keys(page), ["earlier", "now"]);
    await page.getByRole("navigation", { name: "Windows" }).getByRole("link", { name: "1 hour" }).click();
    await becomes(() => keys(page), ["now"]);
    await page.getByRole("searchbox").fill("e");
    await page.getByText("No key begins with “e”").waitFor();
    assert.match(page.url(), /window=1h/);
  }));

  test("first lines whose subjects were removed say so", inUtc({}, async ({ page }) => {
    const service = await start([["rust", "a", 3], ["rust", "b", 2], ["rust", "c", 1]]);
    await page.route("**/rankings/by*", async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const line of json.rankings[0].items) if (line.subject !== "b") line.subject = null;
      await route.fulfill({ response, json });
    });
    await visit(page, service, "boards/by-community");
    await becomes(() => page.locator(".rankings .best").allTextContents(), ["1. removed 3", "2. b 2", "3. removed 1"]);
    await checkAccessibility(page);
  }));

  test("any key can be opened, read again and searched", inUtc({}, async ({ page }) => {
    const names = ["a/b c", `näh "q" }`, "100% & x=y#z?+", "..", "x,by=y,limit=5", " lead", `["日本","<b>&amp;"]`];
    const service = await start(names.map((name, index) => [name, `of ${name}`, index + 1]));
    for (const [index, name] of names.entries()) {
      await visit(page, service);
      await visit(page, service, "boards/by-community");
      await page.getByRole("searchbox").fill(name);
      const shown = name === " lead" ? "“ lead”" : name;
      await becomes(() => keys(page), [shown]);
      await page.locator(".rankings .boards-name").click();
      await ranks(page, [`1 of ${name} ${index + 1}`]);
      assert.equal(await page.locator("h1").textContent(), shown);
      await page.reload();
      await ranks(page, [`1 of ${name} ${index + 1}`]);
      await page.getByText("live", { exact: true }).waitFor();
      await countIn(service, [[name, `of ${name}`, 100]]);
      await ranks(page, [`1 of ${name} ${index + 101}`]);
      await page.locator(".ranking-subject").click();
      await becomes(() => figure(page, "Score").textContent(), String(index + 101));
      await back(page).first().click();
      await ranks(page, [`1 of ${name} ${index + 101}`]);
      // Browsers take it for a step in a path.
      // The page before shows the same line.
      await becomes(() => page.getByRole("button", { name: "Remove this key …" }).count(), name === ".." ? 0 : 1);
    }
    await visit(page, service, `boards/by-community?${new URLSearchParams({ by: names[0] })}`);
    await page.getByRole("button", { name: "Remove this key …" }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("The key was removed with 1 subject.").waitFor();
    assert.deepEqual(await rankingOf(service, names[0]), []);
    assert.deepEqual(await rankingOf(service, names[1]), [[`of ${names[1]}`, 102]]);
  }));

  test("a ranking follows what is counted for its key alone", inUtc({}, async ({ page, context }) => {
    const service = await start([["rust", "a", 1], ["art", "b", 1]]);
    const other = await context.newPage();
    await visit(page, service, "boards/by-community?by=rust");
    await visit(other, service, "boards/by-community?by=art");
    await ranks(page, ["1 a 1"]);
    await ranks(other, ["1 b 1"]);
    await countIn(service, [["art", "new", 9], ["rust", "new", 4]]);
    await ranks(page, ["1 new 4", "2 a 1"]);
    await ranks(other, ["1 new 9", "2 b 1"]);
    await countIn(service, [["art", "new", 1]]);
    await ranks(other, ["1 new 10", "2 b 1"]);
    assert.deepEqual(await lines(page), ["1 new 4", "2 a 1"]);
  }));

  test("a subject is removed from one key or from all, and a key with all its subjects", inUtc({}, async ({ page }) => {
    const counted = { rust: { a: 5, b: 3 }, art: { a: 2, b: 4 }, chess: { a: 1, c: 1 } };
    const items = Object.entries(counted).flatMap(([by, amounts]) => Object.entries(amounts).map((one) => [by, ...one]));
    const service = await start(items);
    await visit(page, service, "boards/by-community/subjects/a?by=rust&window=1h");
    await page.getByRole("button", { name: "Remove this subject …" }).click();
    await page.getByText("Remove a from the ranking and every slot of rust in by-community?").waitFor();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("a was removed from rust in by-community. New events count again.").waitFor();
    assert.deepEqual(await rankingOf(service, "rust"), [["b", 3]]);
    assert.deepEqual(await rankingOf(service, "art"), [["b", 4], ["a", 2]]);

    await visit(page, service, "boards/by-community/subjects/a?by=art");
    await page.getByRole("button", { name: "Remove this subject …" }).click();
    await page.getByRole("button", { name: "Remove from all keys" }).click();
    await page.getByText("a was removed from 2 keys of by-community. New events count again.").waitFor();
    assert.deepEqual(await rankingOf(service, "art"), [["b", 4]]);
    assert.deepEqual(await rankingOf(service, "chess"), [["c", 1]]);

    await visit(page, service, "boards/by-community?by=rust");
    await ranks(page, ["1 b 3"]);
    await page.getByRole("button", { name: "Remove this key …" }).click();
    await becomes(() => focused(page), "button Keep", "the focus");
    await page.keyboard.press("Enter");
    await becomes(() => focused(page), "button Remove this key …", "the focus");
    assert.deepEqual(await rankingOf(service, "rust"), [["b", 3]]);
    await page.keyboard.press("Enter");
    await page.getByText("Remove rust with all its subjects from by-community?").waitFor();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("The key was removed with 1 subject. New events count again.").waitFor();
    await becomes(() => focused(page), "h1 rust", "the focus");
    await page.getByText("Nothing has been counted in this window yet").waitFor();
    assert.deepEqual(await rankingOf(service, "rust"), []);
    await back(page).click();
    await becomes(() => keys(page), ["art", "chess"]);
  }));

  test("a console that only reads shows keys and removes none", inUtc({}, async ({ page }) => {
    const service = await start([["rust", "a", 5]], `console = "read"\n${CONFIG}`);
    await visit(page, service, "boards/by-community?by=rust");
    await ranks(page, ["1 a 5"]);
    assert.equal(await page.getByRole("button", { name: /Remove/ }).count(), 0);
    await page.getByRole("link", { name: "a", exact: true }).click();
    await becomes(() => figure(page, "Score").textContent(), "5");
    assert.equal(await page.getByRole("button", { name: /Remove/ }).count(), 0);
  }));

  test("an access key that only reads shows keys and removes none", inUtc({}, async ({ page }) => {
    const reader = makeKey({ name: "a reader", scopes: ["read"], boards: ["by-*"] });
    const config = [CONFIG, ADMIN.table, reader.table].join("\n");
    const service = await startService({ clock: CLOCK, key: ADMIN.text, config });
    await countIn(service, [["rust", "a", 5]]);
    await page.addInitScript((key) => sessionStorage.setItem("rolltop.key /", key), reader.text);
    await visit(page, service, "boards/by-community");
    await becomes(() => keys(page), ["rust"]);
    await page.getByRole("link", { name: "rust", exact: true }).click();
    await ranks(page, ["1 a 5"]);
    assert.equal(await page.getByRole("button", { name: /Remove/ }).count(), 0);
    await page.getByRole("link", { name: "a", exact: true }).click();
    await becomes(() => figure(page, "Score").textContent(), "5");
    assert.equal(await page.getByRole("button", { name: /Remove/ }).count(), 0);
  }));

  test("a key that is missing, or one too many, is said with the way out", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await start([["rust", "a", 5]]);
    await service.count("hot-posts", { x: 3 });
    await visit(page, service, "boards/hot-posts?by=rust");
    await page.getByText("This board has no keys").waitFor();
    await page.getByRole("link", { name: "Show the board" }).click();
    await ranks(page, ["1 x 3"]);
    await visit(page, service, "boards/by-community/subjects/a");
    await page.getByRole("alert").getByText("has a ranking for each community").waitFor();
    await page.getByRole("link", { name: "Choose one." }).click();
    await becomes(() => keys(page), ["rust"]);
    await visit(page, service, "boards/by-community?by=rust&window=3d");
    await page.getByRole("link", { name: "Show its window of 24 hours" }).click();
    await ranks(page, ["1 a 5"]);
  }));

  test("a successor is shown beside the ranking of the same key", inUtc({}, async ({ page }) => {
    const service = await start();
    const metric = "COUNT(24h, like, post_id BY community WHERE app = 1)";
    await service.call("PUT", "/v1/boards/by-community/next", { metric, slot: "1h" });
    for (const [community, post_id, app] of [["rust", "a", 0], ["rust", "b", 1], ["rust", "b", 1], ["art", "c", 1]]) {
      await service.call("POST", "/v1/events", { type: "like", fields: { community, post_id, app } });
    }
    await visit(page, service, "boards/by-community");
    await page.getByRole("heading", { name: "Successor" }).waitFor();
    await becomes(() => keys(page), ["art", "rust"]);
    await page.getByRole("button", { name: "Compare all subjects" }).click();
    await page.getByText("a in rust: 1 → none").waitFor();
    await page.getByRole("link", { name: "rust", exact: true }).click();
    const list = (name) => page.getByRole("list", { name, exact: true });
    const ranking = (name) => list(name).locator(".ranking-subject").allTextContents();
    await becomes(() => ranking("Ranking of rust in by-community"), ["b", "a"]);
    await becomes(() => ranking("Ranking of the successor"), ["b"]);
    await page.getByRole("list", { name: "Ranking of the successor" }).getByRole("link").click();
    await becomes(() => figure(page, "Score").textContent(), "2");
  }));

  test("a board with a ranking for each key is defined from fields", inUtc({}, async ({ page, allow }) => {
    allow(/status of (404|422)/);
    const service = await start();
    await visit(page, service, "define");
    await page.getByLabel("Name of the board").fill("sales");
    await page.getByLabel("Rank by").selectOption("SUM");
    await page.getByLabel("with a ranking for each").fill("(country, genre)");
    const metric = page.getByLabel("Metric, which you can also write yourself");
    assert.equal(await metric.inputValue(), "SUM(24h, sale, amount, seller_id BY (country, genre))");
    await page.getByText("More: further windows").click();
    await page.getByLabel("Most keys with a ranking").fill("0");
    const outcome = page.locator(".define [role=status]");
    await outcome.getByText("Not ready yet: see “Most keys with a ranking”").waitFor();
    await page.getByLabel("Most keys with a ranking").fill("20");
    await outcome.getByText("SUM(24h, sale, amount, seller_id BY (country, genre))", { exact: true }).waitFor();
    // What cannot be combined is said by the service.
    await page.getByLabel("with a ranking for each").fill("country genre");
    await outcome.getByText("Not ready yet: see “Metric”").waitFor();
    await page.getByLabel("with a ranking for each").fill("(country, genre)");
    await page.getByRole("button", { name: "Define", exact: true }).click();
    await page.getByRole("heading", { name: "A ranking for each country and genre" }).waitFor();
    await page.getByText("0 keys of at most 20", { exact: true }).waitFor();
    const command = await page.getByRole("region", { name: "Command" }).textContent();
    await service.call("POST", "/v1/events", JSON.parse(/-d '(.*)'/.exec(command)[1]));
    await becomes(() => keys(page), [`["country-1","genre-1"]`]);
    // Without a key there is no limit of keys.
    await visit(page, service, "define");
    await page.getByLabel("Name of the board").fill("likes");
    await outcome.getByText("COUNT(24h, like, post_id)", { exact: true }).waitFor();
    assert.equal(await page.getByLabel("Most keys with a ranking").count(), 0);
  }));

  test("the verdict of a rule leads to the ranking of its key", inUtc({}, async ({ page }) => {
    const service = await start([["rust", "a", 5]]);
    await visit(page, service, "rules");
    await page.getByLabel("Rule", { exact: true }).fill("COUNT(24h, like, post_id BY community) >= 5");
    await page.getByLabel("Value of post_id").fill("a");
    await page.getByRole("button", { name: "Add a field" }).click();
    await page.getByLabel("Name of field 2").fill("community");
    await page.getByLabel("Value of community").fill("rust");
    await page.getByRole("button", { name: "Evaluate" }).click();
    await page.getByText("of a in rust is 5").waitFor();
    await page.getByRole("link", { name: "by-community" }).click();
    await ranks(page, ["1 a 5"]);
  }));

  for (const [device, scheme] of [["desktop", "light"], ["phone", "dark"]]) {
    const options = { device, scheme, reducedMotion: true };
    test(`its pages of keys are accessible, and fit a ${device}`, inUtc(options, async ({ page }) => {
      const long = `${"key".repeat(160)}-1`;
      const subject = "subject".repeat(60);
      const service = await start([["rust", subject, 5], ["rust", "b", 2], [long, subject, 1]]);
      const queries = ["", "?search=r", "?search=nobody", "?by=rust", "?by=nobody", `?by=${long}`];
      for (const path of [...queries, "/subjects/b?by=rust"]) {
        await visit(page, service, `boards/by-community${path}`);
        await page.locator(".rankings li, .ranking li, .empty").first().waitFor();
        await checkAccessibility(page);
        // A phone makes its `innerWidth` as wide as what does not fit.
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
        assert.ok(wide <= page.viewportSize().width, `${path.slice(0, 20)} is ${wide} pixels wide`);
      }
      await page.getByRole("button", { name: "Remove this subject …" }).click();
      await checkAccessibility(page);
    }));
  }

  test("keys are searched, opened and left with the keyboard alone", inUtc({}, async ({ page }) => {
    const service = await start([["music", "a", 5], ["musicals", "b", 2], ["rust", "c", 1]]);
    await visit(page, service);
    await visit(page, service, "boards/by-community");
    await becomes(() => keys(page), ["music", "musicals", "rust"]);
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("musi");
    await becomes(() => keys(page), ["music", "musicals"]);
    const hasFocus = await page.getByRole("searchbox").evaluate((box) => box === document.activeElement);
    assert.ok(hasFocus, "the box keeps the focus");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "a musicals");
    await page.keyboard.press("Enter");
    await ranks(page, ["1 b 2"]);
    await becomes(() => focused(page), "h1 musicals", "the focus");
    await page.goBack();
    await becomes(() => keys(page), ["music", "musicals"], "the search is still there");
  }));
});
