// All boards, the busiest first.

import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatted } from "../../ranking/json.ts";
import { boardPath, call, Problem } from "../api.ts";
import { time } from "../clock.ts";
import { FirstMinute, isDemo } from "../demo.tsx";
import { counted, Empty, Heading, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { href } from "../route.ts";
import { canChange } from "../settings.ts";
import { Spark } from "../spark.tsx";
import { extentOf, inWords } from "../timeline.ts";
import type { BoardStatus, Definition, List } from "../types.ts";

/** Milliseconds between two reads of the list, and from the end of one round over the boards to the next. */
const LIST = 5_000;
const ROUND = 3_000;
/** The most boards whose state is read, and how many at the same time. */
const MOST = 200;
const AT_ONCE = 4;

/** The state of each board as of the last round. It is kept when the page is left, so that it returns at once. */
const statuses = signal(new Map<string, BoardStatus>());

/** Reads the state of these boards again and again, a few at a time. */
function useStatuses(names: string[]): { isComplete: boolean } {
  const isComplete = useSignal(false);
  const key = names.join(" ");
  useEffect(() => {
    isComplete.value = false;
    const ending = new AbortController();
    let timer = 0;
    const round = async () => {
      const waiting = [...names];
      const read = async () => {
        for (let name = waiting.shift(); name !== undefined && !document.hidden; name = waiting.shift()) {
          try {
            const status = await call<BoardStatus>("GET", boardPath(name), undefined, ending.signal);
            statuses.value = new Map(statuses.value).set(name, status);
          } catch (error) {
            // A board that was removed in the meantime, or a store that cannot be read: the list says which.
            if (!(error instanceof Problem)) return;
          }
        }
      };
      if (!document.hidden) await Promise.all(Array.from({ length: AT_ONCE }, read));
      isComplete.value = true;
      if (!ending.signal.aborted) timer = window.setTimeout(round, ROUND);
    };
    void round();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return { isComplete: isComplete.value };
}

/** Returns the events of a window. */
function eventsOf(status: BoardStatus | undefined): number {
  return status?.slots.reduce((all, slot) => all + slot.events, 0) ?? 0;
}

/** Returns the events per second over the window, by which boards of different windows can be compared. */
function rateOf(status: BoardStatus | undefined): number {
  const extent = status && extentOf(status, status);
  return extent ? eventsOf(status) / ((extent.to - extent.from) / 1_000) : 0;
}

/** Writes a rate in the unit in which it is easiest to read. */
function rate(perSecond: number): string {
  if (perSecond === 0) return "no";
  const [value, unit] = perSecond >= 1 ? [perSecond, "s"] : perSecond * 60 >= 1 ? [perSecond * 60, "min"] : [perSecond * 3_600, "h"];
  return `${value >= 100 ? formatted(Math.round(value)) : value.toPrecision(2)} / ${unit}`;
}

export function Boards() {
  const { data, problem } = usePolled<List<Definition>>("v1/boards", LIST);
  const search = useSignal("");
  const boards = data.value?.items ?? [];
  const { isComplete } = useStatuses(boards.slice(0, MOST).map((board) => board.board));
  const known = statuses.value;
  const wanted = search.value.trim().toLowerCase();
  const found = boards
    .filter((board) => board.board.includes(wanted) || board.metric.toLowerCase().includes(wanted))
    .sort((a, b) => rateOf(known.get(b.board)) - rateOf(known.get(a.board)) || (a.board < b.board ? -1 : 1));
  // A board whose state could not be read may hold something.
  const isEmpty = isComplete && boards.every((board) => known.get(board.board)?.total === 0 && eventsOf(known.get(board.board)) === 0);
  const hasDemo = boards.some(isDemo);
  return (
    <>
      <div class="title">
        <Heading title="Boards">Boards</Heading>
        <p class="soft">A board ranks subjects by what was counted over a window of time. Old slots leave the window by themselves.</p>
      </div>
      <Notice problem={problem.value} />
      {canChange && data.value && (isEmpty || hasDemo) && <FirstMinute hasDemo={hasDemo} />}
      {boards.length > 0 && (
        <label class="search">
          <span class="hidden">Search boards by name or metric</span>
          <input type="search" placeholder="Search boards" value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
        </label>
      )}
      {data.value && boards.length === 0 && (
        <Empty title="No boards yet">
          <p>{canChange ? <>Define one: <a href={href(["define"])}>Define a board</a>.</> : "Declare one in the configuration, or with PUT /v1/boards/{board}."}</p>
        </Empty>
      )}
      {boards.length > 0 && found.length === 0 && <Empty title={`No board has “${search.value}” in its name or metric`} />}
      {found.length > 0 && (
        <ul class="boards" aria-label="Boards, the busiest first">
          {found.map((board) => <Row key={board.board} board={board} status={known.get(board.board)} />)}
        </ul>
      )}
      {boards.length > MOST && <p class="soft">Activity is shown for the first {MOST} of {boards.length} boards by name.</p>}
    </>
  );
}

function Row({ board, status }: { board: Definition; status: BoardStatus | undefined }) {
  const extent = status && extentOf(status, status);
  return (
    <li>
      <a href={href(["boards", board.board])}>
        <span class="boards-name">{board.board}</span>
        <span class="boards-metric">{board.metric}{board.windows.map((window) => <span class="chip" key={window}>{inWords(window.split("/")[0] ?? "")}</span>)}</span>
        <span class="boards-spark">{extent && <Spark extent={extent} slots={status.slots} />}</span>
        <span class="boards-figures">
          {status && (
            <>
              <span><b>{rate(rateOf(status))}</b> events</span>
              <span>{board.ranked ? <><b>{formatted(status.total)}</b> {status.total === 1 ? "subject" : "subjects"}</> : "not ranked"}</span>
              <span>{extent ? <>floor {time(extent.from)}, head {time(status.head ?? extent.to)}</> : board.mode === "from_first" ? "a window for each subject" : "all time"}</span>
              {status.retiring > 0 && <span class="warm">{counted(status.retiring, "slot")} retiring</span>}
            </>
          )}
        </span>
      </a>
    </li>
  );
}
