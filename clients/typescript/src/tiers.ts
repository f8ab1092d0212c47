// The tiers of a board: parts of its ranking with names.

import type { Board } from "./board.ts";
import type { Decimals, Read, ReadOptions, Schemas } from "./types.ts";

/** A part of a ranking with a name. It has one bound: `rank`, `top` or `score`. */
export interface Tier {
  name: string;
  /** A rank of at most this. */
  rank?: number | undefined;
  /** The best subjects, of which there are at most this many percent. */
  top?: number | undefined;
  /** This score or a better one. */
  score?: number | string | undefined;
}

export type Tiers<D extends Decimals = "number"> = Read<Schemas["Tiers"], D>;

type Signal = Pick<ReadOptions, "signal">;

/** Returns the tiers of a board, the best first. */
export const tiers = <D extends Decimals>(board: Board<D>, options: Signal = {}): Promise<Tiers<D>> =>
  board.send("GET", "/tiers", options);

/** Sets up to 16 tiers in place of those before, the best first; without any the board has none. Needs the scope `manage`. */
export const setTiers = <D extends Decimals>(
  board: Board<D>,
  tiers: readonly Tier[],
  options: Signal = {},
): Promise<Tiers<D>> =>
  board.send("PUT", "/tiers", options, {
    // The service takes no texts here.
    tiers: tiers.map(({ score, ...tier }) => (score === undefined ? tier : { ...tier, score: Number(score) })),
  });
