// The periods of a board with a season: a choice of the one that is shown.

import { pageOf, type Chosen } from "./chosen.ts";
import { boardPath } from "./api.ts";
import { usePolled } from "./polled.ts";
import { go } from "./route.ts";
import type { BoardStatus, Periods } from "./types.ts";

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
