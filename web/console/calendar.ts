// The starts of slots, as the service divides time. Slots under an hour align to the epoch; longer ones to the midnights of
// the board's time zone, where clock changes make a slot longer or shorter or leave it out; months and years to their first.

import { millis, spanOf } from "./span.ts";

const DAY = 86_400_000;
/** The most starts that are computed: a window has at most 2,000 slots. */
const MOST = 2_001;

const formats = new Map<string, Intl.DateTimeFormat | null>();

/** Returns how much the clocks of a zone are ahead of UTC, in milliseconds. Zones that the browser does not know are UTC. */
export function ahead(at: number, zone: string): number {
  if (zone === "UTC") return 0;
  let format = formats.get(zone);
  if (format === undefined) {
    try {
      format = new Intl.DateTimeFormat("en-US", {
        timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
      });
    } catch {
      format = null;
    }
    formats.set(zone, format);
  }
  if (format === null) return 0;
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(at)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1_000) * 1_000;
}

/** Returns the first instant at which the clocks of a zone show a time or a later one. Times of clocks are as if of UTC. */
function firstAt(clock: number, zone: string): number {
  const offsets = [ahead(clock - DAY, zone), ahead(clock + DAY, zone)].sort((a, b) => b - a);
  const [early = 0, late = 0] = offsets.map((offset) => clock - offset);
  return early + ahead(early, zone) >= clock ? early : late;
}

/** Returns a function from the start of a slot to that of the next one; null if the slot is not written as the API does. */
function step(slot: string, zone: string): ((start: number) => number) | null {
  const { count, unit } = spanOf(slot) ?? {};
  const length = millis(slot);
  if (!count || !length) return null;
  const months = unit === "mo" ? count : unit === "y" ? 12 * count : 0;
  if (months === 0 && (length < 3_600_000 || zone === "UTC")) return (start) => start + length;
  // Weeks begin on Mondays, and the epoch was a Thursday.
  const shift = unit === "w" ? 3 * DAY : 0;
  return (start) => {
    const clock = start + ahead(start, zone);
    const date = new Date(clock);
    for (let number = 1; ; number++) {
      const next = months > 0
        ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months * number, 1)
        : (Math.floor((clock + shift) / length) + number) * length - shift;
      const at = firstAt(next, zone);
      // A slot that the clocks jump over does not exist.
      if (at > start) return at;
    }
  };
}

/** The starts that were computed last: pages draw the same window several times a second. */
const known = new Map<string, number[]>();

/** Returns the starts of slots from `from`, which is one, up to and with the first that is at the end. */
export function following(from: number, slot: string, zone: string, isEnd: (start: number, index: number) => boolean): number[] | null {
  const next = step(slot, zone);
  if (next === null) return null;
  const key = `${from} ${slot} ${zone}`;
  let starts = known.get(key);
  if (starts === undefined) {
    if (known.size >= 500) known.clear();
    known.set(key, (starts = [from]));
  }
  for (let index = 0; index < MOST; index++) {
    const start = (starts[index] ??= next(starts[index - 1] ?? from));
    if (isEnd(start, index)) return starts.slice(0, index + 1);
  }
  return starts.slice(0, MOST);
}
