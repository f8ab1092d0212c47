// One board: its window as a strip of slots, and its live ranking, or its keys and the ranking of one.

import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { formatted } from "../../widget/numbers.ts";
import { boardPath, isAddressable } from "../api.ts";
import { chosenOf, pageOf, readPath, subjectPage, titleOf, type Chosen } from "../chosen.ts";
import { duration, lostSince, mannerOf, now, time } from "../clock.ts";
import { Definition } from "../definition.tsx";
import { canDemo, FirstMinute, isDemo } from "../demo.tsx";
import { Distribution } from "../distribution.tsx";
import { Embed } from "../embed.tsx";
import { exampleEvent, postCommand } from "../example.ts";
import { may } from "../key.ts";
import { useLive } from "../live.ts";
import { Command, counted, Empty, Figure, Heading, LiveMark, Name, Notice } from "../parts.tsx";
import { Closing, PeriodChoice } from "../periods.tsx";
import { usePolled } from "../polled.ts";
import { Ranking } from "../ranking.tsx";
import { Rankings } from "../rankings.tsx";
import { ModeratedSubjects } from "../moderation.tsx";
import { Removal } from "../removal.tsx";
import { Successor } from "../successor.tsx";
import { go, href, route } from "../route.ts";
import { API, canChange } from "../settings.ts";
import { inWords, millis, theLast, windowOf } from "../span.ts";
import { NextToLeave, Strip, type Bar } from "../strip.tsx";
import { TierSettings } from "../tiers.tsx";
import { extentOf } from "../timeline.ts";
import type { BoardStatus, Ranking as RankingPage, WindowStatus } from "../types.ts";

const LIMITS = [10, 25, 50, 100];
/** Milliseconds between two reads of the slots: while slots turn fast or are being subtracted, and otherwise. */
const FAST = 600;
const SLOW = 5_000;

/** Returns the milliseconds between two reads: several times in a slot, but not more often than needed. */
function pace(status: WindowStatus | null): number {
  if (status && status.retiring > 0) return FAST;
  return Math.min(Math.max((millis(status?.slot ?? null) ?? 3 * SLOW) / 3, FAST), SLOW);
}

/** Says what slots hold. Slots have subjects in common, so only events add up. */
function heldBy(bars: Bar[]): string {
  const [only] = bars;
  return bars.length === 1 && only ? only.says : counted(bars.reduce((all, bar) => all + bar.value, 0), "event");
}

function barsOf(status: WindowStatus): Bar[] {
  return status.slots.map(({ from, to, events, subjects }) => ({
    from,
    to,
    value: events,
    says: `${counted(events, "event")}${subjects === null ? "" : ` of ${counted(subjects, "subject")}`}`,
  }));
}

