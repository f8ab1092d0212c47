// Tests of boards with a season in the console: the current period, and the choice of another one.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { becomes, inUtc, ranks, visit } from "./console.mjs";
import { checkAccessibility, startService } from "./harness.mjs";

const BOARD = '[boards.sellers]\nmetric = "COUNT(all, sale, seller)"\nseason = { every = "1mo" }\n';

describe("boards with a season", () => {
  test("the current period is followed, and another one can be chosen", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: "2026-01-30T10:00:00Z", config: BOARD });
    await service.count("sellers", { a: 3, b: 2 });
    await visit(page, service, "boards/sellers");
    await ranks(page, ["1 a 3", "2 b 2"]);
    await page.getByRole("heading", { name: "Top of 2026-01" }).waitFor();
    await page.getByText("The current one, 2026-01, is from 1 Jan to 1 Feb.").waitFor();
    const choice = page.getByRole("combobox", { name: "Period" });
    const options = () => choice.locator("option").allTextContents();
    await becomes(options, ["2026-01 (current)"]);

    // The page goes on with the next period, and what has ended can be chosen.
    await service.setClock("2026-02-01T00:30:00Z");
    await service.count("sellers", { c: 9 });
    await ranks(page, ["1 c 9"]);
    await page.getByRole("heading", { name: "Top of 2026-02" }).waitFor();
    await becomes(options, ["2026-02 (current)", "2026-01"]);
    await choice.selectOption("2026-01");
    await ranks(page, ["1 a 3", "2 b 2"]);
    await page.getByRole("heading", { name: "Top of 2026-01" }).waitFor();
    await page.getByText("late items still count", { exact: true }).waitFor();
    assert.match(page.url(), /period=2026-01$/);
    await service.setClock("2026-02-01T02:00:00Z");
    await page.getByText("final", { exact: true }).waitFor();
    await checkAccessibility(page);

    // Links and other reads of the page are of this period, too.
    await page.getByText("How the scores are distributed").click();
    await page.getByText("2 or less").waitFor();
    await page.getByRole("link", { name: "b", exact: true }).click();
    await page.getByText("period 2026-01").waitFor();
    await becomes(() => page.locator(".figure", { hasText: "Rank" }).locator("dd").textContent(), "2 of 2");
    await page.goBack();
    await choice.selectOption("");
    await ranks(page, ["1 c 9"]);
    await page.getByText("live", { exact: true }).waitFor();
    assert.doesNotMatch(page.url(), /period/);
  }));

  test("lines whose subjects were removed keep their places", inUtc({}, async ({ page }) => {
    const service = await startService({ clock: "2026-01-30T10:00:00Z", config: BOARD });
    await service.count("sellers", { a: 5, b: 4, c: 3, d: 2 });
    await service.setClock("2026-02-01T02:00:00Z");
    const without = (...removed) => page.route(/\/(rankings|neighbors)\?/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const line of json.items) if (removed.includes(line.subject)) line.subject = null;
      const { etag, ...headers } = response.headers();
      await route.fulfill({ status: 200, headers, json });
    });
    await without("b", "c");
    await visit(page, service, "boards/sellers?period=2026-01");
    await ranks(page, ["1 a 5", "2 removed 4", "3 removed 3", "4 d 2"]);
    assert.deepEqual(await page.locator(".ranking a").allTextContents(), ["a", "d"]);
    await checkAccessibility(page);
    await page.getByRole("link", { name: "d", exact: true }).click();
    await ranks(page, ["1 a 5", "2 removed 4", "3 removed 3", "4 d 2"]);
    assert.equal(await page.locator(".ranking .is-marked").count(), 1);
    // A further one is gone when the page reads again.
    await page.unrouteAll();
    await without("a", "b", "c");
    await page.goBack();
    await ranks(page, ["1 removed 5", "2 removed 4", "3 removed 3", "4 d 2"]);
  }));

  test("a period is closed by hand, after a question", inUtc({}, async ({ page, allow }) => {
    const config = '[boards.cup]\nmetric = "COUNT(all, goal, player)"\nseason = { every = "manual", grace = "10m" }\n';
    const service = await startService({ clock: "2026-01-30T10:00:00Z", config });
    await service.count("cup", { ann: 2 });
    await visit(page, service, "boards/cup");
    await ranks(page, ["1 ann 2"]);
    await page.getByText("The current one, 1, ends when somebody closes it.").waitFor();
    const close = page.getByRole("button", { name: "Close", exact: true });
    await page.getByRole("button", { name: "Close period 1 …" }).click();
    await page.getByText("Late items still count for 10 minutes.").waitFor();
    await checkAccessibility(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    const current = async () => (await service.call("GET", "/v1/boards/cup")).period.name;
    assert.equal(await current(), "1");

    await page.getByRole("button", { name: "Close period 1 …" }).click();
    await close.click();
    await page.getByText("Period 1 is closed, and 2 has begun.").waitFor();
    await page.getByRole("heading", { name: "Top of 2" }).waitFor();
    await service.count("cup", { eve: 1 });
    await ranks(page, ["1 eve 1"]);
    // The next one can be closed when the grace is over, which the service says.
    allow(/status of 409/);
    await page.getByRole("button", { name: "Close period 2 …" }).click();
    await close.click();
    await page.getByRole("alert").getByText("late items, until 2026-01-30T10:10:00Z").waitFor();
    // If somebody else closes the period of the question, this page does not close the next one.
    await service.setClock("2026-01-30T10:10:00Z");
    await service.call("POST", "/v1/boards/cup/close?period=2");
    await service.setClock("2026-01-30T10:20:00Z");
    await close.click();
    await page.getByText("Period 2 is closed, and 3 has begun.").waitFor();
    assert.equal(await current(), "3");
  }));

  test("a board with a season is defined in the form", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: "2026-01-30T10:00:00Z" });
    allow(/status of 4/);
    await visit(page, service, "define?name=sellers");
    await page.getByText("More: further windows, order, time zone, decimals").click();
    const every = page.getByRole("combobox", { name: "Totals begin again" });
    assert.equal(await every.count(), 0);
    await page.getByRole("combobox", { name: "over" }).selectOption("all");
    await every.selectOption("1mo");
    const grace = page.getByRole("textbox", { name: "Time for late items after that" });
    await grace.fill("25h");
    await page.getByText("Not ready yet: see “Totals begin again”.").waitFor();
    await grace.fill("2h");
    await page.getByRole("spinbutton", { name: "Ended periods that are kept" }).fill("3");
    await checkAccessibility(page);
    await page.getByRole("button", { name: "Define", exact: true }).click();
    await page.getByRole("heading", { name: "Top of 2026-01" }).waitFor();
    const { season } = await service.call("GET", "/v1/boards/sellers");
    assert.deepEqual(season, { every: "1mo", grace: "2h", archive: 3 });
  }));

  test("a period that a board does not have is named", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: "2026-01-30T10:00:00Z", config: BOARD });
    allow(/status of 404/);
    await visit(page, service, "boards/sellers?period=2025-01");
    await page.getByRole("alert").getByText("board 'sellers' has no period '2025-01'").waitFor();
    await page.getByRole("combobox", { name: "Period" }).selectOption("");
    await page.getByRole("heading", { name: "Top of 2026-01" }).waitFor();
  }));
});
