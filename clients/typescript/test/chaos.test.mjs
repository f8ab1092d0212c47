// Items are counted once, whatever happens to connections and to the service.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rolltop } from "rolltop";
import { seeded, startProxy } from "./proxy.mjs";
import { hasRedis, Running, startRedis, until } from "./service.mjs";

const ITEMS = Number(process.env.ROLLTOP_CLIENT_ITEMS ?? 20_000);
const SEED = Number(process.env.ROLLTOP_TEST_SEED ?? Date.now() % 1_000_000);
const SUBJECTS = 100;
const KILLS = 4;

const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

for (const store of ["embedded", "redis"]) {
  describe(`chaos on ${store}, seed ${SEED}`, { skip: store === "redis" && !hasRedis }, () => {
    test(`${ITEMS} items are counted once each`, { timeout: 60_000 + ITEMS * 5 }, async (t) => {
      const random = seeded(SEED);
      const redis = store === "redis" ? await startRedis() : undefined;
      const running = await Running.start(...(redis ? ["--store", redis.url] : []));
      const proxy = await startProxy(running.port, random);
      t.after(async () => {
        proxy.stop();
        await running.stop();
        redis?.stop();
      });
      const direct = rolltop({ url: running.url });
      for (const name of ["one", "two", "sums"])
        await direct.board(name).define({ metric: "COUNT(24h, x, id)", slot: "1h" });
      await direct.board("events").define({ metric: "SUM(24h, sale, amount, id)", slot: "1h", decimals: 1 });

      const failed = [];
      const service = rolltop({
        url: proxy.url,
        timeout: 1500,
        maxItems: 2000,
        batchItems: Math.min(1000, Math.ceil(ITEMS / 400)),
        batchMillis: 20,
        onError: (error) => failed.push(error),
        onRejected: (item, code) => failed.push([item, code]),
      });
      const boards = [service.board("one"), service.board("two"), service.board("sums", { coalesce: true })];

      let isDone = false;
      let kills = 0;
      const killing = (async () => {
        while (!isDone || kills < KILLS) {
          await pause(500 + random() * 1500);
          await running.kill();
          kills++;
          await pause(random() * 500);
          await running.start();
        }
      })();

      const expected = { one: {}, two: {}, sums: {}, events: {} };
      for (let i = 0; i < ITEMS; i++) {
        const id = `s-${Math.floor(random() * SUBJECTS)}`;
        const board = boards[i % 4];
        if (board) await board.add(id, 1 + (i % 3));
        else await service.event("sale", { id, amount: 1 + (i % 3) });
        const scores = expected[board?.name ?? "events"];
        scores[id] = (scores[id] ?? 0) + 1 + (i % 3);
        // Leaves the coalescing something to send in between, and accidents time to happen.
        if (i % Math.ceil(ITEMS / 400) === 0) await pause(15);
      }
      await service.flush();
      isDone = true;
      await killing;
      // Repeats that the proxy sends late are counted as well, if they are counted.
      await until(() => proxy.pending() === 0, "the last repeats");
      await pause(200);

      assert.deepEqual(failed, []);
      for (const [name, scores] of Object.entries(expected)) {
        const counted = {};
        for await (const { subject, score } of direct.board(name).lines()) counted[subject] = score;
        assert.deepEqual(counted, scores, name);
      }
      t.diagnostic(JSON.stringify({ seed: SEED, kills, ...proxy.accidents, counts: service.counts }));
      assert.ok(service.counts.duplicates > 0, "no answer was lost after its items were counted");
      await service.close();
    });
  });
}
