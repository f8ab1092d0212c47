// Live rankings and exports, over connections that break.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { rolltop } from "rolltop";
import { hasRedis, Running, startRedis, until } from "./service.mjs";

/** A fetch whose bodies break after some bytes, as long as `breaks` is above 0. */
function breaking(breaks, bytes) {
  const state = { breaks, requests: 0 };
  const own = async (input, init) => {
    const response = await fetch(input, init);
    state.requests++;
    if (state.breaks-- <= 0) return response;
    let left = bytes;
    const cut = new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left));
        left -= chunk.length;
        if (left <= 0) controller.error(new TypeError("terminated"));
      },
    });
    return new Response(response.body.pipeThrough(cut), response);
  };
  return [own, state];
}

for (const store of ["embedded", "redis"]) {
  describe(`streams on ${store}`, { skip: store === "redis" && !hasRedis }, () => {
    let redis, running, service, board;

    before(async () => {
      if (store === "redis") redis = await startRedis();
      running = await Running.start(...(redis ? ["--store", redis.url] : []));
      service = rolltop({ url: running.url, batchMillis: 20 });
      board = service.board("likes");
      await board.define({ metric: "COUNT(24h, like, post_id BY tag)", slot: "1h" });
      await service.board("many").define({ metric: "COUNT(24h, many, id)", slot: "1h" });
      const many = service.board("many", { coalesce: true });
      for (let i = 1; i <= 3000; i++) await many.add(`s-${i}`, 1 + (i % 700));
      await service.flush();
    });

    after(async () => {
      await service?.close();
      await running?.stop();
      redis?.stop();
    });

    test("a live ranking follows the board, also over restarts", { timeout: 60_000 }, async () => {
      const controller = new AbortController();
      let last;
      let count = 0;
      const followed = (async () => {
        for await (const ranking of board.live({ limit: 10, by: "rust", signal: controller.signal })) {
          last = ranking;
          count++;
        }
      })();
      const shows = (expected) =>
        until(
          () =>
            last && JSON.stringify(last.items.map((line) => [line.subject, line.score])) === JSON.stringify(expected),
          `${expected}`,
        );
      await shows([]);
      for (let i = 0; i < 12; i++) board.add(`p-${i}`, i + 1, { by: "rust" });
      await shows([12, 11, 10, 9, 8, 7, 6, 5, 4, 3].map((score) => [`p-${score - 1}`, score]));
      assert.deepEqual([last.board, last.by, last.total], ["likes", "rust", 12]);
      await board.remove("p-11", { by: "rust" });
      board.add("p-0", 7, { by: "rust" });
      board.add("other", 100, { by: "music" });
      await shows(
        [
          [10, 11],
          [9, 10],
          [8, 9],
          [7, 8],
          [0, 8],
          [6, 7],
          [5, 6],
          [4, 5],
          [3, 4],
          [2, 3],
        ].map(([p, score]) => [`p-${p}`, score]),
      );
      assert.equal(last.items[3].rank, last.items[4].rank);

      const before = count;
      await running.kill();
      board.add("p-0", 92, { by: "rust" });
      await running.start();
      await until(() => last.items[0].score === 100, "the ranking after a restart");
      assert.ok(count > before);
      // What was received is the page of the service.
      const { items } = await board.top({ by: "rust", limit: 10 });
      assert.deepEqual(last.items, items);
      controller.abort();
      await followed;
    });

    test("a live ranking goes on after a break with what has changed", { timeout: 60_000 }, async (t) => {
      const ids = [];
      let cut;
      const own = rolltop({
        url: running.url,
        fetch: async (input, init) => {
          const response = await fetch(input, init);
          if (!input.includes("/stream")) return response;
          ids.push(init.headers["last-event-id"]);
          const cuttable = new TransformStream({
            start: (controller) => (cut = () => controller.error(new TypeError("terminated"))),
          });
          return new Response(response.body.pipeThrough(cuttable), response);
        },
      });
      t.after(() => own.close());
      const rankings = [];
      const controller = new AbortController();
      const followed = (async () => {
        for await (const ranking of own.board("likes").live({ by: "resumed", signal: controller.signal })) {
          rankings.push(ranking);
        }
      })();
      await until(() => rankings.length === 1, "the first page");
      board.add("a", 1, { by: "resumed" });
      await until(() => rankings.length === 2, "a change");
      for (let breaks = 1; breaks <= 2; breaks++) {
        cut();
        await until(() => ids.length === breaks + 1, "the next stream");
      }
      board.add("b", 2, { by: "resumed" });
      await until(() => rankings.at(-1).items.length === 2, "the change after the break");
      // Nothing had changed when the stream was opened again, so there was nothing to tell.
      assert.equal(rankings.length, 3);
      assert.deepEqual(
        rankings[2].items.map((line) => line.subject),
        ["b", "a"],
      );
      assert.equal(ids[0], undefined);
      assert.match(ids[1], /^W\/"/);
      assert.equal(ids[2], ids[1]);
      controller.abort();
      await followed;
    });

    test("a live ranking that cannot be read throws, and one that is left ends", { timeout: 60_000 }, async () => {
      await assert.rejects(
        async () => {
          for await (const _ of service.board("nothing").live());
        },
        { status: 404, code: "unknown_board" },
      );
      for await (const ranking of board.live({ by: "rust" })) {
        assert.equal(ranking.items.length, 10);
        break;
      }
      // Left while it waits for a change, as the clean-up of a component does.
      const rankings = board.live({ by: "rust" });
      await rankings.next();
      const change = rankings.next();
      await rankings.return();
      assert.deepEqual(await change, { done: true, value: undefined });
      const ended = board.live({ by: "rust", signal: AbortSignal.abort() });
      assert.deepEqual(await ended.next(), { done: true, value: undefined });
      await service.board("short").define({ metric: "COUNT(24h, short, id)", slot: "1h" });
      await assert.rejects(
        async () => {
          for await (const _ of service.board("short").live()) await service.call("DELETE", "/v1/boards/short");
        },
        { code: "unknown_board" },
      );
    });

    test("an export goes on where its connections broke", async () => {
      const [fetch, state] = breaking(3, 9000);
      const own = rolltop({ url: running.url, fetch });
      const subjects = new Set();
      let before = Infinity;
      for await (const { subject, score } of own.board("many").export({ piece: 500 })) {
        subjects.add(subject);
        assert.ok(score <= before);
        before = score;
      }
      assert.equal(subjects.size, 3000);
      assert.equal(state.requests, 6 + 3);

      const [broken] = breaking(100, 9000);
      const never = rolltop({ url: running.url, fetch: broken, retries: 1 }).board("many").export({ piece: 500 });
      await assert.rejects(never.next(), { code: "network" });
      await own.close();
    });
  });
}
