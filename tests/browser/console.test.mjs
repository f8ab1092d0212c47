// Tests of what the console at `/` shows: the boards, a board with its strip and its live ranking, a subject.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkAccessibility, setHidden, startService, startSite, until } from "./harness.mjs";
import {
  bars, becomes, BOARDS, CLOCK, countAt, figure, heights, hover, inUtc, lines, proxy, ranks, requestsOf, said, streamsOf, visit,
} from "./console.mjs";

const UNREACHABLE = /ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/;
const NOT_FOUND = /status of 404/;

const texts = (locator) => locator.evaluateAll((all) => all.map((one) => one.textContent));
const rows = (page) => texts(page.locator(".boards-name"));

// Most of the time is spent waiting.
describe("the console shows", { concurrency: 4 }, () => {
  // --- The list of boards ---------------------------------------------------------------------------------------------

  test("boards are listed, the busiest first, and can be searched", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 1, b: 1, c: 1, d: 1 });
    // Fewer events, but in a slot that is 60 times shorter.
    await service.count("device-logins", { a: 1, b: 2, c: 3 });
    await visit(page, service);
    const others = ["ever", "kept", "transfers", "trending", "users-per-device"];
    await becomes(() => rows(page), ["device-logins", "hot-posts", ...others]);
    const row = (name) => page.locator(".boards > li", { has: page.getByText(name, { exact: true }) });
    await becomes(() => row("device-logins").locator(".boards-figures").textContent(), "3.0 events per minute3 rankedlast 30 minutesfloor 09:51, head 10:20");
    assert.match(await row("users-per-device").textContent(), /no ranking/);
    assert.match(await row("ever").textContent(), /all time/);
    assert.match(await row("transfers").textContent(), /1 hour for each subject/);
    assert.match(await row("trending").textContent(), /last 24 hours, 1 hour, 7 days, all time/);
    // Only the name is the text of the link.
    assert.deepEqual(await texts(row("trending").getByRole("link")), ["trending"]);
    assert.equal(await row("hot-posts").locator(".spark-bar").count(), 24);
    assert.equal(await row("device-logins").locator(".spark-bar.is-head").getAttribute("height"), "28");
    assert.equal(await row("ever").locator(".spark").count(), 0);

    const search = page.getByRole("searchbox", { name: "Search boards" });
    await search.fill("Trend");
    assert.deepEqual(await rows(page), ["trending"]);
    await search.fill("count_distinct(30d");
    assert.deepEqual(await rows(page), ["users-per-device"]);
    await search.fill("nothing like this");
    assert.deepEqual(await rows(page), []);
    await page.getByText("No board has “nothing like this” in its name or metric").waitFor();
    await search.fill("");

    // What is counted is shown without a reload, but rows keep their places while the page is open.
    await service.count("hot-posts", Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p-${index}`, 1])));
    await row("hot-posts").getByText("304 ranked", { exact: true }).waitFor();
    assert.match(await row("hot-posts").textContent(), /5\.1 events per minute/);
    assert.equal((await rows(page))[0], "device-logins");
    await visit(page, service, "rules");
    await visit(page, service);
    await becomes(async () => (await rows(page))[0], "hot-posts");
  }));

  test("the list does not offer the demo before it knows that nothing is counted", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 1 });
    await page.addInitScript(() => {
      window.offered = false;
      const look = () => (window.offered ||= document.body?.textContent.includes("Start the demo"));
      new MutationObserver(look).observe(document, { childList: true, subtree: true });
    });
    await page.route("**/v1/boards/*", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      await route.continue();
    });
    await visit(page, service);
    await page.getByText("1 ranked", { exact: true }).waitFor();
    assert.equal(await page.evaluate(() => window.offered), false);
  }));

  test("without boards the list says what to do", inUtc({}, async ({ page }) => {
    const service = await startService({ config: "# nothing\n" });
    await visit(page, service);
    await page.getByText("No boards yet").waitFor();
    await page.getByRole("link", { name: "Define a board" }).click();
    await page.getByRole("heading", { level: 1, name: "Define a board" }).waitFor();
    await visit(page, service, "operate");
    await page.getByText("No boards yet").waitFor();
  }));

  test("a service that fails is named, and the pages go on when it is back", inUtc({}, async ({ page, context, allow }) => {
    const service = await startService({ config: BOARDS });
    const second = await context.newPage();
    await visit(page, service);
    await visit(second, service, "boards/device-logins");
    await second.getByText("live", { exact: true }).waitFor();
    allow(UNREACHABLE);
    await service.kill();
    await second.getByText("not live", { exact: true }).waitFor();
    for (const one of [second, page]) {
      await one.getByRole("alert").getByText("The service has been unreachable since").waitFor();
      assert.equal(await one.getByRole("alert").count(), 1, "it is told once");
    }
    assert.equal(await page.locator(".boards > li").count(), 7, "what was read stays");
    await service.restart();
    await second.getByText("live", { exact: true }).waitFor();
    await service.count("device-logins", { back: 1 });
    await ranks(second, ["1 back 1"]);
    await until(async () => (await second.getByRole("alert").count()) === 0, "no error");
    // The list waits longer after each failure, but not when the user looks at it again.
    await setHidden(page, true);
    await setHidden(page, false);
    await until(async () => (await page.getByRole("alert").count()) === 0, "no error");
  }));

  test("an error of the store is shown in its words", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ config: BOARDS });
    allow(/status of 503/);
    const body = JSON.stringify({ code: "unavailable", status: 503, title: "No", detail: "the store is away: start it" });
    await page.route("**/v1/**", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body }));
    for (const path of ["", "boards/hot-posts", "boards/hot-posts/subjects/a", "rules", "operate"]) {
      await visit(page, service, path);
      await page.getByRole("alert").getByText("the store is away: start it").first().waitFor();
      assert.equal(await page.getByText("Start the demo").count(), 0, "it is not known that nothing is counted");
    }
  }));

  test("200 boards: their states are read a few at a time", inUtc({}, async ({ page }) => {
    const config = Array.from({ length: 200 }, (_, index) => `[boards.board-${index}]\nmetric = "COUNT(24h, e${index}, id)"\nslot = "1h"\n`);
    const service = await startService({ clock: CLOCK, config: config.join("\n") });
    await service.count("board-177", { a: 1 });
    // In the page, because reports of requests that have ended arrive late.
    await page.addInitScript(() => {
      const send = window.fetch;
      let now = 0;
      window.most = 0;
      window.fetch = async (path, options) => {
        const isState = /^v1\/boards\/[^/]+$/.test(path);
        if (isState) window.most = Math.max(window.most, ++now);
        try {
          return await send(path, options);
        } finally {
          if (isState) now--;
        }
      };
    });
    await visit(page, service);
    await becomes(async () => (await rows(page))[0], "board-177");
    assert.equal(await page.locator(".boards > li").count(), 200);
    const most = await page.evaluate(() => window.most);
    assert.ok(most >= 1 && most <= 4, `${most} at the same time`);
    await page.getByRole("searchbox").fill("board-19");
    await becomes(() => page.locator(".boards > li").count(), 11);
    await page.getByRole("link", { name: /board-199/ }).click();
    await page.getByRole("heading", { level: 1, name: "board-199" }).waitFor();
  }));

  // --- A board --------------------------------------------------------------------------------------------------------

  test("a ranking follows what is counted, in order, without a reload", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await visit(page, service, "boards/hot-posts");
    await page.getByText("Nothing has been counted in this window yet").waitFor();
    const command = await page.getByRole("region", { name: "Command" }).textContent();
    assert.match(command, new RegExp(`curl -X POST ${service.base}/v1/events`));
    const event = JSON.parse(/-d '(.*)'/.exec(command)[1]);
    await page.evaluate(() => (window.isSame = true));
    await service.call("POST", "/v1/events", event);
    await ranks(page, ["1 post-1 1"]);
    await service.count("hot-posts", { a: 3, b: 5, c: 1_234_567 });
    await ranks(page, ["1 c 1\u202f234\u202f567", "2 b 5", "3 a 3", "4 post-1 1"]);
    await service.count("hot-posts", { a: 2 });
    await ranks(page, ["1 c 1\u202f234\u202f567", "2 b 5", "2 a 5", "4 post-1 1"]);
    await service.call("DELETE", "/v1/boards/hot-posts/subjects/c");
    await ranks(page, ["1 b 5", "1 a 5", "3 post-1 1"]);
    assert.equal(await page.evaluate(() => window.isSame), true);
    await page.getByText("3 subjects ranked", { exact: true }).waitFor();
    assert.equal(await page.title(), "hot-posts – Rolltop");

    await service.count("hot-posts", Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`x-${index}`, 100 + index])));
    await becomes(async () => (await lines(page)).length, 10);
    await page.getByLabel("Show").selectOption("25");
    await becomes(async () => (await lines(page)).length, 25);
    assert.match(page.url(), /limit=25/);
  }));

  test("the tabs choose the window of the strip and of the ranking", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await countAt(service, "trending", [["now", 1], ["day", 2, "2026-03-04T00:10:00Z"], ["week", 3, "2026-03-01T02:00:00Z"]]);
    await visit(page, service, "boards/trending");
    const tab = (name) => page.getByRole("navigation", { name: "Windows" }).getByRole("link", { name, exact: true });
    await ranks(page, ["1 day 2", "2 now 1"]);
    await becomes(() => heights(page), bars(24, { 13: 100, 23: 100 }));
    assert.equal(await tab("24 hours").getAttribute("aria-current"), "page");
    await tab("1 hour").click();
    await ranks(page, ["1 now 1"]);
    await becomes(() => heights(page), bars(60, { 59: 100 }));
    await page.getByRole("heading", { name: "Top of the last hour" }).waitFor();
    await tab("7 days").click();
    await ranks(page, ["1 week 3", "2 day 2", "3 now 1"]);
    await becomes(() => heights(page), bars(28, { 14: 100, 26: 100, 27: 100 }));
    assert.equal(await tab("24 hours").getAttribute("aria-current"), null);
    // A subject is shown in the window of the ranking.
    await page.getByRole("link", { name: "week" }).click();
    await becomes(() => figure(page, "Score").textContent(), "3");
    await page.getByText("window of 7 days").waitFor();
    await page.goBack();
    await tab("all time").click();
    await ranks(page, ["1 week 3", "2 day 2", "3 now 1"]);
    await page.getByText("it has no slots, and nothing ever leaves it").waitFor();
    assert.equal(await page.locator(".strip").count(), 0);
  }));

  test("the strip has each slot; pointer and arrow keys say what it holds and when it leaves", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await countAt(service, "hot-posts", [
      ["a", 1, "2026-03-03T11:30:00Z"], ["b", 1, "2026-03-03T11:31:00Z"],
      ["a", 7, "2026-03-04T08:00:00Z"], ["a", 1], ["b", 1], ["c", 1], ["c", 1],
    ]);
    await visit(page, service, "boards/hot-posts");
    await becomes(() => heights(page), bars(24, { 0: 50, 21: 25, 23: 100 }));
    await becomes(() => said(page), "In 40 min, at 11:00, the slot of 3 Mar 11:00 leaves the window, with its 2 events of 2 subjects.");
    assert.equal(await figure(page, "Events in the window").textContent(), "7");
    assert.equal(await figure(page, "Counts since (the floor)").textContent(), "3 Mar 11:00 23 h 20 min ago");
    const texts = {
      0: "3 Mar 11:00 – 3 Mar 12:00 2 events of 2 subjects · leaves at 11:00",
      1: "3 Mar 12:00 – 3 Mar 13:00 nothing · leaves at 12:00",
      21: "08:00 – 09:00 1 event of 1 subject · leaves at 5 Mar 08:00",
      23: "10:00 – 11:00 4 events of 3 subjects · being filled now · leaves at 5 Mar 10:00",
    };
    for (const [index, text] of Object.entries(texts)) {
      await hover(page, Number(index));
      await becomes(() => said(page), text);
    }
    await page.mouse.move(2, 2);
    await becomes(async () => (await said(page)).slice(0, 2), "In");

    const slider = page.getByRole("slider", { name: "Slots of hot-posts, events in each" });
    await slider.focus();
    const pressed = async (key, index) => {
      await page.keyboard.press(key);
      await becomes(() => said(page), texts[index]);
      assert.equal(await slider.getAttribute("aria-valuenow"), String(index));
      assert.equal(await slider.getAttribute("aria-valuetext"), texts[index].replace(/( – (\d+ \w+ )?\d\d:\d\d) /, "$1: "));
    };
    await pressed("Home", 0);
    await pressed("ArrowRight", 1);
    await pressed("End", 23);
    await page.keyboard.press("ArrowLeft");
    await pressed("ArrowLeft", 21);
    await page.keyboard.press("Escape");
    await becomes(async () => (await said(page)).slice(0, 2), "In");
  }));

  test("when the clock moves, the strip slides and the ranking loses the expired slot", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await countAt(service, "device-logins", [["old", 9, "2026-03-04T09:51:30Z"], ["a", 5, "2026-03-04T09:51:10Z"], ["a", 1, "2026-03-04T10:00:00Z"]]);
    await visit(page, service, "boards/device-logins");
    await ranks(page, ["1 old 9", "2 a 6"]);
    await becomes(() => heights(page), bars(30, { 0: 100, 9: 50 }));
    assert.equal(await figure(page, "Counts since (the floor)").textContent(), "09:51 29 min ago");
    await service.setClock("2026-03-04T10:21:00Z");
    await ranks(page, ["1 a 1"]);
    await becomes(() => figure(page, "Counts since (the floor)").textContent(), "09:52 29 min ago");
    await page.locator(".slot.is-leaving").getByText("−2", { exact: true }).waitFor();
    await becomes(() => heights(page), bars(30, { 8: 100 }), "the slots slide to the left");
    await becomes(() => page.locator(".slot.is-leaving").count(), 0, "the slot that has left goes away");
    await service.setClock("2026-03-04T12:00:00Z");
    await page.getByText("Nothing has been counted in this window yet").waitFor();
    await becomes(() => heights(page), bars(30, {}));
  }));

  test("many slots are drawn in groups", inUtc({}, async ({ page }) => {
    const config = '[boards.fine]\nmetric = "COUNT(1h, e, id)"\nslot = "5s"\n';
    const service = await startService({ clock: CLOCK, config });
    await countAt(service, "fine", [["a", 1, "2026-03-04T09:20:08Z"], ["b", 1, "2026-03-04T10:19:56Z"], ["c", 1, "2026-03-04T10:19:59Z"]]);
    await visit(page, service, "boards/fine");
    await becomes(async () => (await heights(page)).filter((height) => height > 0), [50, 100]);
    const groups = (await heights(page)).length;
    // 720 slots in groups of 4 or 5, and perhaps a shorter one at an end.
    assert.ok(groups >= 144 && groups <= 181, `${groups} groups`);
    const slider = page.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("Home");
    await becomes(async () => /1 event\b.*begins to leave at 10:20:05$/.test(await said(page)), true);
    // The groups have no gaps and no overlaps.
    let end = null;
    for (let index = 0; index < 6; index++) {
      const [, from, to] = /^(\S+) – (\S+) /.exec(await said(page));
      if (end !== null) assert.equal(from, end);
      end = to;
      await page.keyboard.press("ArrowRight");
    }
  }));

  test("where clocks change, each slot is shown once, at its place", inUtc({ context: { timezoneId: "Europe/Berlin" } }, async ({ page }) => {
    const config = ["hours = 1h of 24h", "days = 1d of 7d", "quarters = 6h of 2d"].map((text) => {
      const [, name, slot, window] = /(\w+) = (\w+) of (\w+)/.exec(text);
      return `[boards.${name}]\nmetric = "COUNT(${window}, e, id)"\nslot = "${slot}"\ntimezone = "Europe/Berlin"\n`;
    });
    const service = await startService({ clock: "2026-03-29T10:20:00Z", config: config.join("\n") });
    const slider = page.getByRole("slider");
    const saysAt = async (key) => {
      await slider.focus();
      await page.keyboard.press(key);
      return said(page);
    };
    /** Checks that each slot that the service lists has a place of its own in the strip. */
    const isWhole = async (slots) => {
      const status = await service.call("GET", `/v1/boards/${/boards\/(\w+)/.exec(page.url())[1]}`);
      const shown = await heights(page);
      assert.equal(shown.length, slots);
      assert.equal(shown.filter((height) => height > 0).length, status.slots.length, "each slot with events has a bar");
    };

    // Clocks go forward: the day of 29 March has 23 hours.
    await countAt(service, "days", [["a", 1, "2026-03-23T12:00:00Z"], ["a", 2, "2026-03-28T12:00:00Z"], ["a", 4]]);
    await visit(page, service, "boards/days");
    await becomes(() => heights(page), bars(7, { 0: 100, 5: 100, 6: 100 }));
    assert.equal(await saysAt("Home"), "23 Mar – 24 Mar 1 event of 1 subject · leaves at 30 Mar");
    assert.equal(await saysAt("ArrowRight"), "24 Mar – 25 Mar nothing · leaves at 31 Mar");
    assert.equal(await saysAt("End"), "29 Mar – 30 Mar 1 event of 1 subject · being filled now · leaves at 5 Apr");
    const hour = (index) => new Date(Date.UTC(2026, 2, 29, 10 - index, 15)).toISOString();
    await countAt(service, "hours", Array.from({ length: 23 }, (_, index) => ["a", 1, hour(index)]));
    await visit(page, service, "boards/hours");
    await becomes(() => heights(page), bars(24, Object.fromEntries(Array.from({ length: 23 }, (_, index) => [index + 1, 100]))));

    // Clocks go back: the slot from 02:00 has two hours.
    await service.setClock("2026-10-25T01:30:00Z");
    const day = ["24T13:30", "24T12:30", "24T23:30", "25T00:15", "25T01:30"];
    await countAt(service, "hours", day.map((time) => ["a", 1, `2026-10-${time}:00Z`]));
    await becomes(() => heights(page), bars(24, { 11: 50, 12: 50, 22: 50, 23: 100 }));
    await isWhole(24);
    assert.equal(await saysAt("End"), "02:00 – 03:00 2 events of 1 subject · being filled now · leaves at 26 Oct 02:00");
    await service.setClock("2026-10-25T12:20:00Z");
    await countAt(service, "hours", [["a", 1, "2026-10-25T02:30:00Z"], ["a", 1, "2026-10-25T03:30:00Z"], ["a", 1]]);
    await becomes(() => heights(page), bars(24, { 0: 50, 1: 50, 11: 50, 12: 100, 13: 50, 14: 50, 23: 50 }));
    await isWhole(24);
    await service.setClock("2026-10-25T23:30:00Z");
    await becomes(() => heights(page), bars(24, { 0: 50, 1: 100, 2: 50, 3: 50, 12: 50 }));
    await isWhole(24);
    await service.setClock("2026-10-26T00:30:00Z");
    await becomes(() => heights(page), bars(24, { 0: 100, 1: 50, 2: 50, 11: 50 }));
    assert.equal(await saysAt("Home"), "25 Oct 02:00 – 25 Oct 03:00 2 events of 1 subject · leaves at 02:00");
    await countAt(service, "quarters", [["a", 1, "2026-10-25T00:30:00Z"], ["b", 1, "2026-10-25T07:00:00Z"]]);
    await visit(page, service, "boards/quarters");
    await becomes(() => heights(page), bars(8, { 3: 100, 4: 100 }));
    // The time zone of the page is only about how times are written.
    assert.equal(await saysAt("Home"), "24 Oct 06:00 – 24 Oct 12:00 nothing · leaves at 06:00");
    await page.getByRole("button", { name: "Europe/Berlin" }).click();
    assert.equal(await saysAt("Home"), "24 Oct 04:00 – 24 Oct 10:00 nothing · leaves at 05:00");
  }));

  test("slots of months begin and leave with the month", inUtc({}, async ({ page }) => {
    const config = '[boards.year]\nmetric = "COUNT(12mo, e, id)"\nslot = "1mo"\n[boards.years]\nmetric = "SUM(5y, e, x, id)"\nslot = "1y"\n';
    const service = await startService({ clock: CLOCK, config });
    await countAt(service, "year", [["a", 1, "2025-04-10T00:00:00Z"], ["a", 1, "2025-09-30T23:00:00Z"], ["a", 1]]);
    await visit(page, service, "boards/year");
    await becomes(() => heights(page), bars(12, { 0: 100, 5: 100, 11: 100 }));
    await page.getByRole("slider").focus();
    await page.keyboard.press("Home");
    await becomes(() => said(page), "1 Apr 2025 – 1 May 2025 1 event of 1 subject · leaves at 1 Apr");
    await page.keyboard.press("ArrowRight");
    await becomes(() => said(page), "1 May 2025 – 1 Jun nothing · leaves at 1 May");
    await visit(page, service, "boards/year/subjects/a");
    await becomes(() => figure(page, "Loses next").textContent(), "−1 at 1 Apr, in 27 d 13 h");
    await service.setClock("2026-04-02T00:00:00Z");
    await becomes(() => heights(page), bars(12, { 4: 100, 10: 100 }));
    await becomes(() => figure(page, "Loses next").textContent(), "−1 at 1 Sept, in 152 d");
    await visit(page, service, "boards/years");
    await becomes(() => heights(page), bars(5, {}));
  }));

  test("boards without a common window, and all time with kept slots", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await countAt(service, "kept", [["a", 1, "2026-03-03T09:00:00Z"], ["a", 1, "2026-03-04T09:00:00Z"], ["a", 1]]);
    await service.count("ever", { a: 2, b: 3 });
    await service.call("POST", "/v1/boards/transfers/increments", { subject: "customer", amount: 2.5 });
    await service.call("POST", "/v1/boards/users-per-device/increments", { subject: "device", value: "user" });
    await visit(page, service, "boards/kept");
    await ranks(page, ["1 a 3"]);
    const shown = await heights(page);
    assert.deepEqual(shown.slice(-2), [100, 100]);
    assert.ok(shown.length >= 24 && shown.length <= 25, `${shown.length} slots`);
    assert.match(await page.locator("main").textContent(), /Nothing leaves the ranking of all time/);
    assert.doesNotMatch(await page.locator("main").textContent(), /leaves next/);
    await hover(page, shown.length - 1);
    await becomes(async () => /^10:00 – 11:00 1 event · being filled now$/.test(await said(page)), true);
    await visit(page, service, "boards/kept/subjects/a");
    await becomes(() => figure(page, "Score").textContent(), "3");
    assert.equal(await page.getByText("Loses next").count(), 0);

    await visit(page, service, "boards/ever");
    await ranks(page, ["1 b 3", "2 a 2"]);
    await page.getByText("it has no slots, and nothing ever leaves it").waitFor();

    await visit(page, service, "boards/transfers");
    await page.getByText("it begins with the subject's first event and ends 1 hour later").waitFor();
    assert.equal(await page.locator(".strip").count(), 0);
    await page.getByLabel("This board keeps no ranking. Look up one subject by its exact name").fill("customer");
    await page.keyboard.press("Enter");
    await becomes(() => figure(page, "Score").textContent(), "2.50");

    await visit(page, service, "boards/users-per-device");
    await becomes(() => heights(page), bars(30, { 29: 100 }));
    assert.equal(await page.locator(".ranking").count(), 0);
    await page.getByLabel("This board keeps no ranking").fill("device");
    await page.getByRole("button", { name: "Show" }).click();
    await becomes(() => figure(page, "Score").textContent(), "1");
    assert.equal(await page.getByText("Rank", { exact: true }).count(), 0);
  }));

  test("the distribution of scores is drawn in ranges of round numbers, and read while it is open", inUtc({}, async ({ page }) => {
    const quick = `[boards.quick]\nmetric = "MIN(24h, run, seconds, runner BY track)"\nslot = "1h"\ndecimals = 1\norder = "asc"\n`;
    const service = await startService({ clock: CLOCK, config: BOARDS + quick });
    const reads = requestsOf(page, /\/distribution$/);
    const title = page.getByText("How the scores are distributed");
    const distribution = page.locator(".spread");
    const rows = () => distribution.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    const figures = () => texts(distribution.locator(".figure"));

    await visit(page, service, "boards/trending");
    await title.waitFor();
    assert.equal(reads.length, 0, "nothing is read before it is opened");
    await title.focus();
    await page.keyboard.press("Enter");
    await distribution.getByText("No subject is ranked.").waitFor();
    await service.count("trending", { a: 3 });
    await page.getByRole("link", { name: "all time" }).click();
    await distribution.getByText("The only subject has a score of 3.").waitFor();

    // Most are at the beginning: ranges grow.
    const likes = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`p-${index}`, index < 90 ? 1 + (index % 2) : 100 * index]));
    await service.count("hot-posts", likes);
    await visit(page, service, "boards/hot-posts");
    await title.click();
    await becomes(rows, [
      ["below 2", "45"], ["2 – 4", "45"], ["5 – 9", "0"], ["10 – 19", "0"], ["20 – 49", "0"], ["50 – 99", "0"], ["100 – 199", "0"],
      ["200 – 499", "0"], ["500 – 999", "0"], ["1\u202f000 – 1\u202f999", "0"], ["2\u202f000 – 4\u202f999", "0"], ["5\u202f000 and more", "10"],
    ]);
    assert.deepEqual(await figures(), ["Half of the subjects have2 or less", "90 % have2 or less", "99 % have9\u202f800 or less"]);
    const wide = await distribution.locator(".spread-bar").evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect().width));
    assert.ok(wide[0] > 100 && wide[2] === 0, `${wide}`);
    assert.ok(Math.abs(wide[11] / wide[0] - 10 / 45) < 0.01, `${wide}`);
    await checkAccessibility(page);

    // Others are in ranges of the same width; the smallest is the best.
    const seconds = [9.5, 10, 10.1, 10.4, 11.2, 12];
    const increments = seconds.map((value, index) => ({ subject: `r-${index}`, by: "north", value }));
    await service.call("POST", "/v1/boards/quick/increments", { increments });
    await visit(page, service, "boards/quick");
    assert.equal(await title.count(), 0, "a board with many rankings has none of its own");
    await visit(page, service, "boards/quick?by=north");
    await title.click();
    await becomes(rows, [
      ["below 10.0", "1"], ["10.0 – 10.4", "3"], ["10.5 – 10.9", "0"], ["11.0 – 11.4", "1"], ["11.5 – 11.9", "0"], ["12.0 and more", "1"],
    ]);
    assert.deepEqual(await figures(), ["Half of the subjects have10.4 or more"]);
    await visit(page, service, "boards/users-per-device");
    await page.getByText("This board keeps no ranking").waitFor();
    assert.equal(await title.count(), 0);
  }));

  test("boards that do not exist, or no longer", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: "" });
    allow(NOT_FOUND);
    await visit(page, service, "boards/not-there");
    await page.getByText("There is no board not-there").waitFor();
    await page.getByRole("link", { name: "define it" }).click();
    assert.equal(await page.getByLabel("Name of the board").inputValue(), "not-there");
    await visit(page, service, "nowhere/at/all");
    await page.getByText("There is no such page").waitFor();
    await service.call("PUT", "/v1/boards/short", { metric: "COUNT(1m, e, id)", slot: "1s" });
    await service.count("short", { a: 1 });
    await visit(page, service, "boards/short");
    await ranks(page, ["1 a 1"]);
    await service.call("DELETE", "/v1/boards/short");
    await page.getByText("There is no board short").waitFor();
    assert.equal(await page.locator(".ranking").count(), 0);
  }));

  // --- Subjects -------------------------------------------------------------------------------------------------------

  const HOSTILE = [
    "a/b", "100%", "%2F", "line\u2028separator", "#top", "what?x=1&y=2", "a+b c", " spaces ", "👩‍🚀 🇩🇪", "\u202egnp.exe", "<img src=x onerror=alert(1)>",
    "'\"`;${1}", "../../etc", "a\\b", "ﷺ", "nul", "__proto__", "e\u0301\u0301\u0301", "x".repeat(512),
  ];

  /** A name as it is shown: in quotes where one could not see where it begins and ends. */
  const shown = (name) => (name.trim() === name ? name : `“${name}”`);

  test("subjects of any name are texts, and are reached by link and by the box", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", Object.fromEntries(HOSTILE.map((name, index) => [name, 100 - index])));
    await visit(page, service, "boards/hot-posts?limit=25");
    await ranks(page, HOSTILE.map((name, index) => `${index + 1} ${shown(name)} ${100 - index}`));
    assert.equal(await page.locator(".ranking img").count(), 0);
    const links = await page.locator(".ranking-subject").evaluateAll((all) => all.map((one) => one.href));
    const isShown = async (index) => {
      await becomes(() => page.locator("main h1").textContent(), shown(HOSTILE[index]));
      await becomes(() => figure(page, "Score").textContent(), String(100 - index));
      await becomes(() => page.locator(".ranking .is-marked .ranking-subject").textContent(), shown(HOSTILE[index]));
    };
    for (const [index, link] of links.entries()) {
      await page.goto(link);
      await isShown(index);
      // The address can be opened again.
      if (index % 5 === 0) {
        await page.reload();
        await isShown(index);
      }
    }
    for (const name of ["a/b", "100%", " spaces ", "\u202egnp.exe", "<img src=x onerror=alert(1)>", "what?x=1&y=2"]) {
      await visit(page, service, "boards/hot-posts");
      await page.getByLabel("Find a subject by its exact name").fill(name);
      await page.keyboard.press("Enter");
      await isShown(HOSTILE.indexOf(name));
    }
  }));

  test("scores are exact", inUtc({}, async ({ page }) => {
    const config = '[boards.money]\nmetric = "SUM(7d, sale, amount, id)"\nslot = "1d"\ndecimals = 2\n';
    const service = await startService({ clock: CLOCK, config });
    const body = '{"increments": [{"subject": "a", "amount": 268071406391.07}, {"subject": "b", "amount": -0.05}, {"subject": "c", "amount": 12.5}]}';
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${service.base}/v1/boards/money/increments`, { method: "POST", headers, body });
    assert.deepEqual((await answer.json()).rejected, []);
    await visit(page, service, "boards/money");
    await ranks(page, ["1 a 268\u202f071\u202f406\u202f391.07", "2 c 12.50", "3 b \u22120.05"]);
    await page.getByRole("link", { name: "a", exact: true }).click();
    await becomes(() => figure(page, "Score").textContent(), "268\u202f071\u202f406\u202f391.07");
    await becomes(async () => (await figure(page, "Loses next").textContent()).split(" at ")[0], "−268\u202f071\u202f406\u202f391.07");
    // No board of this store has such a score; others may.
    const { window, as_of } = await service.call("GET", "/v1/boards/money/rankings");
    const huge = `{"board":"money","subject":"huge","window":${JSON.stringify(window)},"as_of":"${as_of}","retiring":0,"total":1,"rank":1,` +
      '"percentile":100.0,"score":9007199254740993,"slots":[]}';
    await page.route("**/v1/boards/money/subjects/huge*", (route) => route.fulfill({ contentType: "application/json", body: huge }));
    await visit(page, service, "boards/money/subjects/huge");
    await becomes(() => figure(page, "Score").textContent(), "9\u202f007\u202f199\u202f254\u202f740\u202f993");
  }));

  test("a subject: score, rank, percentile, slots, what it loses next, neighbors, and removal", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    const others = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`other-${index + 1}`, 10 * (index + 1)]));
    await service.count("device-logins", others);
    await countAt(service, "device-logins", [["me", 30, "2026-03-04T09:58:10Z"], ["me", 15]]);
    await visit(page, service, "boards/device-logins/subjects/me");
    await becomes(() => figure(page, "Score").textContent(), "45");
    assert.equal(await figure(page, "Rank").textContent(), "6 of 10");
    assert.equal(await figure(page, "Percentile").textContent(), "50");
    assert.equal(await figure(page, "Loses next").textContent(), "−30 at 10:28, in 8 min");
    await becomes(() => heights(page), bars(30, { 7: 100, 29: 50 }));
    await hover(page, 7);
    await becomes(() => said(page), "09:58 – 09:59 30 · leaves at 10:28");
    await ranks(page, ["3 other-7 70", "4 other-6 60", "5 other-5 50", "6 me 45", "7 other-4 40", "8 other-3 30", "9 other-2 20"]);
    assert.equal(await page.locator(".ranking .is-marked").textContent(), "Rank 6mescore 45");
    await page.getByRole("link", { name: "other-5" }).click();
    await becomes(() => figure(page, "Rank").textContent(), "5 of 10");
    await page.goBack();
    await service.setClock("2026-03-04T10:28:00Z");
    await becomes(() => figure(page, "Score").textContent(), "15");
    await becomes(() => figure(page, "Loses next").textContent(), "−15 at 10:50, in 22 min");

    await page.getByRole("button", { name: "Remove this subject …" }).click();
    await page.getByRole("button", { name: "Keep" }).click();
    assert.equal((await service.call("GET", "/v1/boards/device-logins/subjects/me")).score, 15, "nothing is removed before the second question");
    await page.getByRole("button", { name: "Remove this subject …" }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("status").getByText("me was removed from device-logins").waitFor();
    assert.equal((await service.call("GET", "/v1/boards/device-logins/subjects/me")).score, 0);
    await visit(page, service, "boards/device-logins/subjects/ME");
    await page.getByText("upper and lower case differ").waitFor();
    await page.getByRole("navigation", { name: "Board" }).getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "device-logins" }).waitFor();
  }));

  test("subjects of other metrics show the values of their slots", inUtc({}, async ({ page }) => {
    const config = ["AVG", "MIN", "MAX", "LAST"].map((name) =>
      `[boards.${name.toLowerCase()}]\nmetric = "${name}(6h, run, seconds, id)"\nslot = "1h"\ndecimals = 1\n`);
    config.push('[boards.users]\nmetric = "APPROX_COUNT_DISTINCT(6h, run, id, user)"\nslot = "1h"\n');
    const service = await startService({ clock: CLOCK, config: config.join("\n") });
    for (const [seconds, at] of [[4, "2026-03-04T07:30:00Z"], [9, "2026-03-04T07:40:00Z"], [5.5, undefined]]) {
      await service.call("POST", "/v1/events", { type: "run", fields: { id: "me", seconds, user: `u-${seconds}` }, at });
    }
    // The mean of a slot is drawn, and not its sum.
    const expected = { avg: ["6.17", "6.50"], min: ["4.0", "4.0"], max: ["9.0", "9.0"], last: ["5.5", "9.0"] };
    for (const [name, [score, oldest]] of Object.entries(expected)) {
      await visit(page, service, `boards/${name}/subjects/me`);
      await becomes(() => figure(page, "Score").textContent(), score);
      await becomes(async () => (await figure(page, "Its oldest slot holds").textContent()).split(" and leaves ")[0], oldest);
      await becomes(async () => (await heights(page)).filter((height) => height > 0).length, 2);
    }
    await visit(page, service, "boards/users/subjects/me");
    await becomes(() => figure(page, "Score").textContent(), "3");
  }));

  // --- What a page costs ----------------------------------------------------------------------------------------------

  test("a hidden page reads nothing, and a page that is left has no stream", inUtc({}, async ({ page, context }) => {
    const service = await startService({ config: '[boards.fast]\nmetric = "COUNT(1m, e, id)"\nslot = "1s"\n' });
    await service.count("fast", { a: 1 });
    const streams = streamsOf(page);
    await visit(page, service, "boards/fast");
    await ranks(page, ["1 a 1"]);
    assert.equal(streams.size, 1);
    await Promise.all(["boards/fast", "", "boards/fast/subjects/a", "operate"].map(async (path) => {
      const other = await context.newPage();
      const reads = requestsOf(other, /^\/(v1|readyz|healthz|metrics)\b/);
      const itsStreams = streamsOf(other);
      await visit(other, service, path);
      await until(() => reads.length > 0, "requests");
      await setHidden(other, true);
      await until(() => itsStreams.size === 0, `no stream on the hidden page ${path}`);
      // Requests that are on their way end; the paces of these pages are 0.6 s to 5 s.
      await new Promise((resolve) => setTimeout(resolve, 500));
      const before = reads.length;
      await new Promise((resolve) => setTimeout(resolve, 5_500));
      assert.deepEqual(reads.slice(before).map((request) => request.url()), [], `${path} reads while it is hidden`);
      await setHidden(other, false);
      await until(() => reads.length > before, `${path} reads again`);
      if (path === "boards/fast") await until(() => itsStreams.size === 1, "it has its stream again");
      await other.close();
    }));
    await visit(page, service, "boards/fast");
    await until(() => streams.size === 1, "the stream");
    await service.count("fast", { b: 2 });
    await until(async () => (await lines(page))[0] === "1 b 2", "what was counted is shown");
    await page.getByLabel("Show").selectOption("50");
    await until(() => streams.size === 1 && [...streams][0].url().includes("limit%3D50"), "one stream, of 50 lines");
    await page.getByRole("link", { name: "Rules" }).click();
    await until(() => streams.size === 0, "no stream");
  }));

  test("the console works below a path of a proxy", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    const site = await startSite({ "*": proxy(service, "/tools/rolltop") });
    const outside = [];
    page.on("request", (request) => !new URL(request.url()).pathname.startsWith("/tools/rolltop/") && outside.push(request.url()));
    const below = { base: `${site.base}/tools/rolltop` };
    await visit(page, below);
    await becomes(() => rows(page).then((names) => names.length), 7);
    await page.getByRole("link", { name: /hot-posts/ }).click();
    await page.getByText("live", { exact: true }).waitFor();
    await service.count("hot-posts", { a: 1, "b/c": 2 });
    await ranks(page, ["1 b/c 2", "2 a 1"]);
    assert.match(await page.locator("main").textContent(), /subject/);
    await page.getByRole("link", { name: "b/c" }).click();
    await becomes(() => figure(page, "Score").textContent(), "2");
    await page.getByRole("button", { name: "Remove this subject …" }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("was removed from hot-posts").waitFor();
    for (const path of ["define", "rules", "operate"]) await visit(page, below, path);
    await becomes(() => figure(page, "Service").textContent(), "ready");
    assert.deepEqual(outside, []);
  }));
});
