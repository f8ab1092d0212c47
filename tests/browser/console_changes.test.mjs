// Tests of what can be done with the console: boards are defined, rules tried, boards operated, the demo started; and of
// what holds for all its pages.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkAccessibility, startService, until } from "./harness.mjs";
import { becomes, BOARDS, CLOCK, countAt, figure, heights, inUtc, lines, ranks, requestsOf, visit } from "./console.mjs";

const NOT_FOUND = /status of 404/;
const REFUSED = /status of (404|409|422)/;

const RULES = `
[rules.many-logins]
when = "COUNT(30m, login, device_id) > 3"
`;

/** Returns the names of the boards of a service. */
const names = async (service) => (await service.call("GET", "/v1/boards")).items.map(({ board }) => board);

/** Returns the text before the caret, which has to end at the column of an error. */
const beforeCaret = (page) => page.locator(".caret-space").textContent();

/** Checks that the caret stands below the character at this index of a box, within half a character. */
async function pointsAt(page, box, index) {
  const [caret, start, wide] = await page.evaluate(([selector, index]) => {
    const box = document.querySelector(selector);
    const style = getComputedStyle(box);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    const text = document.querySelector(".caret").lastChild;
    const range = document.createRange();
    range.selectNode(text);
    const left = box.getBoundingClientRect().left + parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth);
    return [range.getBoundingClientRect().left, left + pen.measureText(box.value.slice(0, index)).width, pen.measureText("m").width];
  }, [box, index]);
  assert.ok(Math.abs(caret - start) < wide / 2, `the caret is at ${caret}, the character at ${start}`);
}

