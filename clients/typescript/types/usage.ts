// Checked by tsc only: what the types of the package allow, and what they do not.

import { rolltop, RolltopError } from "rolltop";
import { attributes } from "rolltop/attributes";
import { distribution } from "rolltop/distribution";
import { follow } from "rolltop/feeds";
import { closePeriod, periods } from "rolltop/periods";
import { setTiers, tiers } from "rolltop/tiers";
import { tokenSigner } from "rolltop/tokens";
import type { Item, Line, Ranking } from "rolltop";

const service = rolltop({
  url: new URL("http://localhost:8080"),
  token: async () => "token",
  onRejected: (item: Item, code: string) => void [item, code],
  onError: (error) => void [error.status satisfies number, error.requestId satisfies string | undefined],
});
const board = service.board("hot-posts", { coalesce: true });

const room: boolean = await board.add("post-1", "19.99", { by: ["se", "jazz"], at: new Date(), retract: true });
await service.event("like", { post_id: "post-1" }, { id: "like-1" });
await board.add("post-1", 12345678901234567890n);
await board.add("post-1", undefined, { value: "19.99" });

const page: Ranking = await board.top({ limit: 10, window: "7d" });
const score: number | null | undefined = page.items[0]?.score;
page.items[0]?.subject satisfies string | null | undefined;
// @ts-expect-error a line of a final period may have lost its subject
page.items[0]?.subject satisfies string | undefined;
for await (const line of board.lines({ offset: 5 })) line satisfies Line;
for await (const line of board.export({ piece: 100 })) line.rank satisfies number;
for await (const ranking of board.live({ limit: 25 })) ranking.total satisfies number | null;
for await (const key of board.keys({ prefix: "a" })) key satisfies string;

const exact = rolltop({ url: "http://localhost:8080", decimals: "string" });
const text: string | null | undefined = (await exact.board("x").top()).items[0]?.score;
const rank: number | undefined = (await exact.board("x").top()).items[0]?.rank;
(await exact.board("x").count("a", { last: "6h" })).value satisfies string | null;
const spread = await distribution(exact.board("x"), { percentiles: [50, 99.9], scores: [1, "2.5"], by: ["se"], window: "7d" });
spread.ranges[0]?.to satisfies string | null | undefined;
spread.percentiles[0]?.percentile satisfies number | undefined;
const { items } = await periods(exact.board("x"), { final: true, after: "2026-10", winners: 1, by: ["se"] });
items[0]?.winners?.[0]?.score satisfies string | null | undefined;
items[0]?.start satisfies string | undefined;
(await closePeriod(board, "3")).current.end satisfies string | null;
(await board.top({ period: "2026-11" })).period?.final satisfies boolean | undefined;
await board.subject("post-1", { period: "2026-11" });
(await exact.board("x").top()).items[0]?.tier satisfies string | undefined;
await setTiers(exact.board("x"), (await tiers(exact.board("x"))).tiers);
(await setTiers(board, [{ name: "gold", top: 5 }])).tiers[0]?.score satisfies number | undefined;
const people = attributes(exact.board("x"));
await people.set("post-1", { name: "Ann", tags: ["a"], level: 12n });
(await people.change("post-1", { level: null }, { by: ["se"] }))?.["name"] satisfies unknown;
(await people.get("post-1"))["name"] satisfies unknown;
(await people.changeAll([{ subject: "post-1", attributes: null }])).accepted satisfies number;
for await (const { subject, attributes } of people.list({ prefix: "post-" })) void [subject satisfies string, attributes["name"]];
(await exact.board("x").top({ attributes: ["name", "picture"] })).items[0]?.attributes?.["name"] satisfies unknown;
for await (const ranking of board.live({ attributes: "*" })) ranking.items[0]?.attributes satisfies object | undefined;
await board.add("post-1", 1, { attributes: { name: "Ann" } });
// @ts-expect-error the attributes are missing
await people.changeAll([{ subject: "post-1" }]);
// @ts-expect-error a window has no lines
await board.count("post-1", { attributes: "name" });
(await distribution(board)).percentiles[0]?.score satisfies number | null | undefined;

(await board.define({ metric: "COUNT(24h, like, post_id)" }, { dryRun: true })).exists satisfies boolean;
(await board.define({ metric: "COUNT(24h, like, post_id)" })).metric satisfies string;
(await service.query([{ board: "x", subject: "a", last: "6h" }])).answers.length satisfies number;
(await service.evaluate("COUNT(30m, login, device_id) > 3", { device_id: "d" })).hit satisfies boolean;
const status: { status: string } = await service.call<{ status: string }>("GET", "/readyz");

const { view, stop } = follow("http://localhost:8080", { board: "hot-posts", limit: 10 }, () => {
  view.state satisfies "loading" | "live" | "polling" | "reconnecting" | "error";
});
view.page?.items[0]?.score satisfies number | string | null | undefined;
stop();

const sign = await tokenSigner({ kid: "5f1c2a9d04b7e386", privateKey: "-----BEGIN PRIVATE KEY-----" });
const token: string = await sign({ scopes: ["write"], event: { type: "like", fields: { post_id: "p" } }, once: true });
// @ts-expect-error a token does not allow to define boards
await sign({ scopes: ["manage"] });

try {
  await board.subject("post-1");
} catch (error) {
  if (error instanceof RolltopError && error.problem) error.problem.code satisfies string;
}

// @ts-expect-error a live ranking has one of four lengths
board.live({ limit: 11 });
// @ts-expect-error a stream is of the current period
board.live({ period: "2026-11" });
// @ts-expect-error a call that is repeated must name the period
void closePeriod(board);
// @ts-expect-error the metric is missing
void board.define({ slot: "1h" });
// @ts-expect-error there is no such option
rolltop({ url: "", retry: 3 });
// @ts-expect-error an amount is a number or a text
void board.add("post-1", { amount: 3 });
void [token, room, score, text, rank, status];
