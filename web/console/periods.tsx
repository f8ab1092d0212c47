// The periods of a board with a season: a choice of the one that is shown, and the end of one by hand.

import { useSignal } from "@preact/signals";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { pageOf, type Chosen } from "./chosen.ts";
import { boardPath, call } from "./api.ts";
import { Focused, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import { go } from "./route.ts";
import { inWords } from "./span.ts";
import type { BoardStatus, ClosedPeriod, Periods } from "./types.ts";

/** Milliseconds between two reads: periods are hours or longer. */
const EVERY = 60_000;

interface Props {
  board: BoardStatus;
  chosen: Chosen;
  /** Further parts of the query of the page. */
  further: Record<string, string | null>;
}

/** A list to choose a period from, the newest first. The current one is chosen by no name, so that the page goes on with the next. */
export function PeriodChoice({ board, chosen, further }: Props) {
  const { data } = usePolled<Periods>(boardPath(board.board, "/periods?winners=1"), EVERY);
  const current = board.period?.name;
  const names = (data.value?.items ?? []).map(({ name }) => name).filter((name) => name !== current).reverse();
  // Until the list is read, or if the board has it no longer.
  if (chosen.period !== null && !names.includes(chosen.period)) names.unshift(chosen.period);
  return (
    <label class="small">
      Period{" "}
      <select
        value={chosen.period ?? ""}
        onChange={(event) => go(...pageOf({ ...chosen, period: event.currentTarget.value || null }, further))}
      >
        <option value="">{current} (current)</option>
        {names.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  );
}

/** Closes the current period of a board whose periods are closed by hand, after a second question. */
export function Closing({ board, onClosed }: { board: BoardStatus; onClosed: () => void }) {
  /** The period of the question. If another page closes it meanwhile, this one must not close the next. */
  const asked = useSignal<string | null>(null);
  const hasCanceled = useSignal(false);
  const isBusy = useSignal(false);
  const done = useSignal<ClosedPeriod | null>(null);
  const problem = useSignal<RolltopError | null>(null);
  const current = board.period?.name;
  if (current === undefined || board.season?.every !== "manual") return null;
  const close = async (period: string) => {
    // The buttons are not disabled meanwhile: that would take the focus from them.
    if (isBusy.value) return;
    isBusy.value = true;
    try {
      done.value = await call<ClosedPeriod>("POST", boardPath(board.board, `/close?period=${encodeURIComponent(period)}`));
      problem.value = null;
      asked.value = null;
      hasCanceled.value = false;
      document.querySelector<HTMLElement>("main h1")?.focus();
      onClosed();
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    } finally {
      isBusy.value = false;
    }
  };
  const period = asked.value;
  const open = <button type="button" onClick={() => { asked.value = current; done.value = null; }}>Close period {current} …</button>;
  return (
    <section class="quiet">
      {period !== null
        ? (
          <p class="actions">
            <span>{isBusy.value ? "Closing …" : `Close period ${period}? The next one begins at once. Late items still count for ${inWords(board.season.grace ?? "1h")}.`}</span>
            <Focused>
              <button type="button" onClick={() => { asked.value = null; hasCanceled.value = true; problem.value = null; }}>Cancel</button>
              <button type="button" class="danger" onClick={() => void close(period)}>Close</button>
            </Focused>
          </p>
        )
        : hasCanceled.value ? <Focused key="again">{open}</Focused> : open}
      <p role="status">{done.value && `Period ${done.value.closed.name} is closed, and ${done.value.current.name} has begun.`}</p>
      <Notice problem={problem.value} />
    </section>
  );
}
