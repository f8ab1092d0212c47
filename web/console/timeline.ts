// The slots of a window in the order of time, whether they hold something or not. Responses list only those that do.

/** A slot with its place: 0 is the floor, -1 the slot before it. */
export interface Place<S> {
  index: number;
  from: number;
  to: number;
  /** What is in it; null if nothing is. */
  slot: S | null;
}

/** The bounds of a window in milliseconds, and its number of slots. */
export interface Extent {
  from: number;
  to: number;
  slots: number;
}

/** Returns the place of a time. Slots of months and of days with a change of clocks differ in length, by less than half. */
export function placeOf(extent: Extent, from: number): number {
  return Math.round(((from - extent.from) / (extent.to - extent.from)) * extent.slots);
}

/** Returns every slot of a window, oldest first. O(slots). */
export function places<S extends { from: string; to: string }>(extent: Extent, slots: S[]): Place<S>[] {
  const length = (extent.to - extent.from) / extent.slots;
  const found = new Map<number, S>();
  for (const slot of slots) found.set(placeOf(extent, Date.parse(slot.from)), slot);
  return Array.from({ length: extent.slots }, (_, index) => {
    const slot = found.get(index) ?? null;
    const from = slot ? Date.parse(slot.from) : extent.from + index * length;
    return { index, from, to: slot ? Date.parse(slot.to) : from + length, slot };
  });
}

/** The lengths of units in milliseconds; of months and years on average. */
const UNITS: Record<string, number> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  mo: 2_629_800_000,
  y: 31_557_600_000,
};

/** Returns the length of a duration such as `6h` in milliseconds; null if it has another form. */
export function millis(span: string | null): number | null {
  const [, number, unit] = /^(\d+)(s|m|h|d|w|mo|y)$/.exec(span ?? "") ?? [];
  return number && unit ? Number(number) * (UNITS[unit] ?? 0) : null;
}

/** The unit of a duration in words, for one and for several. */
const WORDS: Record<string, [string, string]> = {
  s: ["second", "seconds"],
  m: ["minute", "minutes"],
  h: ["hour", "hours"],
  d: ["day", "days"],
  w: ["week", "weeks"],
  mo: ["month", "months"],
  y: ["year", "years"],
};

/** Writes a duration such as `6h` in words: "6 hours", and "all time" for `all`. */
export function inWords(span: string): string {
  if (span === "all") return "all time";
  const [, number = "", unit = ""] = /^(\d+)([a-z]+)$/.exec(span) ?? [];
  const words = WORDS[unit];
  return words ? `${number} ${words[number === "1" ? 0 : 1]}` : span;
}

/** Writes a duration after "the last": "hour", "6 hours". */
export function theLast(span: string): string {
  return inWords(span).replace(/^1 /, "");
}

/** Returns the bounds of the slots of a window, or null if it has none. */
export function extentOf(status: {
  floor: string | null;
  head: string | null;
  slot: string | null;
  window: { to: string | null; slots: number };
  mode?: string;
}): Extent | null {
  const { floor, head, window } = status;
  // There each subject has a window of its own.
  if (status.mode === "from_first") return null;
  const length = millis(status.slot);
  if (floor === null || head === null || length === null) return null;
  const from = Date.parse(floor);
  const to = window.to === null ? Date.parse(head) + length : Date.parse(window.to);
  // Over all time the window has no slots, but the board may keep some.
  const slots = window.slots || Math.round((Date.parse(head) - from) / length) + 1;
  return to > from ? { from, to, slots } : null;
}

/** Several slots next to each other that are drawn as one. */
export interface Group<S> {
  /** A number that stays the same while the window slides. */
  key: number;
  /** The place of the first slot, and how many slots there are. */
  start: number;
  size: number;
  from: number;
  to: number;
  slots: S[];
}

/**
 * Joins slots so that there are at most about so many groups. Groups begin at fixed times, so that they slide with the
 * window; the first and the last may have fewer slots.
 */
export function grouped<S>(all: Place<S>[], most: number): Group<S>[] {
  const [first] = all;
  if (!first) return [];
  const size = Math.ceil(all.length / most);
  const number = Math.round(first.from / (first.to - first.from));
  const groups: Group<S>[] = [];
  for (const { index, from, to, slot } of all) {
    const key = Math.floor((number + index) / size);
    let group = groups.at(-1);
    if (group?.key !== key) {
      group = { key, start: index, size: 0, from, to, slots: [] };
      groups.push(group);
    }
    group.size += 1;
    group.to = to;
    if (slot !== null) group.slots.push(slot);
  }
  return groups;
}
