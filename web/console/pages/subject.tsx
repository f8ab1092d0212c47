// One subject of a board: score, rank, what is in each of its slots, and its neighbors.

import { useSignal, useSignalEffect } from "@preact/signals";
import { formatted, type Num } from "../../widget/numbers.ts";
import { boardPath, isAddressable } from "../api.ts";
import { Attributes, nameOf } from "../attributes.tsx";
import { chosenOf, pageOf, subjectPath, titleOf } from "../chosen.ts";
import { duration, mannerOf, now, time, type Manner } from "../clock.ts";
import { may } from "../key.ts";
import { Moderation } from "../moderation.tsx";
import { counted, Empty, Figure, Heading, Name, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { Ranking } from "../ranking.tsx";
import { Removal } from "../removal.tsx";
import { href } from "../route.ts";
import { addsUp, score } from "../score.ts";
import { canChange } from "../settings.ts";
import { inWords, millis } from "../span.ts";
import { Strip, type Bar } from "../strip.tsx";
import { extentOf, leavesAt, placeOf, type Extent } from "../timeline.ts";
import type { BoardStatus, Neighbors, Standing, WindowStatus } from "../types.ts";

/** Lines of the ranking before and after the subject. */
const RADIUS = 3;

export function Subject({ board: name, subject }: { board: string; subject: string }) {
  const chosen = chosenOf(name);
  const { window, by, period } = chosen;
  const isAskable = isAddressable(subject);
  const board = usePolled<BoardStatus>(boardPath(name), 5_000);
  const status: WindowStatus | null = board.data.value?.each_window?.find((each) => each.length === window) ?? board.data.value;
  const every = Math.min(Math.max((millis(status?.slot ?? null) ?? 6_000) / 3, 700), 3_000);
  const standing = usePolled<Standing>(isAskable ? subjectPath(chosen, subject, "?attributes=name") : null, every);
  const isListed = board.data.value?.ranked === true && standing.data.value?.rank != null;
  const around = usePolled<Neighbors>(isListed ? subjectPath(chosen, subject, `/neighbors?radius=${RADIUS}&attributes=name`) : null, 60_000);
  // Together with the score, so that both tell the same.
  useSignalEffect(() => {
    if (standing.data.value) around.refresh();
  });
  /** From what it was removed. */
  const removed = useSignal<string | null>(null);
  const found = standing.data.value;
  const shownName = nameOf(found?.attributes);
  const problem = standing.problem.value ?? board.problem.value;
  // A removal is one from all windows and periods.
  const ways: [string, string][] = [["Remove", subjectPath({ ...chosen, window: null, period: null }, subject)]];
  if (by !== null) ways.push(["Remove from all keys", subjectPath({ board: name, window: null, by: null, period: null }, subject, "?all_keys=true")]);
  return (
    <>
      <div class="title">
        <nav aria-label="Board">
          <a href={href(...pageOf(chosen))}>← {by ?? name}</a>
          {by !== null && <> in <a href={href(...pageOf({ ...chosen, by: null }))}>{name}</a></>}
        </nav>
        <Heading title={`${subject} in ${titleOf(chosen)}`}><Name of={subject} /></Heading>
        {shownName !== null && <p class="name"><Name of={shownName} /></p>}
        {board.data.value && <p class="soft"><code>{board.data.value.metric}</code>{window && <>, window of {inWords(window)}</>}{period && <>, period {period}</>}</p>}
        <div role="status">{removed.value !== null && <p><Name of={subject} /> was removed from {removed.value}. New events count again.</p>}</div>
      </div>
      <Notice problem={problem}>{problem?.code === "missing_key" && <a href={href(...pageOf(chosen))}>Choose one.</a>}</Notice>
      {!isAskable && <Empty title="This name cannot be part of an address"><p>Browsers treat it as a step in a path. <code>POST …/rankings/lookup</code> accepts every name.</p></Empty>}
      {found && status && board.data.value && (removed.value === null || isCounted(found)) && <Found board={board.data.value} status={status} standing={found} />}
      {isListed && around.data.value && board.data.value && (
        <section aria-labelledby="around">
          <h2 id="around">Neighbors in the ranking</h2>
          <Ranking lines={around.data.value.items} board={board.data.value} chosen={chosen} marked={subject} label={`Ranking around ${subject}`} />
        </section>
      )}
      {isAskable && found && board.data.value && (
        <Attributes board={board.data.value} chosen={chosen} subject={subject} onChange={standing.refresh} />
      )}
      {canChange && may("manage", name) && isAskable && found && board.data.value && (
        <Moderation chosen={chosen} subject={subject} isRanked={board.data.value.ranked} onChange={standing.refresh} />
      )}
      {canChange && may("manage", name) && found && isCounted(found) && (
        <Removal<{ keys?: number }>
          label="Remove this subject"
          question={<>Remove <b><Name of={subject} /></b> from the ranking and every slot of {titleOf(chosen)}?</>}
          ways={ways}
          onRemoved={({ keys }) => {
            removed.value = keys === undefined ? titleOf(chosen) : `${counted(keys, "key")} of ${name}`;
            standing.refresh();
          }}
        />
      )}
    </>
  );
}

/** Returns whether anything of the subject is in the window. */
function isCounted(standing: Standing): boolean {
  return standing.slots.length > 0 || standing.rank !== null || (standing.score !== null && Number(standing.score) !== 0);
}

function Found({ board, status, standing }: { board: BoardStatus; status: WindowStatus; standing: Standing }) {
  if (!isCounted(standing)) {
    return <Empty title="Nothing has been counted for this name in the window"><p>Names are exact: upper and lower case differ, and so do spaces.</p></Empty>;
  }
  const { window } = standing;
  const adds = addsUp(board.metric);
  const manner = mannerOf(status.slot, board.timezone);
  // The window of the same response, which the status of the board may be older than.
  const head = window.to === null ? null : new Date(Date.parse(window.to) - 1).toISOString();
  const extent = extentOf(board, window.from === null ? status : { floor: window.from, head, slot: status.slot });
  const rolls = window.slots > 0;
  const bars: Bar[] = standing.slots.map((slot) => {
    const value = (slot["count"] !== undefined && adds ? slot["count"] : slot["value"] ?? slot["count"] ?? 0) as Num;
    return { from: String(slot["from"]), to: String(slot["to"]), value: Number(value), says: score(value, board) };
  });
  const sum = (some: Bar[]) => (some.length === 1 ? some[0]?.says ?? "" : adds ? score(some.reduce((all, bar) => all + bar.value, 0), board) : `${some.length} slots with values`);
  const isOwnWindow = board.mode === "from_first" && window.from !== null && window.to !== null;
  return (
    <section class="panel" aria-label="Standing">
      {standing.hidden && <p>It is hidden: it goes on counting, and is in no ranking.</p>}
      <dl class="figures">
        <Figure name="Score"><b class="large">{standing.score === null ? "none" : score(standing.score, board)}</b></Figure>
        {standing.rank !== null && <Figure name="Rank"><b class="large">{formatted(standing.rank)}</b> of {formatted(standing.total ?? 0)}</Figure>}
        {standing.tier !== undefined && <Figure name="Tier"><b class="large"><Name of={standing.tier} /></b></Figure>}
        {standing.percentile !== null && (
          <Figure name="Percentile"><b class="large">{formatted(Math.round(standing.percentile * 10) / 10)}</b></Figure>
        )}
        {extent && rolls && <Leaves extent={extent} bars={bars} adds={adds} manner={manner} />}
        {isOwnWindow && window.to && <Figure name="Its window"><b>{time(window.from ?? "", { precise: true })} – {time(window.to, { precise: true })}</b></Figure>}
      </dl>
      {isOwnWindow && window.to && <p>It began with the first event. {until(Date.parse(window.to))}, it ends, and the score is 0 until the next event.</p>}
      {extent && (
        <Strip
          extent={extent}
          bars={bars}
          leaving={[]}
          label={`Slots of ${standing.subject}`}
          height={adds ? "in each slot" : "value of each slot"}
          manner={manner}
          sum={sum}
          rolls={rolls}
        >
          {counted(bars.length, "slot")} of {formatted(extent.slots)} {bars.length === 1 ? "holds" : "hold"} something{adds && rolls && bars.length > 1 ? "; together they are the score." : "."}
        </Strip>
      )}
    </section>
  );
}

/** Writes when something will be. */
function until(at: number): string {
  return at > now.value ? `At ${time(at)}, in ${duration(at - now.value)}` : "Now";
}

/** Says what the subject loses next, and when. */
function Leaves({ extent, bars, adds, manner }: { extent: Extent; bars: Bar[]; adds: boolean; manner: Manner }) {
  const oldest = bars[0];
  if (!oldest) return null;
  const at = leavesAt(extent, placeOf(extent, Date.parse(oldest.from)));
  return (
    <Figure name={adds ? "Loses next" : "Its oldest slot holds"}>
      <b class="large">{adds ? "−" : ""}{oldest.says}</b>{" "}
      {at > now.value ? <>{adds ? "" : "and leaves "}at {time(at, manner)}, in {duration(at - now.value)}</> : "now"}
    </Figure>
  );
}
