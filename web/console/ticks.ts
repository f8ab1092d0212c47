// The labels below a strip of slots: at round times, so that they slide with the slots.

import { ahead as aheadOf } from "./calendar.ts";
import { axisLabel, dayLabel } from "./clock.ts";

/** A label at the beginning of a slot. */
export interface Tick {
  /** The place of the slot in the window, from 0. */
  place: number;
  text: string;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The distances between labels. */
const STEPS = [
  ...[2, 5, 10, 15, 30].map((step) => step * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((step) => step * MINUTE),
  ...[1, 2, 3, 6, 12].map((step) => step * HOUR),
  ...[1, 2, 7, 14, 28, 56, 112, 364].map((step) => step * DAY),
];

/** Returns the labels of slots that begin at these times, with about so many pixels or more between two of them. */
export function ticksOf(begins: number[], unit: number, pixels: number, zone: string): Tick[] {
  const first = begins[0] ?? 0;
  const last = begins.at(-1) ?? first;
  const length = begins.length > 1 ? (last - first) / (begins.length - 1) : DAY;
  const precise = length < MINUTE;
  // The clocks at the middle of the window. Where they change within it, labels on one side are an hour beside the round time.
  const ahead = aheadOf((first + last) / 2, zone);
  const step = STEPS.find((step) => step >= length * 0.99 && (step / length) * unit >= pixels) ?? 364 * DAY;
  // Days may have 23 or 25 hours: half an hour later is on the same day.
  const number = (begin: number) => Math.floor((begin + ahead + (step >= DAY ? HOUR / 2 : 0)) / step);
  const text = (begin: number) => (step >= DAY ? dayLabel(begin + HOUR / 2, zone) : axisLabel(begin, precise, zone));
  const ticks: Tick[] = [];
  let free = 0;
  begins.forEach((begin, place) => {
    const at = place * unit;
    const before = begins[place - 1];
    // The first slot that begins at a round time or after it. Of the oldest slot one cannot tell, unless it is at one.
    const isRound = before === undefined ? (begin + ahead) % step === 0 : number(begin) !== number(before);
    if (!isRound || at < free || (begins.length * unit - at < 34 && place > 0)) return;
    ticks.push({ place, text: text(begin) });
    free = at + pixels * 0.8;
  });
  return ticks.length > 0 ? ticks : [{ place: 0, text: text(first) }];
}