export function Board({ name }: { name: string }) {
  const asked = chosenOf(name);
  const limit = LIMITS.find((limit) => String(limit) === route.value.query.get("limit")) ?? 10;
  const every = useSignal(SLOW);
  const { data, problem, refresh } = usePolled<BoardStatus>(boardPath(name), every.value);
  const board = data.value;
  const tabs = board?.each_window ?? [];
  const length = tabs[0]?.length ?? windowOf(board?.metric ?? "");
  const further = tabs.find((tab) => tab.length === asked.window) ?? null;
  const isUnknown = board !== null && asked.window !== null && further === null && asked.window !== length;
  const status: WindowStatus | null = further ?? board;
  const hasKeys = board?.max_keys !== undefined;
  /** Whether a ranking is chosen, and not a board with many. */
  const isOne = board?.ranked === true && hasKeys === (asked.by !== null);
  /** The period that is read in the place of the current one, which is followed. */
  const period = board?.period && isOne && asked.period !== board.period.name ? asked.period : null;
  const chosen: Chosen = { ...asked, window: further && further !== tabs[0] ? further.length : null, period };
  const live = useLive(isOne && !isUnknown && period === null ? chosen : null, limit);
  const past = usePolled<RankingPage>(period === null ? null : readPath(chosen, `/rankings?limit=${limit}&attributes=name`), SLOW);
  /** The number of subjects that were removed with the key. */
  const removed = useSignal<number | null>(null);
  const next = pace(status);
  useEffect(() => {
    every.value = next;
  }, [next]);
  // The strip changes together with the ranking.
  useSignalEffect(() => {
    if (live.page.value) refresh();
  });

  if (problem.value?.code === "unknown_board") {
    return (
      <>
        <Title chosen={asked} />
        <Empty title={`There is no board ${name}`}>
          <p><a href={href([])}>See all boards</a>{canChange && may("manage", name) && <> or <a href={href(["define"], { name })}>define it</a></>}.</p>
        </Empty>
      </>
    );
  }
  if (!board || !status) return <><Title chosen={asked} /><Notice problem={problem.value} /></>;
  if (isUnknown) {
    return (
      <>
        <Title chosen={asked} />
        <Empty title={`This board has no window of ${inWords(asked.window ?? "")}`}>
          <p><a href={href(...pageOf(chosen))}>Show its window of {inWords(length)}</a>.</p>
        </Empty>
      </>
    );
  }
  if (chosen.by !== null && !hasKeys) {
    return (
      <>
        <Title chosen={asked} />
        <Empty title="This board has no keys"><p><a href={href(...pageOf({ ...chosen, by: null }))}>Show the board</a>.</p></Empty>
      </>
    );
  }
  const shown = further?.length ?? length;
  const page = period === null ? live.page.value : past.data.value;
  const isRead = period === null ? live.connection.value === "live" : past.problem.value === null;
  // The state of a board says how many are ranked for all keys together.
  const total = page?.total ?? (hasKeys ? null : status.total);
  const hasSecond = (board.next ?? board.previous) !== undefined;
  const shownLimit = limit === 10 ? null : String(limit);
  return (
    <>
      <Title chosen={chosen} metric={board.metric}>
        {board.attributes !== undefined && (
          <p class="small">Attributes of its subjects are those of the board <a href={href(...pageOf({ board: board.attributes, window: null, by: null, period: null }))}>{board.attributes}</a>.</p>
        )}
        <div role="status">
          {removed.value !== null && <p>The key was removed with {counted(removed.value, "subject")}. New events count again.</p>}
        </div>
      </Title>
      {canDemo() && isDemo(board) && <FirstMinute demo={board} />}
      {tabs.length > 1 && (
        <nav class="tabs" aria-label="Windows">
          {tabs.map((tab, index) => (
            <a
              key={tab.length}
              href={href(...pageOf({ ...chosen, window: index === 0 ? null : tab.length }, { limit: shownLimit }))}
              aria-current={(further ?? tabs[0]) === tab ? "page" : undefined}
            >
              {inWords(tab.length)}
            </a>
          ))}
        </nav>
      )}
      <Window key={shown} board={board} status={status} length={shown} isOfAll={chosen.by === null} />
      <Notice problem={problem.value ?? live.problem.value ?? past.problem.value} />
      <div class={hasSecond ? "sides" : ""}>
        {isOne && (
          <section aria-labelledby="ranking">
            <div class="bar">
              <h2 id="ranking">{heading(board, status, shown, period)}</h2>
              {period === null && <LiveMark connection={lostSince.value === null ? live.connection.value : "broken"} />}
              {past.data.value?.period && <span class="soft small">{past.data.value.period.final ? "final" : "late items still count"}</span>}
              <span class="spring" />
              {total !== null && <span class="soft small">{counted(total, "subject")} ranked</span>}
              {board.period && <PeriodChoice key={board.period.name} board={board} chosen={chosen} further={{ limit: shownLimit }} />}
              <label class="small">
                Show{" "}
                <select value={limit} onChange={(event) => go(...pageOf(chosen, { limit: event.currentTarget.value }))}>
                  {LIMITS.map((limit) => <option key={limit} value={limit}>{limit}</option>)}
                </select>
              </label>
            </div>
            {page && page.items.length > 0 && (
              <Ranking key={`${shown} ${period}`} lines={page.items} board={board} chosen={chosen} label={`Ranking of ${titleOf(chosen)}`} />
            )}
            {page && page.items.length === 0 && isRead && (
              period === null ? <NothingYet board={board} by={chosen.by} /> : <Empty title="Nothing was counted in this period" />
            )}
          </section>
        )}
        {hasKeys && !isOne && (
          <Rankings key={shown} board={board} chosen={chosen}><NothingYet board={board} by={null} /></Rankings>
        )}
        {hasSecond && <Successor board={board} chosen={isOne ? { ...chosen, window: null } : null} limit={limit} onChanged={refresh} />}
      </div>
      <Embed key={titleOf(chosen)} board={board} chosen={chosen} />
      {isOne && <Distribution board={board} chosen={chosen} />}
      {(isOne || !board.ranked) && <SubjectBox chosen={chosen} isRanked={board.ranked} />}
      <Definition board={board} />
      {canChange && may("manage", name) && <Closing board={board} onClosed={refresh} />}
      {canChange && may("manage", name) && board.ranked && <TierSettings board={name} />}
      {canChange && may("manage", name) && board && <ModeratedSubjects board={name} />}
      {canChange && may("manage", name) && chosen.by !== null && isAddressable(chosen.by) && (
        <Removal<{ subjects: number }>
          label="Remove this key"
          question={<>Remove <b><Name of={chosen.by} /></b> with all its subjects from {name}?</>}
          ways={[["Remove", boardPath(name, `/keys/${encodeURIComponent(chosen.by)}`)]]}
          onRemoved={({ subjects }) => (removed.value = subjects)}
        />
      )}
    </>
  );
}

/** The title of the page of a board or of one of its rankings. */
function Title({ chosen, metric, children }: { chosen: Chosen; metric?: string; children?: ComponentChildren }) {
  const { board, by } = chosen;
  return (
    <div class="title">
      {by !== null && <nav aria-label="Board"><a href={href(...pageOf({ ...chosen, by: null }))}>← {board}</a></nav>}
      <Heading title={titleOf(chosen)}>{by === null ? board : <Name of={by} />}</Heading>
      {metric !== undefined && <p class="soft"><code>{metric}</code></p>}
      {children}
    </div>
  );
}

