// Views of several rankings on one stream. How they behave in pages is tested in the browser, with the widget.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rolltop } from "rolltop";
import { attributes } from "rolltop/attributes";
import { follow } from "rolltop/feeds";
import { Running, until } from "./service.mjs";

let running, service;
const requests = [];

before(async () => {
  running = await Running.start();
  service = rolltop({ url: running.url, batchMillis: 20 });
  await service.board("likes").define({ metric: "COUNT(24h, like, post_id)", slot: "1h" });
  await service.board("tags").define({ metric: "SUM(24h, sale, amount, post_id BY tag)", slot: "1h", decimals: 3 });
  const original = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    if (String(input).includes("/v1/stream")) requests.push(init);
    return original(input, init);
  };
});

after(async () => {
  await service?.close();
  await running?.stop();
});

test("views share a stream, and follow their boards", async (t) => {
  const states = [];
  const likes = follow(running.url, { board: "likes", limit: 10 }, () => states.push(likes.view.state));
  const tags = follow(running.url, { board: "tags", by: "a,b", limit: 25 }, () => {});
  const same = follow(running.url, { board: "likes", window: "", limit: 10 }, () => {});
  const stop = () => [likes, tags, same].forEach((followed) => followed.stop());
  t.after(stop);
  assert.equal(same.view, likes.view);
  await until(() => likes.view.page && tags.view.page, "the first pages");
  assert.deepEqual([likes.view.state, tags.view.page.by, requests.length], ["live", "a,b", 1]);
  service.board("likes").add("post-1", 3);
  service.board("tags").add("post-1", "2.5", { by: "a,b" });
  await until(() => likes.view.page.items.length === 1 && tags.view.page.items.length === 1, "the changes");
  assert.deepEqual(likes.view.page.items, [{ rank: 1, subject: "post-1", score: 3 }]);
  assert.equal(tags.view.page.items[0].score, 2.5);

  stop();
  await until(() => requests[0].signal.aborted, "the end of the stream");
  assert.equal(requests.length, 1);
  assert.ok(states.includes("live"));
});

test("views have attributes, on the stream and in polls", async (t) => {
  await service.board("people").define({ metric: "COUNT(all, sale, seller)", season: { every: "1y" } });
  service.board("people").add("a", 1, { attributes: { name: "Ann", level: 1 } });
  service.board("tags").add("a", 1, { by: "c,d", attributes: { name: "Cid" } });
  await service.flush();
  const { name: period } = (await service.board("people").status()).period;
  const wanted = [
    { board: "people", attributes: "name,picture" },
    { board: "people", attributes: "*" },
    { board: "people", attributes: "" },
    { board: "people", attributes: "name,picture", period },
    { board: "tags", attributes: "name", by: "c,d" },
  ];
  const views = wanted.map((one) => follow(running.url, { limit: 10, ...one }, () => {}));
  t.after(() => views.forEach(({ stop }) => stop()));
  const shown = () => views.map(({ view }) => view.page?.items[0]?.attributes);
  await until(() => views.every(({ view }) => view.page), "the pages");
  const [name, all] = [{ name: "Ann" }, { level: 1, name: "Ann" }];
  assert.deepEqual(shown(), [name, all, undefined, name, { name: "Cid" }]);
  assert.deepEqual(views.map(({ view }) => view.state), ["live", "live", "live", "polling", "live"]);
  await attributes(service.board("people")).change("a", { name: "Eve" });
  await until(() => shown()[0].name === "Eve" && shown()[1].name === "Eve", "the change");
  assert.deepEqual(shown().slice(0, 3), [{ name: "Eve" }, { level: 1, name: "Eve" }, undefined]);
});

test("a view that cannot be read says why, and others go on", async (t) => {
  const views = ["nothing", "..", "likes"].map((board) => follow(running.url, { board, limit: 10 }, () => {}));
  t.after(() => views.forEach(({ stop }) => stop()));
  const [nothing, dots, likes] = views.map(({ view }) => view);
  await until(() => nothing.state === "error" && dots.state === "error" && likes.state === "live", "the views");
  assert.equal(nothing.code, "unknown_board");
  assert.match(nothing.message, /^unknown board 'nothing'/);
});

test("a view of a period is polled, beside the stream of the others", async (t) => {
  const season = service.board("season");
  await season.define({ metric: "COUNT(all, sale, seller)", season: { every: "1y" } });
  season.add("seller-1", 3);
  await service.flush();
  const { name } = (await season.status()).period;
  const views = [{ period: name }, {}, { period: "1999" }].map((more) =>
    follow(running.url, { board: "season", limit: 10, ...more }, () => {}),
  );
  t.after(() => views.forEach(({ stop }) => stop()));
  const [polled, live, unknown] = views.map(({ view }) => view);
  await until(() => polled.page && live.page && unknown.state === "error", "the views");
  assert.deepEqual([polled.state, live.state, unknown.code], ["polling", "live", "unknown_period"]);
  assert.deepEqual([polled.page.items, polled.page.period.name], [live.page.items, name]);
});
