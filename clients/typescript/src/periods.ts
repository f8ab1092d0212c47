// The periods of a board with a season.

import type { Board } from "./board.ts";
import type { Decimals, Read, ReadOptions, Schemas, ShownOptions } from "./types.ts";

export type Periods<D extends Decimals = "number"> = Read<Schemas["PeriodList"], D>;

export type ClosedPeriod = Schemas["ClosedPeriod"];

export interface PeriodsOptions extends Pick<ReadOptions, "by" | "signal">, ShownOptions {
  /** Whether only periods are wanted in which nothing counts any more: false. */
  final?: boolean | undefined;
  /** The name of a period: only those after it, which the board need not have any more. */
  after?: string | undefined;
  /** The number of lines of each period: 3, and 10 at most. */
  winners?: number | undefined;
  /** The largest number of periods; by default all. */
  limit?: number | undefined;
}

/** Returns the periods of a board with a season, the oldest first, each with the first lines of its ranking. */
export const periods = <D extends Decimals>(board: Board<D>, options: PeriodsOptions = {}): Promise<Periods<D>> =>
  board.send("GET", "/periods", options);

/**
 * Closes the period of this name, on a board whose periods are closed by hand. If it has been closed already, nothing is
 * done: the call is repeated until it is answered, and without the name it could close the next period, too. Needs the
 * scope `manage`.
 */
export const closePeriod = <D extends Decimals>(
  board: Board<D>,
  period: string,
  options: Pick<ReadOptions, "signal"> = {},
): Promise<ClosedPeriod> => board.send("POST", "/close", { ...options, period });