/** Returns what the ranking shows, in words. */
function heading(board: BoardStatus, status: WindowStatus, length: string, period: string | null): string {
  const which = board.order === "asc" ? "Lowest" : "Top";
  if (board.period) return `${which} of ${period ?? board.period.name}`;
  if (length === "all") return `${which} of all time`;
  return status.window.slots === 1 && status.floor ? `${which} since ${time(status.floor)}` : `${which} of the last ${theLast(length)}`;
}

/** Says how long ago a time was. A part of its own, because it is drawn again four times a second. */
function Ago({ at }: { at: number }) {
  return <span class="soft"> {duration(Math.max(now.value - at, 0))} ago</span>;
}

interface WindowProps {
  board: BoardStatus;
  status: WindowStatus;
  length: string;
  /** Whether what the slots hold is shown: it is known for all keys together only. */
  isOfAll: boolean;
}

/** The window of a board, drawn where it has slots and said where it has none. */
function Window({ board, status, length, isOfAll }: WindowProps) {
  const extent = extentOf(board, status);
  const isAllTime = length === "all";
  const slot = inWords(status.slot ?? "");
  if (!extent) {
    const days = { asDay: true, zone: board.timezone };
    return (
      <p class="panel">
        {board.mode === "from_first"
          ? <>Each subject has its own window: it begins with the subject's first event and ends {inWords(length)} later.</>
          : board.period
          ? <>Totals begin again with each period. The current one, {board.period.name}, {
              board.period.end === null
                ? "ends when somebody closes it"
                : `is from ${time(board.period.start, days)} to ${time(board.period.end, days)}`
            }.</>
          : <>This is the window of all time: it has no slots, and nothing ever leaves it.</>}
      </p>
    );
  }
  const bars = barsOf(status);
  const events = bars.reduce((all, bar) => all + bar.value, 0);
  const manner = mannerOf(status.slot, board.timezone);
  const pending = status.retiring_slots.reduce((all, slot) => all + slot.subjects, 0);
  return (
    <section class="panel" aria-label="Window">
      <dl class="figures">
        <Figure name="Window">
          <b>{isAllTime ? "all time" : inWords(length)}</b>{status.window.slots === 1 ? ", one slot" : <>{isAllTime ? ", with slots of " : " in slots of "}{slot}</>}
        </Figure>
        <Figure name={isAllTime ? "Keeps slots since" : "Counts since (the floor)"}>
          <b>{time(extent.from, manner)}</b>{!isAllTime && <Ago at={extent.from} />}
        </Figure>
        <Figure name="Newest slot (the head)">{time(status.head ?? extent.to, manner)}</Figure>
        {isOfAll && <Figure name={isAllTime ? "Events in the slots" : "Events in the window"}>{formatted(events)}</Figure>}
        {status.retiring > 0 && <Figure name="Retiring"><span class="leaving">{counted(status.retiring, "slot")}, {counted(pending, "subject")} to go</span></Figure>}
      </dl>
      {isOfAll && (
        <Strip
          extent={extent}
          bars={bars}
          leaving={status.retiring_slots.map(({ from }) => from)}
          label={`Slots of ${board.board}, events in each`}
          height={`events per ${status.window.slots === 1 ? "slot" : slot.replace(/^1 /, "")}`}
          manner={manner}
          sum={heldBy}
          rolls={!isAllTime}
        >
          {isAllTime
            ? <>The slots answer queries about shorter times. Nothing leaves the ranking of all time.</>
            : <NextToLeave extent={extent} bars={bars} sum={heldBy} slot={status.slot ?? ""} manner={manner} />}
          {manner.asDay && board.timezone !== "UTC" && <> Days begin at midnight in {board.timezone}.</>}
        </Strip>
      )}
    </section>
  );
}

/** Says how to count something. */
function NothingYet({ board, by }: { board: BoardStatus; by: string | null }) {
  const event = exampleEvent(board, by);
  return (
    <Empty title="Nothing has been counted in this window yet">
      {event
        ? <><p>Post an event, and it appears here:</p><Command>{postCommand("v1/events", event, board.board)}</Command></>
        : <p>Post events of its type: see <a href={API}>the API</a>.</p>}
    </Empty>
  );
}

/** A box for the exact name of a subject. */
function SubjectBox({ chosen, isRanked }: { chosen: Chosen; isRanked: boolean }) {
  const subject = useSignal("");
  return (
    <form
      class="subject-box"
      onSubmit={(event) => {
        event.preventDefault();
        if (subject.value !== "") go(...subjectPage(chosen, subject.value));
      }}
    >
      <label for="subject">{isRanked ? "Find a subject by its exact name" : "This board keeps no ranking. Look up one subject by its exact name"}</label>
      <div class="line">
        <input id="subject" value={subject.value} onInput={(event) => (subject.value = event.currentTarget.value)} autocomplete="off" spellcheck={false} />
        <button type="submit">Show</button>
      </div>
    </form>
  );
}
