// Tests of the console in the states between pages: on the way back, without a service, where a window or a name cannot be
// shown; of what moves when a slot leaves; and of the focus after something is removed.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setHidden, startService, until } from "./harness.mjs";
import { becomes, BOARDS, CLOCK, countAt, figure, focused, heights, inUtc, lines, ranks, requestsOf, ticks, visit } from "./console.mjs";

const UNREACHABLE = /ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/;
const REFUSED = /status of (404|409|422)/;

// Most of the time is spent waiting.
describe("the console also", { concurrency: 4 }, () => {
  // --- Addresses ------------------------------------------------------------------------------------------------------

  test("the search and how far the list was scrolled survive the way back", inUtc({}, async ({ page }) => {
    const config = Array.from({ length: 60 }, (_, index) => `[boards.board-${index}]\nmetric = "COUNT(24h, e${index}, id)"\nslot = "1h"\n`);
    const service = await startService({ clock: CLOCK, config: config.join("\n") });
    await visit(page, service);
    const search = page.getByRole("searchbox", { name: "Search boards" });
    await search.fill("board-");
    await becomes(() => page.evaluate(() => location.hash), "#/?search=board-");
    await until(async () => (await page.locator(".boards-figures b").count()) >= 120, "the state of all boards");
    const scrolled = () => page.evaluate(() => Math.round(scrollY));
    await page.evaluate(() => scrollTo(0, 900));
    await page.mouse.click(700, 400);
    await page.locator("main h1", { hasText: /^board-\d+$/ }).waitFor();
    assert.equal(await scrolled(), 0, "a page that is opened begins at its start");
    // What is not a step to another page changes nothing.
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Boards" }).waitFor();
    await becomes(scrolled, 900);
    assert.equal(await search.inputValue(), "board-");
    await search.fill("board-59");
    await becomes(() => page.locator(".boards > li").count(), 1);
    await page.getByRole("link", { name: "board-59" }).click();
    await page.getByRole("heading", { level: 1, name: "board-59" }).waitFor();
    await page.goBack();
    await becomes(() => search.inputValue(), "board-59");
    assert.equal(await page.locator(".boards > li").count(), 1);
    await page.reload();
    await becomes(() => search.inputValue(), "board-59");
  }));

  test("a window that a board does not have is named, and nothing is asked about it", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 1 });
    const streams = requestsOf(page, /\/(stream|rankings)$/);
    await visit(page, service, "boards/hot-posts?window=2h");
    await page.getByText("This board has no window of 2 hours").waitFor();
    assert.equal(streams.length, 0);
    await page.getByRole("link", { name: "Show its window of 24 hours" }).click();
    await ranks(page, ["1 a 1"]);
  }));

  test("names that cannot be part of an address say so, and nothing is asked about them", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { ".": 2, "..": 1 });
    const asked = requestsOf(page, /\/subjects\//);
    for (const name of [".", ".."]) {
      await visit(page, service, "boards/hot-posts");
      await ranks(page, ["1 . 2", "2 .. 1"]);
      await page.getByRole("link", { name, exact: true }).click();
      await becomes(() => page.locator("main h1").textContent(), name);
      await page.getByText("This name cannot be part of an address").waitFor();
      assert.equal(await page.getByRole("button", { name: /Remove/ }).count(), 0);
    }
    assert.deepEqual(asked.map((request) => request.url()), []);
  }));

  // --- Definitions ----------------------------------------------------------------------------------------------------

  test("a metric that is written by hand disables its parts, and one can go back to them", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await visit(page, service, "define");
    const metric = page.getByLabel("Metric, which you can also write yourself");
    const parts = ["Rank by", "of events of the type", "for each value of the field", "over"].map((label) => page.getByLabel(label, { exact: true }));
    await parts[1].fill("click");
    await metric.fill("COUNT(24h, view, page_id WHERE channel = 'app')");
    for (const part of parts) assert.equal(await part.isDisabled(), true);
    await page.getByRole("status").getByText("COUNT(24h, view, page_id WHERE channel = 'app')", { exact: true }).waitFor();
    const back = page.getByRole("button", { name: "Go back to the fields above" });
    await back.focus();
    await page.keyboard.press("Enter");
    for (const part of parts) assert.equal(await part.isDisabled(), false);
    assert.equal(await metric.inputValue(), "COUNT(24h, click, post_id)");
    assert.equal(await back.count(), 0);
    assert.equal(await metric.evaluate((box) => document.activeElement === box), true, "the focus stays near the button");
    await page.getByRole("status").getByText("COUNT(24h, click, post_id)", { exact: true }).waitFor();
  }));

  // --- A service that is lost -----------------------------------------------------------------------------------------

  test("a lost service is told once on every page, time stands, and all go on when it is back", inUtc({}, async ({ context, allow }) => {
    const service = await startService({ config: '[boards.fast]\nmetric = "COUNT(1m, e, id)"\nslot = "1s"\n' });
    await service.count("fast", { a: 1 });
    const pages = await Promise.all(["", "boards/fast", "boards/fast/subjects/a", "define", "rules", "operate"].map(async (path) => {
      const page = await context.newPage();
      await visit(page, service, path);
      return [path, page];
    }));
    const of = Object.fromEntries(pages);
    await of["define"].getByText("has 24 slots").waitFor();
    await of["boards/fast"].locator(".strip-now-text").waitFor();
    await becomes(() => figure(of["operate"], "Service").textContent(), "ready");
    allow(UNREACHABLE);
    allow(REFUSED);
    await service.kill();
    // These two ask only when they are told to.
    await of["define"].getByLabel("Name of the board").fill("mine");
    await of["rules"].getByLabel("Value of post_id").fill("a");
    await of["rules"].getByRole("button", { name: "Evaluate" }).click();
    const notice = /^\s*The service has been unreachable since \d\d:\d\d:\d\d\. Showing the last known numbers; retrying\./;
    for (const [path, page] of pages) {
      await page.getByText(notice).waitFor();
      const told = () => page.locator(".notice").evaluateAll((all) => all.map((one) => one.textContent.slice(0, 30)));
      assert.deepEqual(await told(), ["The service has been unreachab"], `#/${path} tells it once`);
    }
    // The time of the service is not known, so none goes on.
    const times = async () => [
      await of["boards/fast"].locator(".strip-now-text").textContent(),
      await figure(of["operate"], "Clock of the store").textContent(),
    ];
    const before = await times();
    await setHidden(of[""], true);
    const asked = requestsOf(of[""], /./);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    assert.deepEqual(await times(), before, "time stands");
    assert.deepEqual(asked.map((request) => request.url()), [], "a hidden page does not try");
    await setHidden(of[""], false);

    await service.restart();
    for (const [path, page] of pages) {
      await until(async () => (await page.getByText(notice).count()) === 0, `#/${path} goes on`);
    }
    await until(async () => (await times()).every((time, index) => time !== before[index]), "time goes on");
    await of["define"].getByText("has 24 slots").waitFor();
    await becomes(() => figure(of["operate"], "Service").textContent(), "ready");
    await service.count("fast", { back: 7 });
    await until(async () => (await lines(of["boards/fast"])).includes("1 back 7"), "the ranking goes on");
    await of["rules"].getByRole("button", { name: "Evaluate" }).click();
    await of["rules"].locator("#rule-error").getByText(/no board|COUNT/).waitFor();
    for (const [path, page] of pages) {
      assert.equal(await page.getByRole("alert").filter({ hasText: /reached/ }).count(), 0, `#/${path} tells nothing old`);
    }
  }));

  // --- Slots that leave -----------------------------------------------------------------------------------------------

  test("when a slot leaves, each score shows for a moment what it has lost", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await countAt(service, "device-logins", [["a", 3, "2026-03-04T09:51:30Z"], ["a", 5], ["b", 4]]);
    await visit(page, service, "boards/device-logins");
    await ranks(page, ["1 a 8", "2 b 4"]);
    assert.equal(await page.locator(".ranking-loss").count(), 0);
    await service.setClock("2026-03-04T10:21:00Z");
    const loss = page.locator(".ranking-loss");
    await loss.waitFor();
    assert.equal(await loss.textContent(), "−3");
    assert.equal(await loss.evaluate((one) => one.closest("li").dataset.subject), "a");
    assert.equal(await loss.getAttribute("aria-hidden"), "true", "the score itself is read out");
    await ranks(page, ["1 a 5", "2 b 4"]);
    await becomes(() => loss.evaluate((one) => getComputedStyle(one).opacity), "0", "it fades");
    // A score that grows has lost nothing.
    await service.count("device-logins", { b: 2 });
    await ranks(page, ["1 b 6", "2 a 5"]);
    assert.equal(await loss.count(), 1);
  }));

  test("the labels below the strip are at round times of the chosen zone and slide with the slots", inUtc({ context: { timezoneId: "Europe/Berlin" } }, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 1 });
    await visit(page, service, "boards/hot-posts");
    // The first slot begins at 12:00 in Berlin.
    const berlin = [["12:00", 0], ["15:00", 3], ["18:00", 6], ["21:00", 9], ["4 Mar", 12], ["03:00", 15], ["06:00", 18], ["09:00", 21]];
    await becomes(() => ticks(page), berlin);
    await page.evaluate(() => [...document.querySelectorAll(".tick")].forEach((tick) => (tick.dataset.was = tick.textContent)));
    await service.setClock("2026-03-04T11:20:00Z");
    await becomes(() => ticks(page), [...berlin.slice(1).map(([text, place]) => [text, place - 1]), ["12:00", 23]]);
    const same = await page.evaluate(() => [...document.querySelectorAll(".tick")].filter((tick) => tick.dataset.was === tick.textContent).length);
    assert.equal(same, 7, "the same labels have moved");
    await page.getByRole("button", { name: "Times in Europe/Berlin" }).click();
    // The first slot begins at 12:00 in UTC, too.
    await becomes(() => ticks(page), berlin);
    await becomes(() => figure(page, "Newest slot (the head)").textContent(), "11:00");
  }));

  test("slots of days are those of the board's time zone, and it is said", inUtc({ context: { timezoneId: "America/New_York" } }, async ({ page }) => {
    const config = '[boards.days]\nmetric = "COUNT(7d, e, id)"\nslot = "1d"\ntimezone = "Europe/Berlin"\n[boards.plain]\nmetric = "COUNT(7d, f, id)"\nslot = "1d"\n';
    const service = await startService({ clock: CLOCK, config });
    // Half past midnight in Berlin, the evening before in New York.
    await countAt(service, "days", [["a", 1, "2026-02-27T23:30:00Z"], ["a", 1]]);
    await visit(page, service, "boards/days");
    await becomes(() => heights(page), [0, 0, 100, 0, 0, 0, 100]);
    await page.getByText("Days begin at midnight in Europe/Berlin.").waitFor();
    const days = ["26 Feb", "27 Feb", "28 Feb", "1 Mar", "2 Mar", "3 Mar", "4 Mar"].map((text, place) => [text, place]);
    await becomes(() => ticks(page), days);
    assert.match(await figure(page, "Counts since (the floor)").textContent(), /^26 Feb /);
    assert.equal(await figure(page, "Newest slot (the head)").textContent(), "4 Mar");
    await page.getByRole("slider").focus();
    await page.keyboard.press("Home");
    await becomes(() => page.locator(".strip-says b").textContent(), "26 Feb – 27 Feb");
    await visit(page, service, "boards/days/subjects/a");
    await becomes(async () => (await figure(page, "Loses next").textContent()).split(",")[0], "−1 at 7 Mar");
    await visit(page, service, "boards/plain");
    await becomes(() => ticks(page), days);
    assert.equal(await page.getByText("Days begin at midnight").count(), 0, "in UTC there is nothing to say");
  }));

  // --- The focus ------------------------------------------------------------------------------------------------------

  test("the focus has a place after a board or a subject is removed, and after other buttons that go away", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 1, b: 2 });
    const focus = (text) => becomes(() => focused(page), text, "the focus");
    /** Presses a button with the keyboard. */
    const press = async (name) => {
      await page.getByRole("button", { name, exact: true }).focus();
      await page.keyboard.press("Enter");
    };
    await visit(page, service, "boards/hot-posts/subjects/a");
    await press("Remove this subject …");
    await focus("button Keep");
    await page.keyboard.press("Enter");
    await focus("button Remove this subject …");
    await page.keyboard.press("Enter");
    await press("Remove");
    await page.getByRole("status").getByText("a was removed from hot-posts. New events count again.").waitFor();
    await focus("h1 a");
    await becomes(() => page.getByRole("button", { name: "Remove this subject …" }).count(), 0);

    await visit(page, service, "operate");
    await press("Audit hot-posts");
    await page.getByText("all agree").waitFor();
    await focus("button Audit hot-posts");
    const report = { board: "hot-posts", head: CLOCK, floor: CLOCK, slots_advanced: 1, slots_retired: 1, subjects_touched: 1, took_ms: 0 };
    await page.route("**/v1/boards/hot-posts/rollover*", (route) => route.fulfill({ json: report }));
    await press("Roll over hot-posts");
    await press("Cancel");
    await focus("button Roll over hot-posts");
    await page.keyboard.press("Enter");
    await press("Roll over now");
    await page.getByText("Rolled over: 1 new slot, 1 slot retired, 1 score lowered.").waitFor();
    await focus("button Roll over hot-posts");
    await press("Remove hot-posts");
    const isInBox = () => becomes(() => page.evaluate(() => document.activeElement.localName), "input", "the focus");
    await isInBox();
    await press("Cancel");
    await focus("button Remove hot-posts");
    await page.keyboard.press("Enter");
    await isInBox();
    await page.keyboard.type("hot-posts");
    await page.keyboard.press("Enter");
    await page.getByText("The board hot-posts was removed.").waitFor();
    await focus("h2 Boards");

    allow(REFUSED);
    await visit(page, service, "rules");
    await press("Add a field");
    await press("Remove field 2");
    await focus("button Add a field");
  }));

  test("the focus has a place after the demo is stopped and removed", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await startService({});
    await visit(page, service);
    await page.getByRole("button", { name: "Start the demo" }).click();
    await becomes(() => focused(page), "h1 demo");
    await page.getByRole("button", { name: "Stop" }).focus();
    await page.keyboard.press("Enter");
    await becomes(() => focused(page), "h1 demo");
    await visit(page, service);
    await page.getByRole("button", { name: "Remove the demo board" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Start the demo" }).waitFor();
    await becomes(() => focused(page), "h1 Boards");
  }));
});
