// One subject of a board: score, rank, what is in each of its slots, and its neighbors.

import { useSignal } from "@preact/signals";
import { formatted, type Num } from "../../ranking/json.ts";
import { boardPath, call, Problem, subjectPath } from "../api.ts";
import { duration, now, time } from "../clock.ts";
import { counted, Empty, Figure, Heading, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { Ranking } from "../ranking.tsx";
import { href, route } from "../route.ts";
import { canChange } from "../settings.ts";
import { Strip, type Bar } from "../strip.tsx";
import { extentOf, inWords, leavesAt, millis, placeOf, type Extent } from "../timeline.ts";
import type { BoardStatus, Neighbors, Standing, WindowStatus } from "../types.ts";

/** Lines of the ranking before and after the subject. */
const RADIUS = 3;

/** Metrics whose slots add up to the score. */
const ADDS = /^(COUNT|SUM|COUNT_DISTINCT)\(/;

export function Subject({ board: name, subject }: { board: string; subject: string }) {
  const window = route.value.query.get("window");
  const board = usePolled<BoardStatus>(boardPath(name), 5_000);
  const slot = board.data.value?.slot ?? null;
  const every = Math.min(Math.max((millis(slot) ?? 6_000) / 2, 1_000), 3_000);
  const standing = usePolled<Standing>(subjectPath(name, subject, "", window), every);
  const isRanked = board.data.value?.ranked === true;
  const isListed = isRanked && standing.data.value?.rank != null;
  const neighbors = usePolled<Neighbors>(isListed ? subjectPath(name, subject, `/neighbors?radius=${RADIUS}`, window) : null, every);
  const status: WindowStatus | null = board.data.value?.each_window?.find((each) => each.length === window) ?? board.data.value;
  const found = standing.data.value;
  const problem = standing.problem.value ?? board.problem.value;
  return (
    <>
      <div class="title">
        <nav aria-label="Board"><a href={href(["boards", name], { window })}>← {name}</a></nav>
        <Heading title={`${subject} in ${name}`}><bdi>{subject}</bdi></Heading>
        {board.data.value && <p class="soft"><code>{board.data.value.metric}</code>{window && <>, window of {inWords(window)}</>}</p>}
      </div>
      <Notice problem={problem} />
      {found && status && board.data.value && <Found board={board.data.value} status={status} standing={found} />}
      {isListed && neighbors.data.value && (
        <section aria-labelledby="around">
          <h2 id="around">Around it in the ranking</h2>
          <Ranking lines={neighbors.data.value.items} board={name} window={window} marked={subject} label={`Ranking around ${subject}`} />
        </section>
      )}
      {canChange && found && <Removal board={name} subject={subject} onRemoved={standing.refresh} />}
    </>
  );
}

function Found({ board, status, standing }: { board: BoardStatus; status: WindowStatus; standing: Standing }) {
  const extent = extentOf(board, status);
  const adds = ADDS.test(board.metric);
  const bars: Bar[] = standing.slots.map((slot) => {
    const value = (slot["count"] !== undefined && adds ? slot["count"] : slot["value"] ?? slot["count"] ?? 0) as Num;
    return { from: String(slot["from"]), to: String(slot["to"]), value: Number(value), says: formatted(value) };
  });
  const sum = (some: Bar[]) => (some.length === 1 ? some[0]?.says ?? "" : adds ? formatted(some.reduce((all, bar) => all + bar.value, 0)) : `${some.length} slots with values`);
  const isCounted = standing.slots.length > 0 || standing.rank !== null || (standing.score !== null && Number(standing.score) !== 0);
  if (!isCounted) {
    return <Empty title="Nothing is counted for this name in the window"><p>Names are exact: upper and lower case differ, and so do spaces.</p></Empty>;
  }
  return (
    <section class="panel" aria-label="Standing">
      <dl class="figures">
        <Figure name="Score"><b class="large">{standing.score === null ? "none" : formatted(standing.score)}</b></Figure>
        {standing.rank !== null && <Figure name="Rank"><b class="large">{formatted(standing.rank)}</b> of {formatted(standing.total ?? 0)}</Figure>}
        {standing.percentile !== null && <Figure name="Percentile"><b class="large">{formatted(Math.round(standing.percentile * 10) / 10)}</b></Figure>}
        {extent && status.window.slots > 0 && <Leaves extent={extent} bars={bars} adds={adds} />}
      </dl>
      {extent && (
        <Strip extent={extent} bars={bars} leaving={[]} label={`Slots of ${standing.subject}`} sum={sum} rolls={status.window.slots > 0}>
          {counted(bars.length, "slot")} of {formatted(extent.slots)} {bars.length === 1 ? "has" : "have"} something in {bars.length === 1 ? "it" : "them"}
          {adds && status.window.slots > 0 ? "; together they are the score." : "."}
        </Strip>
      )}
    </section>
  );
}

/** Says what the subject loses next, and when. */
function Leaves({ extent, bars, adds }: { extent: Extent; bars: Bar[]; adds: boolean }) {
  const oldest = bars[0];
  if (!oldest) return null;
  const at = leavesAt(extent, placeOf(extent, Date.parse(oldest.from)));
  return (
    <Figure name={adds ? "Loses next" : "Oldest value"}>
      <b class="large">{adds ? "−" : ""}{oldest.says}</b> {adds ? "" : "leaves "}at {time(at)}, in {duration(at - now.value)}
    </Figure>
  );
}

/** Removes the subject after a second question. */
function Removal({ board, subject, onRemoved }: { board: string; subject: string; onRemoved: () => void }) {
  const isAsked = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const remove = async () => {
    try {
      await call("DELETE", subjectPath(board, subject));
      problem.value = null;
      isAsked.value = false;
      onRemoved();
    } catch (error) {
      if (error instanceof Problem) problem.value = error;
    }
  };
  return (
    <section class="quiet">
      {isAsked.value
        ? (
          <p class="actions">
            <span>Remove <b><bdi>{subject}</bdi></b> from the ranking and every slot of {board}?</span>
            <button type="button" class="danger" onClick={() => void remove()}>Remove</button>
            <button type="button" onClick={() => (isAsked.value = false)}>Keep</button>
          </p>
        )
        : <button type="button" onClick={() => (isAsked.value = true)}>Remove this subject …</button>}
      <Notice problem={problem.value} />
    </section>
  );
}
