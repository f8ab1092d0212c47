// The labels below a strip of slots: at round times, so that they slide with the slots.

import { axisLabel, offsetOf } from "./clock.ts";

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

/** Returns the labels of slots that begin at these times, with at least so many pixels between two of them. */
export function ticksOf(begins: number[], unit: number, pixels: number, zone: string): Tick[] {
  const [first = 0, second] = begins;
  const last = begins.at(-1) ?? first;
  const length = begins.length > 1 ? (last - first) / (begins.length - 1) : DAY;
  const room = begins.length * unit;
  const precise = length < MINUTE || (second !== undefined && (second - first) % MINUTE !== 0);
  // The zone's clocks at the middle. Where they change within the window, labels on one side are an hour beside the round time.
  const ahead = offsetOf(zone, (first + last) / 2);
  const step = STEPS.find((step) => step >= length * 0.99 && (step / length) * unit >= pixels);
  const ticks: Tick[] = [];
  let free = 0;
  begins.forEach((begin, place) => {
    const at = place * unit;
    const isRound = step === undefined ? at >= free : length >= DAY * 0.9
      // Days may have 23 or 25 hours: the nearest midnight.
      ? Math.round((begin + ahead) / DAY) % Math.round(step / DAY) === 0 || (step % length !== 0 && at >= free)
      : (begin + ahead) % step === 0;
    if (!isRound || at < free || (room - at < 34 && place > 0)) return;
    ticks.push({ place, text: axisLabel(begin, precise, zone) });
    free = at + pixels * 0.8;
  });
  if (ticks.length > 0) return ticks;
  return [{ place: 0, text: axisLabel(first, precise, zone) }];
}
