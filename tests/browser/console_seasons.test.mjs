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

  test("a period that a board does not have is named", inUtc({}, async ({ page, allow }) => {
    const service = await startService({ clock: "2026-01-30T10:00:00Z", config: BOARD });
    allow(/status of 404/);
    await visit(page, service, "boards/sellers?period=2025-01");
    await page.getByRole("alert").getByText("board 'sellers' has no period '2025-01'").waitFor();
    await page.getByRole("combobox", { name: "Period" }).selectOption("");
    await page.getByRole("heading", { name: "Top of 2026-01" }).waitFor();
  }));
});
