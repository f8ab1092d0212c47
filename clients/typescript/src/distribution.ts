// How the scores of a ranking are distributed.

import type { Board } from "./board.ts";
import type { Decimals, PeriodOptions, Read, Schemas } from "./types.ts";

export type Distribution<D extends Decimals = "number"> = Read<Schemas["Distribution"], D>;

export interface DistributionOptions extends PeriodOptions {
  /** Up to 100 percentiles from 0 to 100; by default 0, 25, 50, 75, 90, 95, 99 and 100. */
  percentiles?: readonly number[] | undefined;
  /** Up to 100 scores, each greater than the one before: the bounds of the ranges. By default none. */
  scores?: readonly (number | string)[] | undefined;
}

/** Returns the list as a parameter: the service takes no empty one. */
const listed = (values: readonly (number | string)[] = []) => (values.length > 0 ? values.join() : undefined);

/** Returns the scores at percentiles of a ranking, and the numbers of subjects between scores. */
export const distribution = <D extends Decimals>(
  board: Board<D>,
  { percentiles, scores, ...options }: DistributionOptions = {},
): Promise<Distribution<D>> =>
  board.send("GET", "/distribution", { ...options, percentiles: listed(percentiles), scores: listed(scores) });
