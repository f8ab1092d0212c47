// One board: its window as a strip of slots, and its live ranking.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatted } from "../../ranking/json.ts";
import { boardPath } from "../api.ts";
import { time } from "../clock.ts";
import { exampleEvent, postCommand } from "../example.ts";
import { useLive } from "../live.ts";
import { Command, counted, Empty, Figure, Heading, LiveMark, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { Ranking } from "../ranking.tsx";
import { go, href, route } from "../route.ts";
import { canChange } from "../settings.ts";
import { NextToLeave, Strip, type Bar } from "../strip.tsx";
import { extentOf, inWords, millis, theLast } from "../timeline.ts";
import type { BoardStatus, WindowStatus } from "../types.ts";

const LIMITS = [10, 25, 50, 100];

/** Milliseconds until the slots are read again while one is leaving. */
const SOON = 600;

/** Returns the milliseconds between two reads of the slots: several times in a slot, but not more often than needed. */
function pace(slot: string | null | undefined): number {
  return Math.min(Math.max((millis(slot ?? null) ?? 15_000) / 3, 600), 5_000);
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
  const asked = route.value.query.get("window");
  const limit = LIMITS.find((limit) => String(limit) === route.value.query.get("limit")) ?? 10;
  const slot = useSignal<string | null>(null);
  const { data, problem, refresh } = usePolled<BoardStatus>(boardPath(name), pace(slot.value));
  const board = data.value;
  const tabs = board?.each_window ?? [];
  const further = tabs.find((tab) => tab.length === asked) ?? null;
  const status: WindowStatus | null = further ?? board;
  const live = useLive(board?.ranked ? name : null, further && further !== tabs[0] ? further.length : null, limit);
  useEffect(() => {
    slot.value = status?.slot ?? null;
  }, [status?.slot]);
  // A slot that is leaving is gone soon, mostly within milliseconds.
  useEffect(() => {
    if (!status || status.retiring === 0) return undefined;
    const timer = setTimeout(() => document.hidden || refresh(), SOON);
    return () => clearTimeout(timer);
  }, [status]);
  // When slots turn, the strip moves together with the ranking.
  const turned = useSignal("");
  useSignalEffect(() => {
    const from = live.page.value?.window.from ?? "";
    if (from !== turned.peek()) {
      turned.value = from;
      refresh();
    }
  });

  if (!board || !status) {
    return (
      <>
        <div class="title"><Heading title={name}>{name}</Heading></div>
        {problem.value?.code === "unknown_board"
          ? <Empty title={`There is no board ${name}`}><p><a href={href([])}>See all boards</a>{canChange && <> or <a href={href(["define"], { name })}>define it</a></>}.</p></Empty>
          : <Notice problem={problem.value} />}
      </>
    );
  }
  const length = further?.length ?? tabs[0]?.length ?? /^\w+\((\w+),/.exec(board.metric)?.[1] ?? "";
  const page = live.page.value;
  const total = page?.total ?? status.total;
  return (
    <>
      <div class="title">
        <Heading title={name}>{name}</Heading>
        <p class="soft"><code>{board.metric}</code></p>
      </div>
      {tabs.length > 1 && (
        <nav class="tabs" aria-label="Windows">
          {tabs.map((tab, index) => (
            <a
              key={tab.length}
              href={href(["boards", name], { window: index === 0 ? null : tab.length, limit: limit === 10 ? null : String(limit) })}
              aria-current={(further ?? tabs[0]) === tab ? "page" : undefined}
            >
              {inWords(tab.length)}
            </a>
          ))}
        </nav>
      )}
      <Window board={board} status={status} length={length} />
      <Notice problem={problem.value ?? live.problem.value} />
      {board.ranked && (
        <section aria-labelledby="ranking">
          <div class="bar">
            <h2 id="ranking">Top {length === "all" ? "of all time" : status.window.slots === 1 && status.floor ? `since ${time(status.floor)}` : `of the last ${theLast(length)}`}</h2>
            <LiveMark connection={live.connection.value} />
            <span class="spring" />
            <span class="soft">{counted(total, "subject")}</span>
            <label class="small">
              Show{" "}
              <select value={limit} onChange={(event) => go(["boards", name], { window: asked, limit: event.currentTarget.value })}>
                {LIMITS.map((limit) => <option key={limit} value={limit}>{limit}</option>)}
              </select>
            </label>
          </div>
          {page && page.items.length > 0 && <Ranking lines={page.items} board={name} window={further?.length ?? null} label={`Ranking of ${name}`} />}
          {page && page.items.length === 0 && <NothingYet metric={board.metric} />}
        </section>
      )}
      <SubjectBox board={name} window={further?.length ?? null} isRanked={board.ranked} />
    </>
  );
}

/** The window of a board, drawn where it has slots and said where it has none. */
function Window({ board, status, length }: { board: BoardStatus; status: WindowStatus; length: string }) {
  const extent = extentOf(board, status);
  const isAllTime = length === "all";
  if (!extent) {
    return (
      <p class="panel">
        {board.mode === "from_first"
          ? <>Each subject has a window of its own: it begins with the subject's first event and ends {inWords(length)} later.</>
          : <>This window is all time: it has no slots, and nothing ever leaves it.</>}
      </p>
    );
  }
  const bars = barsOf(status);
  const events = bars.reduce((all, bar) => all + bar.value, 0);
  return (
    <section class="panel" aria-label="Window">
      <dl class="figures">
        <Figure name="Window"><b>{isAllTime ? "all time" : inWords(length)}</b>{status.window.slots === 1 ? ", one slot" : <>{isAllTime ? ", with slots of " : " in slots of "}{inWords(status.slot ?? "")}</>}</Figure>
        <Figure name="Events in it"><b>{formatted(events)}</b></Figure>
        <Figure name={isAllTime ? "Oldest slot kept" : "Oldest slot, the floor"}>{time(extent.from)}</Figure>
        <Figure name="Newest slot, the head">{time(status.head ?? extent.to)}</Figure>
        {status.retiring > 0 && <Figure name="Leaving now"><span class="warm">{counted(status.retiring, "slot")}</span></Figure>}
      </dl>
      <Strip
        extent={extent}
        bars={bars}
        leaving={status.retiring_slots.map(({ from, subjects }) => ({ from, says: `${formatted(subjects)} left` }))}
        label={`Slots of ${board.board}, events in each`}
        sum={heldBy}
        rolls={!isAllTime}
      >
        {isAllTime ? <>Slots are kept for questions about shorter times. Nothing leaves the ranking of all time.</> : <NextToLeave extent={extent} bars={bars} sum={heldBy} />}
      </Strip>
    </section>
  );
}

/** Says how to count something. */
function NothingYet({ metric }: { metric: string }) {
  const event = exampleEvent(metric);
  return (
    <Empty title="Nothing is counted in this window yet">
      {event
        ? <><p>Post an event, and it appears here:</p><Command>{postCommand(event)}</Command></>
        : <p>Post events of its type: <a href="swagger-ui/">the API</a> says how.</p>}
    </Empty>
  );
}

/** A box for the exact name of a subject. */
function SubjectBox({ board, window, isRanked }: { board: string; window: string | null; isRanked: boolean }) {
  const subject = useSignal("");
  return (
    <form
      class="subject-box"
      onSubmit={(event) => {
        event.preventDefault();
        if (subject.value !== "") go(["boards", board, "subjects", subject.value], { window });
      }}
    >
      <label for="subject">{isRanked ? "Find a subject by its exact name" : "This board ranks nothing. Ask about a subject by its exact name"}</label>
      <div class="line">
        <input id="subject" value={subject.value} onInput={(event) => (subject.value = event.currentTarget.value)} autocomplete="off" spellcheck={false} />
        <button type="submit">Show</button>
      </div>
    </form>
  );
}
