// How scores are written.

import { formatted, type Num } from "../widget/numbers.ts";

/** What decides how the scores of a board are written. */
export interface Scale {
  metric: string;
  decimals: number;
}

/** Writes a score: with all decimals of the board, and means with two or those of the board. */
export function score(value: Num | null, { metric, decimals }: Scale): string {
  if (metric.startsWith("AVG(") && value !== null && Math.abs(Number(value)) < 1e15) return formatted(Number(value).toFixed(Math.max(decimals, 2)));
  // A number that would be rounded: it is shown as it is.
  if (typeof value !== "number") return formatted(value);
  if (metric.startsWith("APPROX_")) return formatted(value);
  return formatted(decimals > 0 && Number.isFinite(value) && Math.abs(value) < 1e15 ? value.toFixed(decimals) : value);
}

/** Returns whether the contents of slots add up to the score. */
export function addsUp(metric: string): boolean {
  return /^(COUNT|SUM|COUNT_DISTINCT)\(/.test(metric);
}
