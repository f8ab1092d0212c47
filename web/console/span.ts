// Durations as the API writes them, such as `6h`.

/** A duration: a number of units. */
export interface Span {
  count: number;
  unit: Unit;
}

type Unit = keyof typeof UNITS;

/** The lengths of units in milliseconds, of months and years on average, and their names for one and for several. */
const UNITS = {
  s: { length: 1_000, one: "second", several: "seconds" },
  m: { length: 60_000, one: "minute", several: "minutes" },
  h: { length: 3_600_000, one: "hour", several: "hours" },
  d: { length: 86_400_000, one: "day", several: "days" },
  w: { length: 604_800_000, one: "week", several: "weeks" },
  mo: { length: 2_629_800_000, one: "month", several: "months" },
  y: { length: 31_557_600_000, one: "year", several: "years" },
};

/** Reads a duration; null if it has another form. */
export function spanOf(text: string | null): Span | null {
  const [, count, unit] = /^(\d+)(s|m|h|d|w|mo|y)$/.exec(text ?? "") ?? [];
  return count && unit ? { count: Number(count), unit: unit as Unit } : null;
}

/** Returns the length of a duration in milliseconds; null if it has another form. */
export function millis(text: string | null): number | null {
  const span = spanOf(text);
  return span && span.count * UNITS[span.unit].length;
}

/** Writes a duration such as `6h` in words: "6 hours", and "all time" for `all`. */
export function inWords(text: string): string {
  if (text === "all") return "all time";
  const span = spanOf(text);
  return span ? `${span.count} ${UNITS[span.unit][span.count === 1 ? "one" : "several"]}` : text;
}

/** Writes a duration after "the last": "hour", "6 hours". */
export function theLast(text: string): string {
  return inWords(text).replace(/^1 /, "");
}

/** Returns the length of the window of a metric, such as `24h` or `all`. */
export function windowOf(metric: string): string {
  return /^\w+\((\w+),/.exec(metric)?.[1] ?? "";
}