// Most of the time is spent waiting.
describe("the console", { concurrency: 4 }, () => {
  // --- Tiers ---------------------------------------------------------------------------------------------------------

  test("tiers are set, corrected and removed, and lines and standings show them", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 9, b: 5, c: 2, d: 1 });
    await visit(page, service, "boards/hot-posts");
    await ranks(page, ["1 a 9", "2 b 5", "3 c 2", "4 d 1"]);
    const badges = () => page.locator(".ranking li").evaluateAll((lines) =>
      lines.map((line) => line.querySelector(".ranking-tier")?.lastChild.textContent ?? "-"));
    assert.deepEqual(await badges(), ["-", "-", "-", "-"]);
    const form = page.locator(".tiers");
    await form.getByText("Tiers", { exact: true }).click();
    const add = form.getByRole("button", { name: "Add a tier" });
    const set = async (number, name, bound, value) => {
      await add.click();
      await form.getByLabel(`Name of tier ${number}`).fill(name);
      await form.getByLabel(`Bound of tier ${number}`).selectOption(bound);
      await form.getByLabel(`Value of tier ${number}`).fill(value);
    };
    await set(1, "gold", "top", "12.5");
    await set(2, "silver", "rank", "x");
    await set(3, "bronze", "score", "2");
    await checkAccessibility(page);
    allow(REFUSED);
    const save = form.getByRole("button", { name: "Save" });
    await save.click();
    await form.getByText("tier 'silver': 'rank' must be a whole number", { exact: false }).waitFor();
    assert.equal((await service.call("GET", "/v1/boards/hot-posts/tiers")).tiers.length, 0);
    await form.getByLabel("Value of tier 2").fill("2");
    await save.click();
    await form.getByText("Saved. Lines show their tiers.").waitFor();
    assert.equal(await form.locator(".notice").count(), 0);
    const tiers = [{ name: "gold", top: 12.5 }, { name: "silver", rank: 2 }, { name: "bronze", score: 2 }];
    assert.deepEqual((await service.call("GET", "/v1/boards/hot-posts/tiers")).tiers, tiers);
    await becomes(badges, ["gold", "silver", "bronze", "-"]);
    await checkAccessibility(page);

    await page.locator(".ranking").getByRole("link", { name: "b", exact: true }).click();
    await becomes(() => figure(page, "Tier").textContent(), "silver");
    await page.goBack();
    await form.getByText("Tiers", { exact: true }).click();
    const typed = () => form.locator("li").evaluateAll((rows) =>
      rows.map((row) => [...row.querySelectorAll("input, select")].map(({ value }) => value).join(" ")));
    await becomes(typed, ["gold top 12.5", "silver rank 2", "bronze score 2"]);
    await form.getByRole("button", { name: "Remove tier 1" }).click();
    assert.equal(await add.evaluate((button) => document.activeElement === button), true);
    await save.click();
    await becomes(badges, ["silver", "silver", "bronze", "-"]);
    for (const _ of [1, 2]) await form.getByRole("button", { name: "Remove tier 1" }).click();
    await save.click();
    await form.getByText("The board has no tiers.", { exact: false }).waitFor();
    await becomes(badges, ["-", "-", "-", "-"]);
    await visit(page, service, "boards/users-per-device");
    await page.getByText("This board keeps no ranking").waitFor();
    assert.equal(await form.count(), 0);
  }));

  // --- Moderation -----------------------------------------------------------------------------------------------------

  test("a subject is hidden, shown and frozen, and the page of the board lists what is set", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("hot-posts", { a: 5, b: 3, ab: 1 });
    await service.call("PUT", "/v1/boards/hot-posts/subjects/ab/hidden");
    await visit(page, service, "boards/hot-posts/subjects/a");
    const moderation = page.getByRole("region", { name: "Moderation" });
    await moderation.getByText("It is not hidden.").waitFor();
    await becomes(() => figure(page, "Rank").count(), 1);
    await moderation.getByRole("button", { name: "Hide", exact: true }).click();
    await moderation.getByText("no ranking has it").waitFor();
    await page.getByText("is in no ranking", { exact: false }).first().waitFor();
    await becomes(() => figure(page, "Rank").count(), 0);
    assert.equal(await figure(page, "Score").textContent(), "5", "it has its score");
    await moderation.getByRole("button", { name: "Freeze" }).click();
    await moderation.getByText("nothing counts for it").waitFor();
    await checkAccessibility(page);
    await visit(page, service, "boards/hot-posts");
    await ranks(page, ["1 b 3"]);
    const listed = page.getByRole("region", { name: "Moderated subjects" });
    await becomes(() => listed.locator("p").allTextContents(), ["Hidden 2: a, ab", "Frozen 1: a"]);
    await listed.getByRole("link", { name: "a", exact: true }).first().click();
    await moderation.getByRole("button", { name: "Show" }).click();
    await moderation.getByRole("button", { name: "Unfreeze" }).click();
    await moderation.getByText("What is sent for it counts.").waitFor();
    await moderation.getByRole("button", { name: "Hide as a shadow" }).click();
    await moderation.getByText("Its own standing has the rank that it would have.").waitFor();
    await becomes(async () => (await figure(page, "Rank").textContent()).trim(), "1 of 2");
    await visit(page, service, "boards/hot-posts");
    await becomes(() => listed.locator("p").allTextContents(), ["Hidden 2: a (shadowed), ab"]);
    await listed.getByRole("link", { name: "a", exact: true }).click();
    await moderation.getByRole("button", { name: "Show" }).click();
    await visit(page, service, "boards/hot-posts");
    await ranks(page, ["1 a 5", "2 b 3"]);
  }));

  // --- Definitions ----------------------------------------------------------------------------------------------------

  test("a metric is made from its parts, tried while it is typed, and defined by a button", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    const before = await names(service);
    const writes = [];
    page.on("request", (request) => request.method() !== "GET" && writes.push(request.url()));
    await visit(page, service, "define");
    const metric = page.getByLabel("Metric, which you can also write yourself");
    const outcome = page.locator(".define [role=status]");
    const expected = {
      COUNT: "COUNT(24h, like, post_id)",
      SUM: "SUM(24h, sale, amount, seller_id)",
      AVG: "AVG(24h, rating, stars, film_id)",
      MIN: "MIN(24h, run, seconds, runner_id)",
      MAX: "MAX(24h, game, points, player_id)",
      LAST: "LAST(24h, quote, price, item_id)",
      COUNT_DISTINCT: "COUNT_DISTINCT(24h, login, device_id, user_id)",
      APPROX_COUNT_DISTINCT: "APPROX_COUNT_DISTINCT(24h, visit, page_id, user_id)",
    };
    const functions = page.getByLabel(/^Rank by/);
    assert.deepEqual(await functions.locator("option").evaluateAll((all) => all.map((one) => one.value)), Object.keys(expected));
    for (const [name, text] of Object.entries(expected)) {
      await functions.selectOption(name);
      assert.equal(await metric.inputValue(), text);
      await outcome.getByText(text, { exact: true }).waitFor();
      await outcome.getByText("has 24 slots of 1 hour").waitFor();
    }
    await functions.selectOption("SUM");
    await page.getByLabel("of events of the type").fill("sale");
    await page.getByLabel("value in the field").fill("price");
    await page.getByLabel("for each value of the field").fill("shop");
    await page.getByLabel("over", { exact: true }).selectOption("7d");
    assert.equal(await metric.inputValue(), "SUM(7d, sale, price, shop)");
    assert.equal(await page.getByLabel("Slot: the step in which it rolls").inputValue(), "6h");
    await outcome.getByText("has 28 slots of 6 hours").waitFor();
    await outcome.getByText("bytes of memory").waitFor();
    const define = page.getByRole("button", { name: "Define", exact: true });
    assert.equal(await define.isDisabled(), true, "it has no name yet");
    await page.getByText("More: further windows").click();
    await page.getByLabel("Further windows").fill("1h/1m, all");
    await page.getByLabel("First in the ranking").selectOption("asc");
    await page.getByLabel("Time zone of days").fill("Europe/Berlin");
    await page.getByLabel("Digits after the decimal point").fill("2");
    await page.getByLabel("Name of the board").fill("turnover");
    await until(async () => !(await define.isDisabled()), "it can be defined");
    assert.ok(writes.length > 8 && writes.every((url) => url.endsWith("?dry_run=true")), "only dry runs");
    assert.deepEqual(await names(service), before, "nothing is defined before the button is pressed");
    await define.click();
    await page.getByRole("heading", { level: 1, name: "turnover" }).waitFor();
    const defined = await service.call("GET", "/v1/boards/turnover");
    assert.deepEqual(
      [defined.metric, defined.slot, defined.windows, defined.order, defined.timezone, defined.decimals],
      ["SUM(7d, sale, price, shop)", "6h", ["1h/1m", "all"], "asc", "Europe/Berlin", 2],
    );
    await page.getByRole("navigation", { name: "Windows" }).waitFor();
  }));

  test("keys without a field are written as JSON, and a board shows all of its own", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await visit(page, service, "define?name=fair");
    await page.getByText("More: further windows").click();
    await page.getByLabel("over", { exact: true }).selectOption("7d");
    await page.getByLabel("Slot: the step in which it rolls").fill("1d");
    const others = page.getByLabel("Other keys of the definition, as JSON");
    const define = page.getByRole("button", { name: "Define", exact: true });
    for (const wrong of ["{", "[]", "3"]) {
      await others.fill(wrong);
      await page.locator(".error", { hasText: "An object is needed" }).waitFor();
      await page.getByText("Not ready yet: see “Other keys of the definition, as JSON”.").waitFor();
      assert.equal(await define.isDisabled(), true);
    }
    allow(REFUSED);
    await others.fill('{"cap": {"per": "user_id", "most": 0, "every": "1d"}}');
    await page.locator("[role=status]", { hasText: "'most': 0 is not a whole number from 1 to 1000000" }).waitFor();
    const cap = { per: "user_id", most: 2, every: "1d" };
    await others.fill(JSON.stringify({ cap, ranks: "ordinal" }));
    await until(async () => !(await define.isDisabled()), "it can be defined");
    await checkAccessibility(page);
    await define.click();
    await page.getByText("Definition", { exact: true }).click();
    const shown = JSON.parse(await page.locator(".definition pre").textContent());
    assert.deepEqual([shown.metric, shown.slot, shown.cap, shown.ranks], ["COUNT(7d, like, post_id)", "1d", cap, "ordinal"]);
    const { exists, conflict } = await service.call("PUT", "/v1/boards/fair?dry_run=true", shown);
    assert.deepEqual([exists, conflict ?? null], [true, null], "what is shown is the definition of the board");
    await checkAccessibility(page);
  }));

  test("errors of a definition stand where they are", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    allow(REFUSED);
    await visit(page, service, "define?name=new");
    const metric = page.getByLabel("Metric, which you can also write yourself");
    const define = page.getByRole("button", { name: "Define", exact: true });
    /** Returns what the box says is wrong with it. */
    const errorOf = async (box) => page.locator(`[id="${await box.getAttribute("aria-describedby")}"]`);
    const isInvalid = (box) => until(async () => (await box.getAttribute("aria-invalid")) === "true", "the box is marked");
    for (const [text, before] of [
      ["COUNT(24h, like, post_id", "COUNT(24h, like, post_id"], ["COUNTS(24h, like, post_id)", ""], ["COUNT(24h, like post_id)", "COUNT(24h, like "],
      ["COUNT(24h, like, post_id WHERE 𝒳 == 1)", "COUNT(24h, like, post_id WHERE "],
    ]) {
      await metric.fill(text);
      // The caret of the text before may still stand there.
      await becomes(() => beforeCaret(page), before, text);
      await isInvalid(metric);
      assert.match(await errorOf(metric).then((error) => error.textContent()), /\w/);
      await pointsAt(page, `[id="${await metric.getAttribute("id")}"]`, before.length);
      assert.equal(await define.isDisabled(), true);
    }
    await metric.fill("COUNT(24h, like, post_id)");
    const slot = page.getByLabel("Slot: the step in which it rolls");
    for (const text of ["7m", "48h"]) {
      await slot.fill(text);
      await isInvalid(slot);
      await errorOf(slot).then((error) => error.waitFor());
      await page.getByText("Not ready yet: see “Slot”.").waitFor();
      assert.equal(await page.locator(".caret").count(), 0);
      assert.equal(await define.isDisabled(), true);
      await slot.fill("1h");
      await until(async () => (await slot.getAttribute("aria-invalid")) === null, "no error");
    }
    const name = page.getByLabel("Name of the board");
    for (const text of ["Not-Lower", "a/b"]) {
      await name.fill(text);
      await isInvalid(name);
      await errorOf(name).then((error) => error.getByText("a board's name is 1 to 63 characters").waitFor());
      await name.fill("fine");
      await until(async () => (await name.getAttribute("aria-invalid")) === null, "no error");
    }
    await page.getByText("More: further windows").click();
    const more = [["Further windows", "1h/7m", ""], ["Time zone of days", "Europe/Nowhere", "UTC"], ["Digits after the decimal", "12", "0"]];
    for (const [label, text, good] of more) {
      await page.getByLabel(label).fill(text);
      await isInvalid(page.getByLabel(label));
      await page.getByLabel(label).fill(good);
      await until(async () => !(await define.isDisabled()), "no error");
    }
    // A board of this name with another definition, and with the same one.
    await name.fill("hot-posts");
    await slot.fill("2h");
    await page.getByText("A board with this name exists, and differs in: slot").waitFor();
    assert.equal(await define.isDisabled(), true);
    await slot.fill("1h");
    await page.getByText("defining it again changes nothing").waitFor();
  }));

  test("a board is defined with the keyboard only", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await visit(page, service, "");
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Define" }).focus();
    await page.keyboard.press("Enter");
    await becomes(() => page.evaluate(() => document.activeElement.textContent), "Define a board");
    const reach = async (name) => {
      for (let presses = 0; presses < 20; presses++) {
        await page.keyboard.press("Tab");
        if (await page.evaluate((name) => document.activeElement.labels?.[0]?.textContent.includes(name), name)) return;
      }
      assert.fail(`${name} cannot be reached with Tab`);
    };
    await reach("Name of the board");
    await page.keyboard.type("clicks");
    await reach("of events of the type");
    await page.keyboard.type("click");
    await until(async () => !(await page.getByRole("button", { name: "Define", exact: true }).isDisabled()), "it can be defined");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "clicks" }).waitFor();
    assert.equal((await service.call("GET", "/v1/boards/clicks")).metric, "COUNT(24h, click, post_id)");
    await becomes(() => page.evaluate(() => document.activeElement.textContent), "clicks");
  }));

  // --- Rules ----------------------------------------------------------------------------------------------------------

  test("rules are tried: those of the configuration, missing fields, hit and no hit, errors at their column", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS + RULES });
    await service.count("device-logins", { "d-1": 4, "d/2": 3, Infinity: 9 });
    allow(REFUSED);
    await visit(page, service, "rules");
    const rule = page.getByRole("textbox", { name: "Rule", exact: true });
    const verdict = page.getByRole("region", { name: "Verdict" });
    const cells = () => verdict.locator("tbody td").evaluateAll((all) => all.map((one) => one.textContent));
    await page.getByRole("button", { name: "many-logins" }).click();
    assert.equal(await rule.inputValue(), "COUNT(30m, login, device_id) > 3");
    await page.getByRole("button", { name: "Evaluate" }).click();
    await page.locator("#rule-error").getByText("Fill in a value for device_id.").waitFor();
    const device = page.getByLabel("Value of device_id");
    await device.fill("d-1");
    await device.press("Enter");
    await verdict.getByText("Hit", { exact: true }).waitFor();
    assert.deepEqual(await cells(), ["COUNT(30m, login, device_id)", "4", ">", "3", "3", "yes"]);
    await device.fill("d/2");
    await device.press("Enter");
    await verdict.getByText("No hit").waitFor();
    assert.deepEqual(await cells(), ["COUNT(30m, login, device_id)", "3", ">", "3", "3", "no"]);
    // The texts that JavaScript takes for numbers are texts.
    await device.fill("Infinity");
    await device.press("Enter");
    await verdict.getByText("Hit", { exact: true }).waitFor();
    await device.fill("d/2");
    await device.press("Enter");
    await verdict.getByText("No hit").waitFor();

    await rule.fill("COUNT(30m, login, device_id) > limit OR country = 'DE'");
    await rule.press("Enter");
    await page.getByLabel("Value of limit").fill("2");
    await rule.press("Enter");
    await page.getByLabel("Value of country").fill("DE");
    await rule.press("Enter");
    await verdict.getByText("Hit", { exact: true }).waitFor();
    assert.deepEqual(await cells(), ["COUNT(30m, login, device_id)", "3", ">", "limit", "2", "yes", "country", "'DE'", "=", "'DE'", "'DE'", "yes"]);
    await page.getByRole("button", { name: "Remove field country" }).click();
    await page.getByRole("button", { name: "Add a field" }).click();
    assert.equal(await page.getByPlaceholder("field").count(), 3);

    await rule.fill("COUNT(30m, login, device_id) >> 3");
    await rule.press("Enter");
    await becomes(() => beforeCaret(page), "COUNT(30m, login, device_id) >");
    await pointsAt(page, "input.code", "COUNT(30m, login, device_id) >".length);
    assert.equal(await rule.getAttribute("aria-invalid"), "true");
    assert.equal(await verdict.count(), 0);
    await rule.fill("COUNT(1h, nothing, device_id) > 3");
    await rule.press("Enter");
    await page.locator("#rule-error").getByText("nothing").waitFor();

    await rule.fill("COUNT(30m, login, device_id) >= 3");
    await rule.press("Enter");
    await verdict.getByText("COUNT(30m, login, device_id) of d/2 is 3, from the slots of device-logins").waitFor();
    await verdict.getByRole("link", { name: "device-logins" }).click();
    await page.getByRole("heading", { level: 1, name: "device-logins" }).waitFor();
  }));

  // --- Operation ------------------------------------------------------------------------------------------------------

  test("sources show how far they are, and who holds them up", inUtc({}, async ({ page }) => {
    const config = `max_subjects = 1\n${BOARDS}\n[boards.full]\nmetric = "COUNT(24h, like, user_id)"\nslot = "1h"\n`;
    const service = await startService({ clock: CLOCK, config });
    await visit(page, service, "operate");
    await page.getByRole("heading", { name: "Boards" }).waitFor();
    assert.equal(await page.getByRole("heading", { name: "Sources" }).count(), 0, "nothing is said of what is not used");
    const patterns = ["hot-*", "full"];
    await service.call("PUT", "/v1/sources/likes-0", { boards: patterns });
    const like = ([position, user]) => ({ position, type: "like", fields: { post_id: "a", user_id: user }, at: CLOCK });
    const likes = (...users) => ({ events: users.map(like) });
    await service.call("POST", "/v1/events?source=likes-0&after=start", likes([7, "u"]));
    await page.reload();
    const row = page.locator(".operate > li", { hasText: "likes-0" });
    await row.getByText("reached 7 for").waitFor();
    await row.getByText(/^2 boards; 0\.\d a second, the newest from /).waitFor();
    await row.getByText(patterns.join(", ")).waitFor();
    // The board without room waits, and with it the source.
    await service.call("POST", "/v1/events?source=likes-0&after=7", likes([8, "v"], [9, "w"]));
    await row.getByText("held up by full").waitFor();
    const late = { position: 10, type: "like", fields: { post_id: "a", user_id: "u" }, at: "2025-01-01T00:00:00Z" };
    await service.call("POST", "/v1/events?source=likes-0&after=7", { events: [late] });
    await row.getByText(/rejected: [12] too_late/).waitFor();
    await checkAccessibility(page);
  }));

  test("boards are rolled over, audited and removed, and the clock is moved", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await service.count("device-logins", { a: 1, b: 2 });
    await visit(page, service, "operate");
    await becomes(() => figure(page, "Service").textContent(), "ready");
    assert.match(await figure(page, "Store").textContent(), /embedded/);
    await becomes(() => figure(page, "Rollovers").textContent(), "on time");
    assert.equal(await figure(page, "Slots retiring").textContent(), "0");
    assert.match(await figure(page, "Version").textContent(), /^\d+\.\d+/);
    await becomes(() => figure(page, "Simulated clock").textContent(), "10:20:00");
    const row = (name) => page.locator(".operate > li", { has: page.getByRole("link", { name, exact: true }) });
    assert.equal(await page.locator(".operate > li").count(), 7);

    await page.getByRole("button", { name: "Audit device-logins" }).click();
    await row("device-logins").getByText("2 scores compared with their slots").waitFor();
    await row("device-logins").getByText("all agree").waitFor();

    // Moving the clock rolls over, so a trial finds nothing to do.
    await page.getByRole("button", { name: "+ 1 minute" }).click();
    await page.getByText("2026-03-04T10:21:00Z").waitFor();
    assert.equal((await service.call("GET", "/v1/clock")).now, "2026-03-04T10:21:00Z");
    await page.getByRole("button", { name: "Roll over device-logins" }).click();
    await row("device-logins").getByText("Nothing to do: this board is up to date. Its newest slot is that of 10:21.").waitFor();

    // What a board that is behind would do, which no board is for long.
    const report = { board: "device-logins", head: CLOCK, floor: CLOCK, slots_advanced: 2, slots_retired: 1, subjects_touched: 3, took_ms: 0 };
    const asked = [];
    await page.route("**/v1/boards/device-logins/rollover*", (route) => {
      asked.push(new URL(route.request().url()).search);
      return route.fulfill({ json: report });
    });
    await page.getByRole("button", { name: "Roll over device-logins" }).click();
    await row("device-logins").getByText("This would do: 2 new slots, 1 slot retired, 3 scores lowered.").waitFor();
    await row("device-logins").getByRole("button", { name: "Roll over now" }).click();
    await row("device-logins").getByText("Rolled over: 2 new slots, 1 slot retired, 3 scores lowered.").waitFor();
    assert.deepEqual(asked, ["?dry_run=true", ""]);
    await page.unroute("**/v1/boards/device-logins/rollover*");

    const time = page.getByLabel("New time");
    await time.fill("tomorrow");
    await page.getByRole("button", { name: "Move", exact: true }).click();
    await page.getByRole("alert").getByText("A time is written as").waitFor();
    await time.fill("2026-03-04T10:00:00Z");
    allow(REFUSED);
    await page.getByRole("button", { name: "Move", exact: true }).click();
    await until(async () => !/A time is written as/.test(await page.getByRole("alert").textContent()), "the service refuses to go back");
    await time.fill("2026-03-04T13:00:00Z");
    await time.press("Enter");
    await page.getByText("2026-03-04T13:00:00Z").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);

    await page.getByRole("button", { name: "Remove kept" }).click();
    const confirm = row("kept").getByRole("button", { name: "Remove kept", exact: true }).last();
    assert.equal(await confirm.isDisabled(), true);
    const typed = page.getByLabel("Type its name to confirm");
    await typed.fill("kep");
    await typed.press("Enter");
    assert.equal(await confirm.isDisabled(), true);
    assert.ok((await names(service)).includes("kept"));
    await row("kept").getByRole("button", { name: "Cancel" }).click();
    assert.equal(await typed.count(), 0);
    await page.getByRole("button", { name: "Remove kept" }).click();
    await typed.fill("kept");
    await typed.press("Enter");
    await becomes(() => row("kept").count(), 0);
    assert.ok(!(await names(service)).includes("kept"));
  }));

  test("a console that only reads offers no change on any page", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: CLOCK, config: BOARDS + RULES, args: ["--console", "read"] });
    allow(REFUSED);
    const writes = [];
    page.on("request", (request) => request.method() !== "GET" && writes.push(`${request.method()} ${new URL(request.url()).pathname}`));
    const changes = /define|remove|roll over|audit|repair|demo|move|\+ 1/i;
    const offered = () =>
      page.evaluate(() => [...document.querySelectorAll("main button:not(:disabled)")].map((one) => one.ariaLabel ?? one.textContent));
    await visit(page, service);
    await page.locator(".boards > li").nth(6).waitFor();
    await until(async () => (await page.locator(".boards-figures b").count()) >= 7, "the state of all boards");
    assert.deepEqual((await offered()).filter((text) => changes.test(text)), []);
    await service.count("hot-posts", { a: 1 });
    for (const path of ["boards/hot-posts", "boards/hot-posts/subjects/a", "boards/not-there", "define", "operate"]) {
      await visit(page, service, path);
      await until(() => page.evaluate(() => document.querySelector("main").textContent.length > 40), "the page");
      await page.waitForLoadState();
      if (path.endsWith("/a")) await becomes(() => figure(page, "Score").textContent(), "1");
      if (path === "operate") await page.getByText("This console only reads").waitFor();
      if (path === "define") await page.getByText("has 24 slots").waitFor();
      assert.deepEqual((await offered()).filter((text) => changes.test(text)), [], path);
    }
    await visit(page, service, "boards/not-there");
    await page.getByText("There is no board not-there").waitFor();
    assert.equal(await page.getByRole("link", { name: "define it" }).count(), 0);
    await visit(page, service, "define?name=mine");
    await page.getByText("This console only reads").waitFor();
    await page.getByText("has 24 slots").waitFor();
    await page.getByLabel("Name of the board").press("Enter");
    // Rules are only read.
    await visit(page, service, "rules");
    await page.getByLabel("Value of post_id").fill("a");
    await page.getByLabel("Value of post_id").press("Enter");
    await page.getByRole("region", { name: "Verdict" }).waitFor();
    assert.deepEqual([...new Set(writes)].sort(), ["POST /v1/evaluate", "PUT /v1/boards/mine", "PUT /v1/boards/new-board"]);
    assert.deepEqual((await names(service)).length, 7);
  }));

  test("without the console there is no page", async () => {
    const service = await startService({ config: "", args: ["--console", "off"] });
    for (const path of ["/", "/console.js", "/console.css", "/icon.svg"]) {
      assert.equal((await fetch(service.base + path)).status, 404, path);
    }
    assert.equal((await fetch(`${service.base}/rolltop-board.js`)).status, 200);
  });

  // --- The demo -------------------------------------------------------------------------------------------------------

  test("the demo: a board fills and rolls, is stopped and removed", inUtc({}, async ({ page, allow }) => {
    const service = await startService({});
    // The page of the board may read it once more when it is removed.
    allow(NOT_FOUND);
    const posts = requestsOf(page, /\/increments$/);
    await visit(page, service);
    await page.getByRole("button", { name: "Start the demo" }).click();
    await page.getByRole("heading", { level: 1, name: "demo" }).waitFor();
    await until(async () => (await lines(page)).length === 10, "the board fills");
    const head = await figure(page, "Newest slot (the head)").textContent();
    await until(async () => (await figure(page, "Newest slot (the head)").textContent()) !== head, "a slot turns");
    await until(async () => (await heights(page)).filter((height) => height > 0).length >= 2, "two slots have likes");
    assert.equal((await heights(page)).length, 30);
    const demo = page.getByRole("complementary", { name: "Demo" });
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Boards" }).click();
    await demo.getByRole("link", { name: "demo" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Start the demo" }).count(), 0);
    const before = posts.length;
    await until(() => posts.length > before, "it goes on on another page");
    await demo.getByRole("button", { name: "Stop" }).click();
    await becomes(() => demo.count(), 0);
    const stopped = posts.length;
    await page.getByRole("button", { name: "Send made-up likes" }).click();
    await until(() => posts.length > stopped, "it goes on");
    await demo.getByRole("button", { name: "Remove the demo board" }).click();
    await page.getByRole("heading", { level: 1, name: "Boards" }).waitFor();
    await page.getByRole("button", { name: "Start the demo" }).waitFor();
    assert.ok(!(await names(service)).includes("demo"));
    const removed = posts.length;
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    assert.equal(posts.length, removed, "nothing more is posted");
  }));

  test("the demo of an earlier visit goes on, and its old slots leave", inUtc({}, async ({ page }) => {
    const service = await startService({});
    await service.call("PUT", "/v1/boards/demo", { metric: "COUNT(1m, like, post_id)", slot: "2s" });
    await service.count("demo", { stays: 3_000 });
    await visit(page, service);
    await page.getByText("The demo board is still there").waitFor();
    await page.getByRole("button", { name: "Send made-up likes" }).click();
    // Counted only now, because the page may take long to come on a busy machine.
    const start = Date.now();
    await countAt(service, "demo", [["leaves-soon", 5_000, new Date(start - 48_000).toISOString()]]);
    await until(async () => /^1 leaves-soon 5.000$/.test((await lines(page))[0]), "the slot is in the window");
    await page.locator(".slot.is-leaving").waitFor();
    await until(async () => /^1 stays 3.000$/.test((await lines(page))[0]), "the slot has left");
    assert.ok(Date.now() - start < 20_000);
  }));

  test("a board of somebody else with the name of the demo stays", inUtc({}, async ({ page, allow }) => {
    allow(REFUSED);
    const service = await startService({ config: '[boards.demo]\nmetric = "COUNT(24h, order, customer)"\nslot = "1h"\n' });
    await visit(page, service);
    await page.getByRole("button", { name: "Start the demo" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByRole("button", { name: "Remove the demo board" }).count(), 0);
    await service.count("demo", { a: 1 });
    await becomes(() => page.getByRole("button", { name: "Start the demo" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Remove the demo board" }).count(), 0);
  }));

  // --- All pages ------------------------------------------------------------------------------------------------------

  const LONG = "l".repeat(63);
  const NAME = "x".repeat(500);

  /** Starts a service with long names, and returns its pages: the path, and what makes it complete. */
  async function startPages() {
    const metric = `COUNT_DISTINCT(30d, ${"event".repeat(8)}, (first_field, second_field), third_field WHERE channel = 'app')`;
    const long = `[boards.${LONG}]\nmetric = "${metric}"\nslot = "1d"\n`;
    const service = await startService({ clock: CLOCK, config: BOARDS + RULES + long });
    await countAt(service, "trending", [[NAME, 5], ["\u202eleft", 4], ["a", 7, "2026-03-04T01:00:00Z"], ["b", 2_000_000_000]]);
    await service.count("device-logins", { "d-1": 5 });
    await service.call("POST", `/v1/boards/${LONG}/increments`, { subject: NAME, value: NAME });
    const pages = [
      ["", (page) => page.locator(".boards-figures b").nth(7).waitFor()],
      ["boards/trending", (page) => page.locator(".ranking li").nth(3).waitFor()],
      [`boards/${LONG}`, (page) => page.locator(".ranking li").first().waitFor()],
      ["boards/hot-posts", (page) => page.locator(".empty .command").waitFor()],
      ["boards/transfers", (page) => page.getByText("Each subject has its own window").waitFor()],
      [`boards/${LONG}/subjects/${NAME}`, (page) => page.locator(".ranking .is-marked").waitFor()],
      ["boards/hot-posts/subjects/none", (page) => page.getByText("upper and lower case differ").waitFor()],
      [`boards/${"z".repeat(63)}`, (page) => page.getByText("See all boards").waitFor()],
      ["define?name=hot-posts", async (page) => {
        await page.getByLabel("Slot: the step").fill("7m");
        await page.getByText("see “Slot”").waitFor();
        await page.getByLabel("Metric, which you can").fill(`COUNT(24h, ${"like".repeat(30)} post_id)`);
        await page.locator(".caret").waitFor();
        await page.getByText("More: further windows").click();
      }],
      ["rules", async (page) => {
        await page.getByRole("button", { name: "many-logins" }).click();
        await page.getByRole("button", { name: "Evaluate" }).click();
        await page.getByLabel("Value of device_id").fill("d-1");
        await page.getByRole("button", { name: "Evaluate" }).click();
        await page.getByRole("region", { name: "Verdict" }).waitFor();
      }],
      ["operate", async (page) => {
        await page.getByRole("button", { name: `Remove ${LONG}` }).click();
        await page.getByRole("button", { name: "Audit trending" }).click();
        await page.getByText("all agree").waitFor();
        await page.getByText("All metrics").waitFor();
      }],
      ["no/such/page", (page) => page.getByText("There is no such page").waitFor()],
    ];
    return { service, pages };
  }

  let shared;
  const sharedPages = () => (shared ??= startPages());

  for (const [device, scheme] of [["desktop", "light"], ["phone", "dark"]]) {
    test(`every page is accessible and fits: ${device}, ${scheme}`, inUtc({ device, scheme }, async ({ page, allow }) => {
      const { service, pages } = await sharedPages();
      allow(REFUSED);
      for (const [path, isComplete] of pages) {
        await visit(page, service, path);
        await isComplete(page);
        // Colors are those of the end of an animation.
        await page.evaluate(() => {
          const ending = document.getAnimations().filter(({ effect }) => effect.getTiming().iterations !== Infinity);
          return Promise.all(ending.map(({ finished }) => finished.catch(() => null)));
        });
        const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
        // A phone makes its `innerWidth` as wide as what does not fit.
        const room = page.viewportSize().width;
        assert.ok(wide <= room, `#/${path.slice(0, 40)} is ${wide} pixels wide on a screen of ${room}`);
        await checkAccessibility(page).catch((error) => {
          error.message = `#/${path.slice(0, 40)}: ${error.message}`;
          throw error;
        });
      }
    }));
  }

  test("every control is reached with Tab and shows that it has the focus", inUtc({}, async ({ page, allow }) => {
    const { service, pages } = await sharedPages();
    allow(REFUSED);
    for (const [path, isComplete] of pages) {
      await visit(page, service, path);
      await isComplete(page);
      const controls = await page.evaluate(() => {
        const all = document.querySelectorAll("a[href], button:enabled, input:enabled, select:enabled, summary, [tabindex='0']");
        const shown = [...all].filter((one) => one.checkVisibility());
        shown.forEach((one, index) => (one.dataset.control = index));
        document.activeElement.blur();
        window.getSelection().removeAllRanges();
        return shown.map((one) => one.outerHTML.slice(0, 100));
      });
      await page.locator(".skip").focus();
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Tab");
      const reached = new Set();
      for (let presses = 0; presses <= controls.length; presses++) {
        const { control, isSeen } = await page.evaluate(() => {
          const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
          return { control: document.activeElement.dataset.control, isSeen: outlineStyle !== "none" && parseFloat(outlineWidth) > 0 };
        });
        if (control !== undefined) {
          assert.ok(isSeen, `the focus of ${controls[control]} of #/${path.slice(0, 40)} is seen`);
          reached.add(Number(control));
        }
        await page.keyboard.press("Tab");
      }
      assert.deepEqual(controls.filter((_, index) => !reached.has(index)), [], `#/${path.slice(0, 40)}`);
    }
  }));

  test("the focus goes to the heading of the page that is opened, and stays where it is otherwise", inUtc({}, async ({ page, allow }) => {
    const { service } = await sharedPages();
    allow(REFUSED);
    const focused = () => page.evaluate(() => `${document.activeElement.localName} ${document.activeElement.textContent}`);
    await visit(page, service, "boards/trending");
    await page.locator(".ranking li").first().waitFor();
    assert.match(await focused(), /^body/, "the first page begins where the browser begins");
    for (const [name, heading] of [["Define", "Define a board"], ["Rules", "Rules"], ["Operate", "Operate"], ["Boards", "Boards"]]) {
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
      await becomes(focused, `h1 ${heading}`);
      assert.equal(await page.title(), `${heading} – Rolltop`);
      assert.equal(await page.locator("header nav [aria-current=page]").textContent(), name);
    }
    await page.getByRole("link", { name: /trending/ }).click();
    await page.locator(".ranking li").first().waitFor();
    await becomes(focused, "h1 trending");
    const slider = page.getByRole("slider");
    await slider.focus();
    await service.count("trending", { c: 50 });
    await until(async () => (await lines(page)).some((line) => line.includes(" c ")), "the ranking changes");
    assert.equal(await slider.evaluate((one) => document.activeElement === one), true);
    await page.getByRole("link", { name: "a", exact: true }).click();
    await becomes(focused, "h1 a");
    await page.goBack();
    await becomes(focused, "h1 trending");
    await page.keyboard.press("Shift+Tab");
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    await becomes(focused, "h1 trending");
  }));

  test("nothing moves for users who ask for less motion", inUtc({ reducedMotion: true }, async ({ page, allow }) => {
    const { service, pages } = await sharedPages();
    allow(REFUSED);
    await page.addInitScript(() => {
      window.moved = new Set();
      const look = () => {
        const moving = document.getAnimations().filter(({ playState }) => playState === "running");
        for (const { effect } of moving) window.moved.add(effect.target.outerHTML.slice(0, 80));
        requestAnimationFrame(look);
      };
      look();
    });
    for (const [path, isComplete] of pages) {
      await visit(page, service, path);
      await isComplete(page);
    }
    await visit(page, service, "boards/trending");
    await service.count("trending", { fresh: 900 });
    await until(async () => (await lines(page)).some((line) => line.includes("fresh")), "a new line");
    await service.count("trending", { a: 10_000 });
    await until(async () => (await lines(page)).some((line) => /^2 a /.test(line)), "lines change places");
    assert.deepEqual(await page.evaluate(() => [...window.moved]), []);
  }));
});
