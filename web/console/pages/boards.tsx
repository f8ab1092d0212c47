// All boards, the busiest first.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { RolltopError } from "../../../clients/typescript/src/error.ts";
import { formatted } from "../../widget/numbers.ts";
import { boardPath, call } from "../api.ts";
import { mannerOf, now, time } from "../clock.ts";
import { canDemo, DEMO, FirstMinute, isDemo } from "../demo.tsx";
import { epoch, may } from "../key.ts";
import { counted, Empty, Heading, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { href, replaceQuery, route } from "../route.ts";
import { canChange } from "../settings.ts";
import { inWords, theLast, windowOf } from "../span.ts";
import { Spark } from "../spark.tsx";
import { extentOf } from "../timeline.ts";
import type { BoardStatus, Definition, List } from "../types.ts";

/** Milliseconds between two reads of the list, and from the end of one round over the boards to the next. */
const LIST = 5_000;
const ROUND = 3_000;
/** Milliseconds between two drawings during a round. */
const PUBLISH = 1_000;
/** The most boards whose state is read, and how many at the same time. */
const MOST = 200;
const AT_ONCE = 4;

/** The state of each board as of the last round. It is kept when the page is left, so that it returns at once. */
const statuses = signal(new Map<string, BoardStatus>());
epoch.subscribe(() => (statuses.value = new Map()));

/** Reads the state of these boards again and again, a few at a time. Returns how many rounds are complete. */
function useStatuses(names: string[]): number {
  const rounds = useSignal(0);
  const key = names.join(" ");
  useEffect(() => {
    if (names.length === 0) return undefined;
    rounds.value = names.every((name) => statuses.peek().has(name)) ? 1 : 0;
    const ending = new AbortController();
    let timer = 0;
    let fresh = new Map<string, BoardStatus>();
    // Together, because each drawing shows all boards.
    const publish = () => {
      if (fresh.size > 0) statuses.value = new Map([...statuses.value, ...fresh]);
      fresh = new Map();
    };
    const round = async () => {
      clearTimeout(timer);
      const waiting = [...names];
      const publishing = setInterval(publish, PUBLISH);
      const read = async () => {
        for (let name = waiting.shift(); name !== undefined && !document.hidden; name = waiting.shift()) {
          try {
            const status = await call<BoardStatus>("GET", boardPath(name), undefined, ending.signal);
            fresh.set(name, status);
          } catch (error) {
            // A board that was removed in the meantime, or a store that cannot be read: the list says which.
            if (!(error instanceof RolltopError)) return;
          }
        }
      };
      if (!document.hidden) await Promise.all(Array.from({ length: AT_ONCE }, read));
      clearInterval(publishing);
      if (ending.signal.aborted) return;
      publish();
      rounds.value += 1;
      timer = window.setTimeout(round, ROUND);
    };
    void round();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return rounds.value;
}

/** Returns the events of a window. */
function eventsOf(status: BoardStatus | undefined): number {
  return status?.slots.reduce((all, slot) => all + slot.events, 0) ?? 0;
}

/** Returns the events per second since the oldest slot that holds any; null if the board does not tell. */
function rateOf(status: BoardStatus | undefined): number | null {
  const extent = status && extentOf(status, status);
  if (!extent) return null;
  const first = status.slots.find((slot) => slot.events > 0);
  if (!first) return 0;
  // At least a slot, so that the first event of a board is no burst.
  const length = (extent.to - extent.from) / extent.slots;
  return eventsOf(status) / (Math.max(now.peek() - Date.parse(first.from), length) / 1_000);
}

/** Writes a rate in the unit in which it is easiest to read. */
function Rate({ perSecond }: { perSecond: number }) {
  if (perSecond === 0) return <><b>0</b> events</>;
  const units: [number, string][] = [[1, "second"], [60, "minute"], [3_600, "hour"], [86_400, "day"]];
  const [seconds, unit] = units.find(([seconds]) => perSecond * seconds >= 1) ?? [86_400, "day"];
  const value = perSecond * seconds;
  return <><b>{value >= 10 ? formatted(Math.round(value)) : value.toPrecision(2)}</b> events per {unit}</>;
}

/** Returns the boards with the busiest first. The order stays while the page is open, so that rows do not move away. */
function useOrder(boards: Definition[], rounds: number): Definition[] {
  const order = useRef<{ key: string; rank: Map<string, number> }>({ key: "", rank: new Map() });
  const key = `${rounds > 0} ${boards.map((board) => board.board).join(" ")}`;
  if (order.current.key !== key) {
    const known = statuses.peek();
    const rate = (board: Definition) => rateOf(known.get(board.board)) ?? 0;
    const sorted = [...boards].sort((a, b) => rate(b) - rate(a) || (a.board < b.board ? -1 : 1));
    order.current = { key, rank: new Map(sorted.map((board, index) => [board.board, index])) };
  }
  const { rank } = order.current;
  return [...boards].sort((a, b) => (rank.get(a.board) ?? 0) - (rank.get(b.board) ?? 0));
}

export function Boards() {
  const { data, problem } = usePolled<List<Definition>>("v1/boards", LIST);
  const search = route.value.query.get("search") ?? "";
  const boards = data.value?.items ?? [];
  const rounds = useStatuses(boards.slice(0, MOST).map((board) => board.board));
  const ordered = useOrder(boards, rounds);
  const known = statuses.value;
  const wanted = search.trim().toLowerCase();
  const found = ordered.filter((board) => board.board.includes(wanted) || board.metric.toLowerCase().includes(wanted));
  // A board whose state could not be read may hold something.
  const isEmpty = boards.every((board) => known.get(board.board)?.total === 0 && eventsOf(known.get(board.board)) === 0);
  const hasDemo = boards.some(isDemo);
  return (
    <>
      <div class="title">
        <Heading title="Boards">Boards</Heading>
        <p class="soft">Each board is a live ranking over the last minutes, hours or days. Old events stop counting automatically.</p>
      </div>
      <Notice problem={problem.value} />
      {canDemo() && data.value && (isEmpty || hasDemo) && <FirstMinute demo={hasDemo ? (known.get(DEMO) ?? null) : undefined} />}
      {boards.length > 0 && (
        <div class="bar">
          <label class="search">
            <span class="hidden">Search boards by name or metric</span>
            <input type="search" placeholder="Search boards" value={search} onInput={(event) => replaceQuery({ search: event.currentTarget.value })} />
          </label>
          <span class="soft small">{counted(found.length, "board")}, busiest first</span>
        </div>
      )}
      {data.value && boards.length === 0 && (
        <Empty title="No boards yet">
          <p>{canChange && may("manage") ? <>Define one: <a href={href(["define"])}>Define a board</a>.</> : "Declare one in the configuration, or with PUT /v1/boards/{board}."}</p>
        </Empty>
      )}
      {boards.length > 0 && found.length === 0 && <Empty title={`No board has “${search}” in its name or metric`} />}
      {found.length > 0 && (
        <ul class="boards" role="list" aria-label="Boards, the busiest first">
          {found.map((board) => <Row key={board.board} board={board} status={known.get(board.board)} />)}
        </ul>
      )}
      {boards.length > MOST && <p class="soft">Activity is shown for the first {MOST} of {boards.length} boards by name.</p>}
    </>
  );
}

function Row({ board, status }: { board: Definition; status: BoardStatus | undefined }) {
  const extent = status && extentOf(status, status);
  const rate = rateOf(status);
  const length = windowOf(board.metric);
  const manner = mannerOf(board.slot, board.timezone);
  return (
    <li>
      <span class="boards-title">
        <a class="boards-name" href={href(["boards", board.board])}>{board.board}</a>{" "}
        <code class="soft">{board.metric}</code>
      </span>
      <span class="boards-spark">{extent && <Spark extent={extent} slots={status.slots} />}</span>
      <span class="boards-figures">
        {status && (
          <>
            {rate !== null && <span><Rate perSecond={rate} /></span>}
            {status.keys !== undefined && <span><b>{formatted(status.keys)}</b> {status.keys === 1 ? "key" : "keys"}</span>}
            {status.total !== null && <span>{board.ranked ? <><b>{formatted(status.total)}</b> ranked</> : "no ranking"}</span>}
            <span>
              {length === "all" ? "all time" : board.mode === "from_first" ? `${inWords(length)} for each subject` : `last ${theLast(length)}`}
              {board.windows.length > 0 && `, ${board.windows.map((window) => inWords(window.split("/")[0] ?? "")).join(", ")}`}
            </span>
            {extent && <span>floor {time(extent.from, manner)}, head {time(status.head ?? extent.to, manner)}</span>}
            {status.retiring > 0 && <span class="leaving">{counted(status.retiring, "slot")} retiring</span>}
          </>
        )}
      </span>
    </li>
  );
}
