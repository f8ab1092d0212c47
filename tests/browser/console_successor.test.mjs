// Tests of a board with a successor in the console: both rankings, the comparison, and who takes over.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkAccessibility, startService } from "./harness.mjs";
import { becomes, BOARDS, CLOCK, countAt, figure, inUtc, visit } from "./console.mjs";

const NOT_FOUND = /status of 404/;

/** Returns the lines of the ranking with this name. */
const ranking = (page, name) =>
  page.getByRole("list", { name, exact: true }).locator("li").evaluateAll((all) =>
    all.map((line) => `${line.dataset.subject} ${line.querySelector(".ranking-score").lastChild.textContent}`),
  );

describe("the console", () => {
  test("a successor is shown beside its board, compared, promoted, and taken back", inUtc({}, async ({ page, allow }) => {
    // The edition is asked for until the board has been read again.
    allow(NOT_FOUND);
    const service = await startService({ clock: CLOCK, config: BOARDS });
    await countAt(service, "hot-posts", [["post-1", 3], ["post-2", 2]]);
    await service.call("PUT", "/v1/boards/hot-posts/next", { metric: "COUNT(24h, like, post_id WHERE app = 1)", slot: "1h" });
    await countAt(service, "hot-posts", [["post-2", 5]]);
    for (const app of [1, 0]) {
      await service.call("POST", "/v1/events", { type: "like", fields: { post_id: "post-3", app } });
    }
    await visit(page, service, "boards/hot-posts");
    await page.getByRole("heading", { name: "Successor" }).waitFor();
    await becomes(() => ranking(page, "Ranking of hot-posts"), ["post-2 7", "post-1 3", "post-3 2"], "the ranking");
    await becomes(() => ranking(page, "Ranking of the successor"), ["post-2 5", "post-3 1"], "that of the successor");
    assert.equal(await figure(page, "Items that the successor missed").textContent(), "1 excluded by its filter");
    assert.equal(await figure(page, "Items that the board missed").textContent(), "none");
    await page.getByText("metric: COUNT(24h, like, post_id) → COUNT(24h, like, post_id WHERE app = 1)").waitFor();
    await page.getByText("queries and rules by the metric COUNT(24h, like, post_id)").waitFor();
    await checkAccessibility(page);

    await page.getByRole("button", { name: "Compare all subjects" }).click();
    await page.getByText("2 subjects in both, 2 with different scores, 1 only on the board, 0 only in the successor").waitFor();
    await page.getByText("post-2: 7 → 5").waitFor();

    await page.getByRole("button", { name: "Promote …" }).click();
    await page.getByText("its scores lack what the board has").waitFor();
    await page.getByRole("button", { name: "Take over early" }).click();
    await page.getByRole("heading", { name: "Previous edition" }).waitFor();
    await becomes(() => ranking(page, "Ranking of hot-posts"), ["post-2 5", "post-3 1"], "the ranking");
    await becomes(() => ranking(page, "Ranking of the previous edition"), ["post-2 7", "post-1 3", "post-3 2"], "the former one");

    await page.getByRole("button", { name: "Go back …" }).click();
    await page.getByRole("button", { name: "Go back", exact: true }).click();
    await becomes(() => ranking(page, "Ranking of hot-posts"), ["post-2 7", "post-1 3", "post-3 2"], "the ranking");
    await page.getByRole("button", { name: "Remove …" }).click();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("heading", { name: "Previous edition" }).waitFor({ state: "detached" });
  }));
});
