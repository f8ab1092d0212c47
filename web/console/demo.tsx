// The first minute: a board that rolls every two seconds, and made-up events for it from this page.

import { signal } from "@preact/signals";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { boardPath, call } from "./api.ts";
import { now } from "./clock.ts";
import { epoch, may } from "./key.ts";
import { Notice } from "./parts.tsx";
import { go, href, route } from "./route.ts";
import { canChange, hasSimulatedClock } from "./settings.ts";
import type { BoardStatus, Definition } from "./types.ts";

/** The name of the board. */
export const DEMO = "demo";

const DEFINITION = { metric: "COUNT(1m, like, post_id)", slot: "2s" };

/** Returns whether this is the demo board, and not another one of its name. */
export function isDemo({ board, metric, slot }: Definition): boolean {
  return board === DEMO && metric === DEFINITION.metric && slot === DEFINITION.slot;
}

/** Returns whether this page may define the board, and count on it. */
export function canDemo(): boolean {
  return canChange && may("manage", DEMO) && may("write", DEMO);
}

const SEED = 20_260_101;
/** Milliseconds between two requests, and the mean number of likes in each. */
const PACE = 500;
const LIKES = 12;

const POSTS = [
  "sunrise", "street-food", "first-snow", "tiny-house", "night-train", "old-bridge", "blue-door", "rooftop",
  "lost-cat", "jazz-bar", "sea-glass", "wild-horses", "paper-kite", "red-canoe", "moonlight", "bakery",
  "lighthouse", "fox-cubs", "piano", "waterfall", "market-day", "long-road", "green-tea", "fireworks",
];

/** Returns a generator of numbers from 0 to 1: Mulberry32, by Tommy Ettinger. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns a function that makes the next likes. Posts become popular and are forgotten again. */
function likes(): () => string[] {
  const random = randomNumbers(SEED);
  const popularity = POSTS.map((_, index) => 2 / (index + 1) ** 0.7);
  return () => {
    for (let index = 0; index < popularity.length; index++) {
      popularity[index] = Math.max((popularity[index] ?? 0) * (0.965 + random() * 0.06), 0.04);
    }
    if (random() < 0.12) popularity[Math.floor(random() * POSTS.length)] = 3;
    const all = popularity.reduce((sum, one) => sum + one, 0);
    const number = Math.round(LIKES * (0.5 + random()));
    return Array.from({ length: number }, () => {
      let left = random() * all;
      return POSTS[popularity.findIndex((one) => (left -= one) < 0)] ?? "sunrise";
    });
  };
}

/** Whether this page posts events, and what went wrong. */
export const isPosting = signal(false);
const problem = signal<RolltopError | null>(null);
let timer = 0;

/** Defines the board, posts events while this page is open, and shows the board. */
async function start(): Promise<void> {
  problem.value = null;
  try {
    await call("PUT", boardPath(DEMO), DEFINITION);
  } catch (error) {
    if (error instanceof RolltopError) problem.value = error;
    return;
  }
  const next = likes();
  clearInterval(timer);
  timer = window.setInterval(async () => {
    // In the background timers are slowed down; the board then empties.
    if (document.hidden) return;
    try {
      await call("POST", boardPath(DEMO, "/increments"), { increments: next().map((subject) => ({ subject })) });
      problem.value = null;
    } catch (error) {
      if (!(error instanceof RolltopError)) return;
      problem.value = error;
      if (["unknown_board", "forbidden"].includes(error.code)) stop();
    }
  }, PACE);
  isPosting.value = true;
  go(["boards", DEMO]);
}

function stop(): void {
  clearInterval(timer);
  isPosting.value = false;
}
epoch.subscribe(stop);

/** Gives the focus to the heading: the button that had it goes away. */
function focusHeading(): void {
  document.querySelector<HTMLElement>("main h1")?.focus();
}

/** Stops, and removes the board with its data. */
async function remove(): Promise<void> {
  stop();
  try {
    await call("DELETE", boardPath(DEMO));
    problem.value = null;
  } catch (error) {
    if (error instanceof RolltopError && error.code !== "unknown_board") {
      problem.value = error;
      return;
    }
  }
  focusHeading();
  go([]);
}

/** Returns whether another page posts likes: something is counted in the newest slots. */
function isBusy(demo: BoardStatus): boolean {
  return demo.slots.some((slot) => slot.events > 0 && Date.parse(slot.to) > now.value - 4_000);
}

/** Offers the demo while nothing is counted anywhere. `demo` is the state of its board, null if it is not read yet. */
export function FirstMinute({ demo }: { demo: BoardStatus | null | undefined }) {
  if (isPosting.value) return null;
  const isDefined = demo !== undefined;
  return (
    <section class="first" aria-labelledby="first">
      <h2 id="first">{isDefined ? "The demo board is still there" : "Watch a live ranking"}</h2>
      <p>
        {isDefined
          ? <>This page sends no likes to <a href={href(["boards", DEMO])}>{DEMO}</a>{demo && isBusy(demo) ? "; another page sends them." : "."}</>
          : <>Nothing has been counted yet. The demo ranks made-up posts by their likes in the last minute, in slots of two seconds: likes come in
              at the right of its window, and leave at the left a minute later.</>}
      </p>
      {hasSimulatedClock && <p>This service runs on a simulated clock: windows roll only when you move it, under <a href={href(["operate"])}>Operate</a>.</p>}
      <p class="actions">
        <button type="button" class="main" onClick={() => void start()}>{isDefined ? "Send made-up likes" : "Start the demo"}</button>
        {isDefined && <button type="button" onClick={() => void remove()}>Remove the demo board</button>}
      </p>
      <Notice problem={problem.value} />
    </section>
  );
}

/** Says on every page that this page posts events. */
export function DemoBar() {
  if (!isPosting.value) return null;
  const isShown = route.value.path[1] === DEMO;
  return (
    <aside class="demo" aria-label="Demo">
      <p>
        This page posts about {(LIKES * 1_000) / PACE} made-up likes a second to the board{" "}
        {isShown ? <code>{DEMO}</code> : <a href={href(["boards", DEMO])}>{DEMO}</a>}, as long as it is open.
      </p>
      <p class="actions">
        <button type="button" onClick={() => { focusHeading(); stop(); }}>Stop</button>
        <button type="button" onClick={() => void remove()}>Remove the demo board</button>
      </p>
      <Notice problem={problem.value} />
    </aside>
  );
}
