// The time of the service, which may differ from that of this machine, and how times are written.

import { signal } from "@preact/signals";
import { hasSimulatedClock } from "./settings.ts";
import { millis } from "./span.ts";

/** The time of the service minus the time of this machine, in milliseconds. With a simulated clock, the time itself. */
let offset = 0;
let isKnown = false;

/** Takes the time of a response. */
export function noteTime(asOf: string): void {
  const time = Date.parse(asOf);
  if (Number.isNaN(time)) return;
  const measured = hasSimulatedClock ? time : time - Date.now();
  // Responses are a little late, never early: the largest difference is the best. A clock that was set differs by more.
  if (hasSimulatedClock || !isKnown || measured > offset || Math.abs(measured - offset) > 2_000) offset = measured;
  isKnown = true;
  tick();
}

/** The time of the service in milliseconds, four times a second. It stops while the service is unreachable. */
export const now = signal(Date.now());

/** The time since which the service is unreachable; null while it is reachable. */
export const lostSince = signal<number | null>(null);

/** Takes whether the last request reached the service. */
export function noteReached(isReached: boolean): void {
  if (isReached) lostSince.value = null;
  else lostSince.value ??= now.value;
}

function tick(): void {
  if (lostSince.value === null) now.value = hasSimulatedClock && isKnown ? offset : Date.now() + offset;
}

setInterval(() => {
  if (!document.hidden) tick();
}, 250);

const local = Intl.DateTimeFormat().resolvedOptions().timeZone;
const PLACE = "rolltop.zone";

/** The zones that times can be shown in. */
export const zones: string[] = local === "UTC" || local === "Etc/UTC" ? ["UTC"] : [local, "UTC"];

function remembered(): string {
  try {
    return localStorage.getItem(PLACE) ?? "";
  } catch {
    return "";
  }
}

/** The zone that times are shown in. */
export const zone = signal(zones.includes(remembered()) ? remembered() : (zones[0] ?? "UTC"));

/** Shows times in the next zone. */
export function nextZone(): void {
  zone.value = zones[(zones.indexOf(zone.value) + 1) % zones.length] ?? "UTC";
  try {
    localStorage.setItem(PLACE, zone.value);
  } catch {
    // A browser may keep nothing. Then the next visit begins with the local zone.
  }
}

/** The ways in which times of a zone are written. */
interface Formats {
  day: Intl.DateTimeFormat;
  dayAndYear: Intl.DateTimeFormat;
  minute: Intl.DateTimeFormat;
  second: Intl.DateTimeFormat;
}

const known = new Map<string, Formats>();

function formatsOf(zone: string): Formats {
  const found = known.get(zone);
  if (found) return found;
  const format = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
  const formats = {
    day: format({ day: "numeric", month: "short" }),
    dayAndYear: format({ day: "numeric", month: "short", year: "numeric" }),
    minute: format({ hour: "2-digit", minute: "2-digit" }),
    second: format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  };
  known.set(zone, formats);
  return formats;
}

/** How a time is written: with seconds even if they are 0, in another zone than the chosen one, and only by its day. */
export interface Manner {
  precise?: boolean;
  zone?: string;
  asDay?: boolean;
}

/** Returns how the times of slots are written: those of days or longer by the days of their board's zone. */
export function mannerOf(slot: string | null, zone: string): Manner {
  return (millis(slot) ?? 0) >= 86_400_000 ? { asDay: true, zone } : {};
}

/**
 * Writes a time as short as it can be understood: the day where it is not today, seconds where they matter. What shows it is
 * drawn again only for other reasons: not four times a second, as what reads `now` is.
 */
export function time(at: number | string, { precise = false, zone: given, asDay = false }: Manner = {}): string {
  const date = new Date(at);
  const { day, dayAndYear, minute, second } = formatsOf(given ?? zone.value);
  const clock = (precise || date.getUTCSeconds() !== 0 ? second : minute).format(date);
  const isFar = Math.abs(date.getTime() - now.peek()) > 300 * 86_400_000;
  const shown = (isFar ? dayAndYear : day).format(date);
  if (asDay && clock === "00:00") return shown;
  return dayAndYear.format(date) === dayAndYear.format(now.peek()) ? clock : `${shown} ${clock}`;
}

/** Writes a time below an axis: midnight as its day, other times without. */
export function axisLabel(at: number, precise: boolean, zone: string): string {
  const { day, minute, second } = formatsOf(zone);
  const clock = minute.format(at);
  if (clock === "00:00" && second.format(at) === "00:00:00") return day.format(at);
  return precise ? second.format(at) : clock;
}

/** Writes the day of a time. */
export function dayLabel(at: number, zone: string): string {
  return formatsOf(zone).day.format(at);
}

/** Writes a length of time in its largest one or two units. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const units: [number, string][] = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[first] ?? [1, "s"];
  const count = Math.floor(seconds / size);
  const next = units[first + 1];
  const rest = next ? Math.floor((seconds - count * size) / next[0]) : 0;
  // Seconds matter for some minutes only, minutes for some days.
  return next && rest > 0 && (name !== "min" || count < 10) ? `${count} ${name} ${rest} ${next[1]}` : `${count} ${name}`;
}
