// A property of `changed` of the client, which console and widget use: the changes of a stream, applied to its first page, give the page that a read
// returns.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT, startService, until, withRandom } from "./harness.mjs";

const ROUNDS = Number(process.env.ROLLTOP_TEST_ROUNDS ?? 12);
const BOARD = "COUNT(3h, like, post_id)";

const { build } = createRequire(join(ROOT, "web/package.json"))("esbuild");
const built = await build({
  stdin: {
    contents: `
      export { formatted } from "./web/widget/numbers.ts";
      export { parseUnrounded as parse } from "./clients/typescript/src/json.ts";
      export { changed } from "./clients/typescript/src/live.ts";
    `,
    resolveDir: ROOT,
  },
  bundle: true,
  write: false,
  format: "esm",
});
const { changed, formatted, parse } = await import(`data:text/javascript,${encodeURIComponent(built.outputFiles[0].text)}`);

/** Calls `take` with the data of each event of a stream, until it is aborted. */
async function read(url, signal, take) {
  const { body } = await fetch(url, { signal });
  let text = "";
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + part).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data !== undefined) take(parse(data));
    }
  }
}

test("changes applied to a page give the page that is read", withRandom(async ({ random }) => {
  let now = Date.parse("2026-01-02T10:07:00Z");
  const service = await startService({ clock: new Date(now).toISOString() });
  await service.call("PUT", "/v1/boards/board", { metric: BOARD, slot: "1h" });
  const views = ["board", "board,limit=25"];
  const pages = {};
  let changes = 0;
  const ended = new AbortController();
  const reading = read(`${service.base}/v1/stream?${views.map((view) => `view=${view}`).join("&")}`, ended.signal, (event) => {
    const { view, page, change } = event;
    if (page) pages[view] = page;
    if (!change) return;
    changes += 1;
    pages[view] = changed(pages[view], change);
    const { items } = pages[view];
    const better = (line, next) => line.score > next.score || (line.score === next.score && line.rank === next.rank);
    assert.ok(items.every((line, at) => at === 0 || better(items[at - 1], line)), JSON.stringify(items));
    assert.equal(new Set(items.map(({ subject }) => subject)).size, items.length);
  });
  const failed = reading.catch((error) => ended.signal.aborted || Promise.reject(error));
  await until(() => views.every((view) => pages[view]), "the first pages");

  const subject = () => `post-${random.below(random.pick([5, 15, 40]))}`;
  const steps = [
    async () => {
      const amounts = {};
      for (let posts = random.below(20); posts >= 0; posts--) amounts[subject()] = 1 + random.below(5);
      await service.count("board", amounts);
    },
    async () => void (await fetch(`${service.base}/v1/boards/board/subjects/${subject()}`, { method: "DELETE" })),
    async () => {
      now += random.pick([60_000, 1_800_000, 3_600_000, 4 * 3_600_000]);
      await service.setClock(new Date(now).toISOString());
    },
  ];
  const shown = ({ items, total, window, retiring }) => JSON.stringify({ items, total, window, retiring });
  for (let round = 0; round < ROUNDS; round++) {
    for (let count = 1 + random.below(6); count > 0; count--) await steps[random.pick([0, 0, 0, 1, 2])]();
    for (const view of views) {
      const limit = /\d+/.exec(view)?.[0] ?? 10;
      const isSame = async () => {
        const response = await fetch(`${service.base}/v1/boards/board/rankings?limit=${limit}`);
        return shown(parse(await response.text())) === shown(pages[view]);
      };
      await Promise.race([until(isSame, `round ${round}: the page of ${view}`), failed]);
    }
  }
  assert.ok(changes > 0);
  ended.abort();
  await failed;
}));

test("numbers are exact, whatever their form", () => {
  const numbers = '[0, -0, 12.5, 9007199254740993, -268071406391.07, 12345678901234567.89, 1e21, 0.000000001, 100]';
  // Engines that do not tell the source of a number round those beyond 15 digits.
  const isTold = JSON.parse("1", (_, value, context) => context?.source) === "1";
  const texts = parse(numbers).map(formatted);
  const exact = [
    "0", "0", "12.5", "9\u202f007\u202f199\u202f254\u202f740\u202f993", "\u2212268\u202f071\u202f406\u202f391.07",
    "12\u202f345\u202f678\u202f901\u202f234\u202f567.89", "1e+21", "1e-9", "100",
  ];
  const isShort = (_, at) => isTold || ![3, 5].includes(at);
  assert.deepEqual(texts.filter(isShort), exact.filter(isShort));
});
