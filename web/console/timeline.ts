// The slots of a window in the order of time, whether they hold something or not. Responses list only those that do.

import { following } from "./calendar.ts";

/** A slot with its place: 0 is the floor. */
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
  /** The starts of the slots, oldest first, and of as many after them: a slot leaves when the last of those begins. */
  starts: number[];
}

/** Returns the place of the slot that begins at a time; -1 if none does. */
export function placeOf(extent: Extent, from: number): number {
  return extent.starts.indexOf(from);
}

/** Returns when the slot at a place leaves the window. */
export function leavesAt(extent: Extent, index: number): number {
  return extent.starts[extent.slots + index] ?? extent.to;
}

/** Returns every slot of a window, oldest first. O(slots). */
export function places<S extends { from: string; to: string }>(extent: Extent, slots: S[]): Place<S>[] {
  const found = new Map(slots.map((slot) => [Date.parse(slot.from), slot]));
  return extent.starts.slice(0, extent.slots).map((from, index) => {
    return { index, from, to: extent.starts[index + 1] ?? extent.to, slot: found.get(from) ?? null };
  });
}

/** What has to be known of a board to divide its windows into slots. */
interface Divided {
  mode: string;
  timezone: string;
}

/** What has to be known of a window to divide it into slots. */
interface Divisible {
  floor: string | null;
  head: string | null;
  slot: string | null;
}

/** Returns the bounds of the slots of a window, or null if it has none that all subjects share. */
export function extentOf(board: Divided, { floor, head, slot }: Divisible): Extent | null {
  if (floor === null || head === null || slot === null || board.mode === "from_first") return null;
  const last = Date.parse(head);
  const slots = following(Date.parse(floor), slot, board.timezone, (start) => start > last);
  if (slots === null || slots.length < 2) return null;
  const count = slots.length - 1;
  const to = slots[count] ?? last;
  const later = following(to, slot, board.timezone, (_, index) => index === count) ?? [];
  return { from: Date.parse(floor), to, slots: count, starts: [...slots.slice(0, -1), ...later] };
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
  // Slots of days with a change of clocks and of months differ in length; the groups then shift a little.
  const number = Math.round(first.from / (first.to - first.from));
  const groups: Group<S>[] = [];
  for (const { index, from, to, slot } of all) {
    const key = size === 1 ? from : Math.floor((number + index) / size);
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
