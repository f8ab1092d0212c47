// Every call against the real service, on both stores.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { rolltop, RolltopError } from "rolltop";
import { attributes } from "rolltop/attributes";
import { distribution } from "rolltop/distribution";
import { moderation } from "rolltop/moderation";
import { closePeriod, periods } from "rolltop/periods";
import { setTiers, tiers } from "rolltop/tiers";
import { hasRedis, Running, startRedis } from "./service.mjs";

const all = async (items) => {
  const list = [];
  for await (const item of items) list.push(item);
  return list;
};

for (const store of ["embedded", "redis"]) {
  describe(`calls on ${store}`, { skip: store === "redis" && !hasRedis }, () => {
    let redis, running, service;
    const rejected = [];
    const unset = [];
    const errors = [];

    before(async () => {
      if (store === "redis") redis = await startRedis();
      running = await Running.start(
        ...(redis ? ["--store", redis.url] : []),
        "--clock",
        "simulated=2026-01-02T10:07:00Z",
      );
      service = rolltop({
        url: running.url,
        batchMillis: 50,
        onRejected: (...args) => rejected.push(args),
        onAttributesRejected: (...args) => unset.push(args),
        onError: (...args) => errors.push(args),
      });
      await service.board("likes").define({ metric: "COUNT(24h, like, post_id)", slot: "1h", windows: ["7d/6h"] });
      await service.board("tags").define({ metric: "COUNT(24h, like, post_id BY tag)", slot: "1h" });
      await service.board("sales").define({ metric: "SUM(24h, sale, amount, seller)", slot: "1h", decimals: 2 });
      await service.board("visitors").define({ metric: "COUNT_DISTINCT(24h, visit, page, visitor)", slot: "1h" });
    });

    after(async () => {
      await service?.close();
      await running?.stop();
      redis?.stop();
    });

    test("items are counted, in the background", async () => {
      const likes = service.board("likes");
      assert.equal(await likes.add("post-1"), true);
      likes.add("post-2", 5);
      likes.add("post-2", -1);
      likes.add("post-3", "2", { at: new Date("2026-01-02T09:00:00Z") });
      likes.add("post-3", 2, { at: "2026-01-02T09:00:00Z", retract: true });
      likes.add("post-3", 7, { id: "once" });
      likes.add("post-3", 7, { id: "once" });
      await service.flush();
      const page = await likes.top();
      assert.deepEqual(
        page.items.map((line) => [line.subject, line.score]),
        [
          ["post-3", 7],
          ["post-2", 4],
          ["post-1", 1],
        ],
      );
      assert.equal(service.counts.duplicates, 1);
    });

    test("coalesced items add up exactly, beside those with ids", async () => {
      let bodies = [];
      const own = rolltop({
        url: running.url,
        fetch: (input, init) => (init.body && bodies.push(JSON.parse(init.body)), fetch(input, init)),
      });
      const sales = own.board("sales", { coalesce: true });
      for (let i = 0; i < 10; i++) sales.add("ann", 0.1);
      sales.add("ann", "9007199254.17");
      sales.add("ann", -0.07);
      sales.add("bob", 1, { id: "b-1" });
      await own.close();
      assert.equal(bodies.length, 1);
      assert.deepEqual(
        bodies[0].increments.map((item) => [item.subject, item.amount]),
        [
          ["ann", 9007199255.1],
          ["bob", 1],
        ],
      );
      assert.match(bodies[0].increments[0].id, /^[0-9a-f-]{36}$/);
      assert.equal((await sales.subject("ann")).score, 9007199255.1);
      await sales.remove("ann");
      assert.deepEqual(
        (await sales.top()).items.map((line) => line.subject),
        ["bob"],
      );
    });

    test("what cannot be counted is reported, and the rest counts", async () => {
      const likes = service.board("likes");
      likes.add("late", 1, { at: "2020-01-01T00:00:00Z" });
      likes.add("post-1");
      likes.add("", 1);
      service.board("nothing").add("x");
      service.event("sale", { seller: "eve", amount: "much" });
      await service.flush();
      const codes = rejected.map(([item, code]) => [item.increment?.subject ?? item.event.fields.seller, code]);
      // The queues are sent independently of each other.
      assert.deepEqual(codes.sort(), [
        ["", "invalid_subject"],
        ["eve", "invalid_field"],
        ["late", "too_late"],
      ]);
      assert.equal(rejected.find(([item]) => item.event)[0].board, "sales");
      const [[error, items]] = errors;
      assert.ok(error instanceof RolltopError);
      assert.equal(error.status, 404);
      assert.equal(error.code, "unknown_board");
      assert.equal(error.requestId, error.problem.request_id);
      assert.equal(items[0].board, "nothing");
      assert.equal(items[0].increment.subject, "x");
      assert.deepEqual([service.counts.rejected, service.counts.failed], [3, 1]);
      assert.throws(() => likes.add("x", NaN), TypeError);
    });

    test("events count on every board of their type", async () => {
      service.event("sale", { seller: "dan", amount: "19.99" }, { id: "sale-1" });
      service.event("sale", { seller: "dan", amount: "19.99" }, { id: "sale-1" });
      service.event("like", { post_id: "post-9", tag: "rust" });
      service.board("visitors").add("home", undefined, { value: "v-1" });
      service.board("visitors").add("home", undefined, { value: "v-1" });
      await service.flush();
      assert.equal((await service.board("sales").subject("dan")).score, 19.99);
      assert.equal((await service.board("tags").subject("post-9", { by: "rust" })).score, 1);
      assert.equal((await service.board("visitors").subject("home")).score, 1);
    });

    test("pages, lines and exports", async () => {
      await service.board("many").define({ metric: "COUNT(24h, many, id)", slot: "1h" });
      const many = service.board("many", { coalesce: true });
      for (let i = 1; i <= 250; i++) await many.add(`s-${i}`, i);
      await service.flush();
      const sizes = await all(many.pages({ limit: 100 }));
      assert.deepEqual(
        sizes.map((page) => page.items.length),
        [100, 100, 50],
      );
      const subjects = (await all(many.lines({ limit: 90 }))).map((line) => line.subject);
      assert.equal(new Set(subjects).size, 250);
      assert.equal(subjects[0], "s-250");
      const exported = await all(many.export({ piece: 60 }));
      assert.deepEqual(
        exported.map((line) => line.subject),
        subjects,
      );
      assert.deepEqual(
        (await all(many.export({ offset: 240, limit: 5, piece: 2 }))).map((line) => line.rank),
        [241, 242, 243, 244, 245],
      );
      assert.equal((await all(many.export())).length, 250);
    });

    test("reads of subjects", async () => {
      const likes = service.board("likes");
      assert.equal((await likes.subject("post-3", { window: "7d" })).score, 7);
      assert.deepEqual(
        (await likes.lookup(["post-1", "no"])).items.map((item) => item.rank_among),
        [1, null],
      );
      assert.equal((await likes.lookup(["post-1"], { ranks: false })).items[0].rank, null);
      assert.equal((await likes.neighbors("post-2", { radius: 1 })).items.length, 3);
      assert.equal((await likes.count("post-2", { last: "6h" })).value, 4);
      assert.equal((await likes.count("post-2", { from: new Date("2026-01-02T10:00:00Z") })).value, 4);
      const strange = "a/b?c#d %&\u2028é";
      likes.add(strange);
      await service.flush();
      assert.equal((await likes.subject(strange)).score, 1);
      await likes.remove(strange);
      // Not in an address, but everywhere else.
      likes.add("..");
      await service.flush();
      assert.equal((await likes.lookup([".."])).items[0].score, 1);
      await service.call("POST", "/v1/boards/likes/removals", { subjects: [".."] });
    });

    test("values are removed from all subjects", async () => {
      const board = service.board("by-people");
      await board.define({ metric: "COUNT_DISTINCT(24h, like, post BY country, user)", slot: "1h" });
      for (const by of ["se", "no"]) for (const value of ["ann", "bob"]) board.add("p", undefined, { value, by });
      await service.flush();
      const { values, final_periods, approximate } = await moderation(board).removeValues(["ann", "nobody"], { by: "se" });
      assert.deepEqual([values, final_periods, approximate], [1, 0, false]);
      const score = async (by) => (await board.subject("p", { by })).score;
      assert.deepEqual([await score("se"), await score("no")], [1, 2]);
      await assert.rejects(moderation(service.board("likes")).removeValues(["ann"]), { code: "no_values" });
    });

    test("subjects are hidden and frozen", async () => {
      const board = service.board("moderated");
      await board.define({ metric: "COUNT(24h, like, post_id)", slot: "1h" });
      for (const [subject, amount] of [["a", 3], ["b", 2], ["c/1", 1]]) board.add(subject, amount);
      await service.flush();
      const moderated = moderation(board);
      assert.deepEqual(await moderated.hide("a"), { board: "moderated", subject: "a", hidden: true, shadow: false });
      assert.deepEqual((await board.top()).items.map((line) => line.subject), ["b", "c/1"]);
      assert.equal((await board.subject("a")).hidden, true);
      assert.equal((await moderated.hide("a", { shadow: true })).shadow, true);
      assert.equal((await board.subject("a")).rank, 1);
      assert.equal((await moderated.hideAll([{ subject: "c/1" }, { subject: "b", hidden: false }])).accepted, 2);
      const names = async (list) => (await all(list)).map((one) => one.subject);
      assert.deepEqual(await names(moderated.hidden()), ["a", "c/1"]);
      assert.deepEqual(await names(moderated.hidden({ prefix: "c" })), ["c/1"]);
      assert.equal((await moderated.show("c/1")).hidden, false);
      assert.equal((await moderated.freeze("c/1")).frozen, true);
      board.add("c/1");
      await service.flush();
      assert.equal(rejected.at(-1)[1], "subject_frozen");
      assert.deepEqual(await names(moderated.frozen()), ["c/1"]);
      assert.equal((await moderated.unfreeze("c/1")).frozen, false);
      assert.equal((await moderated.freezeAll([{ subject: "b" }])).accepted, 1);
    });

    test("attributes are set, changed, listed and removed", async () => {
      const board = service.board("people");
      await board.define({ metric: "COUNT(24h, like, post_id)", slot: "1h" });
      const people = attributes(board);
      assert.deepEqual(await people.get("a/1"), {});
      const picture = { url: "/a.png", sizes: [1, 2.5, null] };
      assert.deepEqual(await people.set("a/1", { name: "Ann \u2028", picture, old: true }), { name: "Ann \u2028", picture, old: true });
      assert.deepEqual(await people.change("a/1", { old: null, level: 12, huge: 12345678901234567890n }), {
        huge: 12345678901234567890,
        level: 12,
        name: "Ann \u2028",
        picture,
      });
      const text = await (await fetch(`${running.url}/v1/boards/people/subjects/a%2F1/attributes`)).text();
      assert.match(text, /"huge":12345678901234567890,/);
      await people.set("a/1", { name: "Ann" });
      assert.deepEqual(await people.get("a/1"), { name: "Ann" });
      await people.changeAll([
        { subject: "b", attributes: { name: "Bob", born: new Date(0) } },
        { subject: "b", attributes: { level: 2 } },
        { subject: "c", attributes: { name: "Cid" } },
        { subject: "c", attributes: null },
      ]);
      const bob = { born: "1970-01-01T00:00:00.000Z", level: 2, name: "Bob" };
      assert.deepEqual(await all(people.list()), [
        { subject: "a/1", attributes: { name: "Ann" } },
        { subject: "b", attributes: bob },
      ]);
      assert.deepEqual(await all(people.list({ prefix: "b" })), [{ subject: "b", attributes: bob }]);
      const receipt = await people.changeAll([{ subject: "d", attributes: { "no name": 1 } }, { subject: "a/1", attributes: {} }]);
      assert.deepEqual([receipt.accepted, receipt.rejected[0].code], [1, "invalid_attributes"]);
      await assert.rejects(people.set("a/1", { long: "x".repeat(2000) }), { code: "invalid_field", status: 422 });
      await people.remove("a/1");
      assert.deepEqual(await people.get("a/1"), {});
    });

    test("what JSON does not have is no attribute", async () => {
      const board = service.board("people");
      const people = attributes(board);
      await people.set("e", { kept: 1 });
      const cases = [
        [{ kept: undefined }, "attributes.kept: undefined"],
        [{ kept: NaN }, "attributes.kept: NaN"],
        [{ kept: -Infinity }, "attributes.kept: -Infinity"],
        [{ kept: () => 1 }, "attributes.kept: "],
        [{ kept: Symbol("s") }, "attributes.kept: Symbol"],
        [{ kept: { inner: [1, undefined] } }, "attributes.kept.inner\\[1\\]: undefined"],
        [{ kept: [, 1] }, "attributes.kept\\[0\\]: undefined"],
        [{ kept: new Map([["a", 1]]) }, "attributes.kept: \\[object Map\\]"],
        [{ kept: new Date(NaN) }, "attributes.kept: Invalid Date"],
        [null, "attributes must be an object"],
        [["kept"], "attributes must be an object"],
        ["kept", "attributes must be an object"],
      ];
      for (const [given, expected] of cases) {
        const refused = { name: "TypeError", message: new RegExp(`^${expected}`) };
        await assert.rejects(people.set("e", given), refused);
        await assert.rejects(people.change("e", given), refused);
        if (given !== null) await assert.rejects(people.changeAll([{ subject: "e", attributes: given }]), refused);
        assert.throws(() => board.add("e", 1, { attributes: given }), refused);
      }
      assert.deepEqual(await people.get("e"), { kept: 1 });
      assert.equal((await board.subject("e")).score, 0);
    });

    test("attributes are shown beside lines, and set with items", async () => {
      const board = service.board("shown", { coalesce: true });
      await board.define({ metric: "COUNT(24h, like, post_id)", slot: "1h" });
      const [wanted, name] = [{ attributes: ["name", "picture"] }, "Ann"];
      board.add("a", 3, { attributes: { name, level: 1 } });
      board.add("b", 2);
      board.add("b", -1);
      await attributes(board).set("c", { long: "x".repeat(900) });
      board.add("c", 1, { attributes: { other: "x".repeat(900) }, id: "c-1" });
      await service.flush();
      assert.deepEqual(unset.map(([{ board, increment }, code]) => [board, increment.id, code]), [["shown", "c-1", "invalid_attributes"]]);
      assert.equal((await board.subject("c")).score, 1);
      await board.remove("c");
      board.add("c", 1, { attributes: { "no name": 1 }, id: "c-2" });
      await service.flush();
      assert.deepEqual([rejected.at(-1)[0].increment.id, rejected.at(-1)[1]], ["c-2", "invalid_attributes"]);
      const shown = ({ items }) => items.map((line) => [line.subject, line.score, line.attributes]);
      const expected = [["a", 3, { name }], ["b", 1, {}]];
      assert.deepEqual(shown(await board.top(wanted)), expected);
      assert.deepEqual(shown(await board.top()), [["a", 3, undefined], ["b", 1, undefined]]);
      assert.deepEqual(shown(await board.top({ attributes: [] })), [["a", 3, undefined], ["b", 1, undefined]]);
      assert.deepEqual((await board.top({ attributes: "*" })).items[0].attributes, { level: 1, name });
      assert.deepEqual(shown({ items: await all(board.lines({ ...wanted, limit: 1 })) }), expected);
      assert.deepEqual(shown({ items: await all(board.export({ ...wanted, piece: 1 })) }), expected);
      assert.deepEqual((await board.lookup(["a", "no"], wanted)).items.map((line) => line.attributes), [{ name }, {}]);
      assert.deepEqual((await board.subject("a", { attributes: "name,level" })).attributes, { level: 1, name });
      assert.deepEqual(shown(await board.neighbors("a", wanted)), expected);
      const rankings = board.live(wanted);
      assert.deepEqual(shown((await rankings.next()).value), expected);
      await attributes(board).set("b", { name: "Bob", score: 1.5, count: 7, value: 12345678901234567890n });
      assert.deepEqual(shown((await rankings.next()).value), [["a", 3, { name }], ["b", 1, { name: "Bob" }]]);
      await rankings.return();

      await service.board("genres").define({ metric: "COUNT(24h, play, song BY genre)", slot: "1h" });
      const genres = service.board("genres");
      genres.add("s", 1, { by: "jazz", attributes: { name: "So What" } });
      await service.flush();
      assert.deepEqual(await attributes(genres).get("s", { by: "jazz" }), { name: "So What" });
      assert.deepEqual(await attributes(genres).get("s", { by: "rock" }), {});
      assert.deepEqual((await genres.best(["jazz"], wanted)).rankings[0].items[0].attributes, { name: "So What" });
      assert.deepEqual(await all(attributes(genres).list()), [{ by: "jazz", subject: "s", attributes: { name: "So What" } }]);

      await service.board("years").define({ metric: "COUNT(all, play, song)", season: { every: "1y" }, attributes: "shown" });
      service.board("years").add("a");
      await service.flush();
      assert.deepEqual((await periods(service.board("years"), wanted)).items[0].winners[0].attributes, { name });
    });

    // Node 20 does not tell the text of numbers.
    const tellsTexts = JSON.parse("1", (_, __, context) => context?.source) === "1";
    test("with exact decimals, attributes are what they are", { skip: !tellsTexts }, async () => {
      const exact = rolltop({ url: running.url, decimals: "string" });
      const board = exact.board("shown");
      await attributes(board).set("b", { score: 1.5, count: { from: 7 }, value: 12345678901234567890n });
      const [, line] = (await board.top({ attributes: "*" })).items;
      const expected = { score: 1.5, count: { from: 7 }, value: "12345678901234567890" };
      assert.deepEqual([line.score, line.attributes], ["1", expected]);
      assert.deepEqual(await attributes(board).get("b"), expected);
      await exact.close();
    });

    test("the distribution of scores", async () => {
      const board = service.board("spread");
      await board.define({ metric: "SUM(24h, sale, amount, seller BY country)", slot: "1h", decimals: 2 });
      for (const [subject, amount] of [["a", "1.25"], ["b", 20], ["c", 20], ["d", 300]]) board.add(subject, amount, { by: "se" });
      await service.flush();
      const found = await distribution(board, { percentiles: [0, 50, 99.9], scores: ["2.50", 20, 300], by: "se" });
      assert.deepEqual(found.percentiles, [
        { percentile: 0, score: 1.25 },
        { percentile: 50, score: 20 },
        { percentile: 99.9, score: 300 },
      ]);
      assert.deepEqual(found.ranges, [
        { from: null, to: 2.5, subjects: 1 },
        { from: 2.5, to: 20, subjects: 0 },
        { from: 20, to: 300, subjects: 2 },
        { from: 300, to: null, subjects: 1 },
      ]);
      assert.deepEqual([found.by, found.total], ["se", 4]);
      const none = await distribution(board, { by: "no", percentiles: [], scores: [] });
      assert.deepEqual([none.total, none.percentiles.length, none.ranges], [0, 8, []]);
      await assert.rejects(distribution(board, { by: "se", percentiles: [101] }), { code: "invalid_field" });
    });

    test("periods are listed and read", async () => {
      // Its clock moves, which other tests must not see.
      const ownRedis = redis && (await startRedis());
      const own = await Running.start(
        ...(ownRedis ? ["--store", ownRedis.url] : []),
        "--clock",
        "simulated=2026-01-30T10:00:00Z",
      );
      try {
        const client = rolltop({ url: own.url, batchMillis: 50 });
        const season = client.board("season");
        await season.define({ metric: "COUNT(all, sale, seller)", season: { every: "1mo" } });
        const add = (body, period) =>
          client.call("POST", `/v1/boards/season/increments?period=${period}`, { subject: "a", ...body });
        assert.equal((await add({ amount: 3 }, "2026-01")).accepted, 1);
        assert.equal((await add({ subject: "b" }, "2026-01")).accepted, 1);
        await client.call("PUT", "/v1/clock", { now: "2026-02-01T00:30:00Z" });
        assert.equal((await add({ subject: "c" }, "2026-02")).accepted, 1);
        assert.equal((await add({ at: "2026-01-31T12:00:00Z" }, "2026-02")).rejected[0].code, "wrong_period");
        await assert.rejects(add({}, "2025-12"), { code: "unknown_period", status: 404 });
        const shown = ({ items }) => items.map(({ name, final, total, winners }) => [name, final, total, winners[0].subject]);
        assert.deepEqual(shown(await periods(season)), [["2026-01", false, 2, "a"], ["2026-02", false, 1, "c"]]);
        await client.call("PUT", "/v1/clock", { now: "2026-02-01T02:00:00Z" });
        const final = await periods(season, { final: true, winners: 1 });
        assert.deepEqual([final.items.length, final.items[0].winners.length], [1, 1]);
        assert.deepEqual(shown(await periods(season, { after: "2026-01", limit: 1 })), [["2026-02", false, 1, "c"]]);

        const period = "2026-01";
        const top = await season.top({ period });
        assert.deepEqual(top.items.map(({ subject, score }) => [subject, score]), [["a", 3], ["b", 1]]);
        assert.deepEqual([top.period.name, top.period.final], [period, true]);
        assert.deepEqual(await all(season.lines({ period, limit: 1 })), top.items);
        assert.deepEqual(await all(season.export({ period })), top.items);
        assert.equal((await season.lookup(["b"], { period })).items[0].score, 1);
        assert.equal((await season.subject("b", { period })).rank, 2);
        assert.deepEqual((await season.neighbors("b", { period })).items, top.items);
        assert.equal((await distribution(season, { period, percentiles: [100] })).percentiles[0].score, 3);
        assert.deepEqual((await season.top()).items.map(({ subject }) => subject), ["c"]);
        await assert.rejects(season.top({ period: "2025-12" }), { code: "unknown_period", status: 404 });
      } finally {
        await own.stop();
        ownRedis?.stop();
      }
    });

    test("periods are closed", async () => {
      const cup = service.board("cup");
      await cup.define({ metric: "COUNT(all, goal, player)", season: { every: "manual" } });
      const done = await closePeriod(cup, "1");
      assert.deepEqual([done.closed.name, done.current.name, done.current.end], ["1", "2", null]);
      assert.equal(done.closed.end, done.current.start);
      // A name that is closed already closes nothing more.
      assert.deepEqual(await closePeriod(cup, "1"), done);
      assert.deepEqual((await periods(cup)).items.map(({ name }) => name), ["1", "2"]);
      await assert.rejects(closePeriod(cup, "2"), { code: "period_conflict", status: 409 });
      await assert.rejects(closePeriod(cup, "7"), { code: "unknown_period", status: 404 });
    });

    test("tiers are set and shown", async () => {
      const board = service.board("tiered");
      await board.define({ metric: "SUM(24h, sale, amount, seller)", slot: "1h", decimals: 2 });
      assert.deepEqual(await tiers(board), { board: "tiered", tiers: [] });
      for (const [subject, amount] of [["a", 9], ["b", 5], ["c", 2.5], ["d", 1]]) board.add(subject, amount);
      await service.flush();
      const wanted = [{ name: "gold", top: 12.5 }, { name: "silver", rank: 2 }, { name: "bronze", score: "2.50" }];
      const set = await setTiers(board, wanted);
      assert.deepEqual(set.tiers, [...wanted.slice(0, 2), { name: "bronze", score: 2.5 }]);
      assert.deepEqual(await tiers(board), set);
      const shown = ({ items }) => items.map(({ tier }) => tier);
      const expected = ["gold", "silver", "bronze", undefined];
      assert.deepEqual(shown(await board.top()), expected);
      assert.deepEqual(shown(await board.lookup(["d", "a"])), ["gold", undefined]);
      assert.equal((await board.subject("c")).tier, "bronze");
      const rankings = board.live();
      assert.deepEqual(shown((await rankings.next()).value), expected);
      assert.deepEqual((await setTiers(board, [])).tiers, []);
      assert.deepEqual(shown((await rankings.next()).value), [undefined, undefined, undefined, undefined]);
      await rankings.return();
      await assert.rejects(setTiers(board, [{ name: "none", rank: 0 }]), { code: "invalid_field" });
    });

    test("rankings of keys", async () => {
      const tags = service.board("tags", { coalesce: true });
      tags.add("post-1", 3, { by: "music" });
      tags.add("post-2", 1, { by: "museum" });
      await service.flush();
      assert.deepEqual(await all(tags.keys()), ["museum", "music", "rust"]);
      assert.deepEqual(await all(tags.keys({ prefix: "mus" })), ["museum", "music"]);
      const { rankings } = await tags.best(["music", "rust", "none"], { limit: 1 });
      assert.deepEqual(
        rankings.map(({ by, items }) => [by, items[0]?.score]),
        [
          ["music", 3],
          ["rust", 1],
          ["none", undefined],
        ],
      );
      assert.equal((await tags.top({ by: "music" })).items.length, 1);
      await assert.rejects(tags.top(), { code: "missing_key", status: 422 });
      await service.board("pairs").define({ metric: "COUNT(24h, play, song BY (land, kind))", slot: "1h" });
      const pairs = service.board("pairs");
      pairs.add("song", 1, { by: ["se", "jazz"] });
      await service.flush();
      assert.equal((await pairs.top({ by: ["se", "jazz"] })).items[0].subject, "song");
      assert.equal((await tags.remove("post-1", { allKeys: true })).keys, 1);
    });

    test("definitions, status, boards", async () => {
      const fresh = service.board("fresh");
      const metric = "COUNT(24h, like, post_id)";
      assert.equal((await fresh.define({ metric, slot: "1h" }, { dryRun: true })).exists, false);
      await assert.rejects(fresh.status(), { code: "unknown_board" });
      assert.equal((await fresh.define({ metric, slot: "1h" })).metric, metric);
      assert.equal((await fresh.status()).total, 0);
      await assert.rejects(fresh.define({ metric: "COUNT(48h, like, post_id)", slot: "1h" }), {
        code: "board_conflict",
        status: 409,
      });
      assert.ok((await service.boards()).items.some((board) => board.board === "fresh"));
      await service.call("DELETE", "/v1/boards/fresh");
      await assert.rejects(service.call("GET", "/v1/boards/fresh"), RolltopError);
    });

    test("queries and rules", async () => {
      const { answers } = await service.query([
        { board: "likes", subject: "post-2" },
        { board: "likes", subject: "no" },
      ]);
      assert.deepEqual(
        answers.map((answer) => answer.value),
        [4, 0],
      );
      const rule = "COUNT(24h, like, post_id) >= 5";
      assert.equal((await service.evaluate(rule, { post_id: "post-2" })).hit, false);
      const event = { type: "like", record: true, boards: ["likes"] };
      const recorded = await service.evaluate([rule], { post_id: "post-2", tag: "x" }, event);
      assert.equal(recorded.hit, true);
      assert.equal(recorded.recorded.accepted, 1);
      assert.equal((await service.board("likes").subject("post-2")).score, 5);
    });

    test("values move with the clock of the service", async () => {
      await service.call("PUT", "/v1/clock", { now: "2026-01-04T10:07:00Z" });
      assert.equal((await service.board("likes").top()).items.length, 0);
      assert.ok((await service.board("likes").top({ window: "7d" })).items.length > 0);
    });
  });
}
