// The time of the service, which may differ from that of this machine, and how times are written.

import { computed, signal } from "@preact/signals";
import { hasSimulatedClock } from "./settings.ts";

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

/** The time of the service in milliseconds, four times a second. */
export const now = signal(Date.now());

function tick(): void {
  now.value = hasSimulatedClock && isKnown ? offset : Date.now() + offset;
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

const formats = computed(() => {
  const format = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-GB", { timeZone: zone.value, hourCycle: "h23", ...options });
  return {
    day: format({ day: "numeric", month: "short" }),
    dayAndYear: format({ day: "numeric", month: "short", year: "numeric" }),
    minute: format({ hour: "2-digit", minute: "2-digit" }),
    second: format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  };
});

/** Writes a time as short as it can be understood: the day where it is not today, seconds where they matter. */
export function time(at: number | string, precise = false): string {
  const date = new Date(at);
  const { day, dayAndYear, minute, second } = formats.value;
  const clock = (precise || date.getUTCSeconds() !== 0 ? second : minute).format(date);
  const today = new Date(now.value);
  if (dayAndYear.format(date) === dayAndYear.format(today)) return clock;
  const isFar = Math.abs(date.getTime() - today.getTime()) > 300 * 86_400_000;
  return `${(isFar ? dayAndYear : day).format(date)} ${clock}`;
}

/** Writes the beginning of a slot below an axis: the day only where it is not that of the label before. */
export function axisLabel(at: number, before: number | null, precise: boolean): string {
  const { day, minute, second } = formats.value;
  const clock = (precise ? second : minute).format(at);
  const shown = day.format(at);
  if (clock === "00:00") return shown;
  const known = before ?? (Math.abs(at - now.value) < 86_400_000 / 2 ? now.value : null);
  return known !== null && day.format(known) === shown ? clock : `${shown} ${clock}`;
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
  return next && rest > 0 && count < 10 ? `${count} ${name} ${rest} ${next[1]}` : `${count} ${name}`;
}
