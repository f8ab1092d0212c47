// The lines of a ranking, with bars. Lines that change places move there, and what a score loses is shown for a moment.

import { useLayoutEffect, useRef } from "preact/hooks";
import { formatted } from "../widget/numbers.ts";
import { nameOf } from "./attributes.tsx";
import { subjectPage, type Chosen } from "./chosen.ts";
import { time } from "./clock.ts";
import { Name } from "./parts.tsx";
import { href } from "./route.ts";
import { score, type Scale } from "./score.ts";
import type { Line } from "./types.ts";

interface Props {
  lines: Line[];
  board: { order: "asc" | "desc" } & Scale;
  chosen: Chosen;
  /** The subject to mark. */
  marked?: string;
  label: string;
}

/** How long a line takes to its new place, in milliseconds. */
const MOVE = 450;

/** What a score lost last, with a number that tells one loss from the next. */
interface Loss {
  amount: number;
  number: number;
}

/** Returns what each score lost when these lines came. */
function useLosses(lines: Line[]): Map<string, Loss> {
  const state = useRef({ lines, scores: new Map<string, number>(), losses: new Map<string, Loss>(), number: 0 });
  const known = state.current;
  if (known.lines !== lines || known.scores.size === 0) {
    known.lines = lines;
    known.number += 1;
    const losses = new Map<string, Loss>();
    const scores = new Map<string, number>();
    for (const { subject, score } of lines) {
      // In the final periods that have such lines no score changes.
      if (subject === null) continue;
      const value = Number(score);
      const before = known.scores.get(subject);
      if (before !== undefined && value < before) losses.set(subject, { amount: before - value, number: known.number });
      scores.set(subject, value);
    }
    known.scores = scores;
    // Lines that change for another reason do not end what is being shown.
    if (losses.size > 0) known.losses = losses;
  }
  return known.losses;
}

/** Returns what tells a line from the others: its subject, or if that was removed, its place, behind what no subject has. */
export function lineKey({ subject }: Line, at: number): string {
  return subject ?? `\0${at}`;
}

/** Draws the lines. */
export function Ranking({ lines, board, chosen, marked, label }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const places = useRef(new Map<string, number>());
  const losses = useLosses(lines);
  useLayoutEffect(() => {
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = places.current;
    const after = new Map<string, number>();
    for (const item of list.current?.children ?? []) {
      if (!(item instanceof HTMLElement)) continue;
      const key = item.dataset["subject"] ?? "";
      const y = item.offsetTop;
      after.set(key, y);
      const from = before.get(key);
      if (isStill || before.size === 0) continue;
      if (from === undefined) item.animate([{ opacity: 0 }, { opacity: 1 }], { duration: MOVE, easing: "ease-out" });
      else if (from !== y) {
        item.animate([{ transform: `translateY(${from - y}px)` }, { transform: "none" }], { duration: MOVE, easing: "cubic-bezier(.2,.7,.2,1)" });
      }
    }
    places.current = after;
  }, [lines]);
  // Where the lowest is the best, the longest bar would be that of the worst.
  const top = board.order === "asc" ? 0 : Math.max(...lines.map((line) => Number(line.score)), 0);
  // As wide as the longest score, so that tiers and moves stand below each other.
  const digits = Math.max(...lines.map((line) => score(line.score, board).length), 1);
  return (
    <ol class="ranking" role="list" ref={list} aria-label={label} style={`--digits: ${digits}`}>
      {lines.map((line, at) => {
        const key = lineKey(line, at);
        const share = top > 0 ? Math.max(Number(line.score) / top, 0) : 0;
        const loss = losses.get(key);
        const isMarked = line.subject === marked;
        const name = nameOf(line.attributes);
        return (
          <li key={key} data-subject={key} class={isMarked ? "is-marked" : ""} aria-current={isMarked ? "true" : undefined}>
            <span class="ranking-bar" style={{ transform: `scaleX(${share})` }} />
            <span class="ranking-rank"><span class="hidden">Rank </span>{formatted(line.rank)}</span>
            {line.subject === null
              ? <span class="ranking-subject is-removed">removed</span>
              : <a class="ranking-subject" href={href(...subjectPage(chosen, line.subject))}><Name of={line.subject} />{name !== null && <> <span class="ranking-name"><Name of={name} /></span></>}</a>}
            {line.tier !== undefined && <span class="ranking-tier"><span class="hidden">tier </span><Name of={line.tier} /></span>}
            {line.from !== undefined && <Moved by={Number(line.from ?? line.rank) - Number(line.rank)} />}
            <span class="ranking-score">
              {loss && <span class="ranking-loss" key={loss.number} aria-hidden="true">−{score(loss.amount, board)}</span>}
              <span class="hidden">score </span>{score(line.score, board)}
              {line.tie !== undefined && <span class="small"><span class="hidden">, tie </span> · {typeof line.tie === "string" ? time(line.tie, { precise: true }) : formatted(line.tie)}</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** How many ranks a line has moved since the earlier time that its board compares with: up, or down if it is below 0. */
function Moved({ by }: { by: number }) {
  if (by === 0) return <span class="ranking-move" />;
  return (
    <span class="ranking-move">
      <span aria-hidden="true">{by > 0 ? "▲" : "▼"}{formatted(Math.abs(by))}</span>
      <span class="hidden">{by > 0 ? "up" : "down"} {formatted(Math.abs(by))} </span>
    </span>
  );
}
