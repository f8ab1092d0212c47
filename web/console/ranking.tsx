// The lines of a ranking, with bars. Lines that change places move there.

import { useLayoutEffect, useRef } from "preact/hooks";
import { formatted } from "../ranking/json.ts";
import type { Line } from "../ranking/lines.ts";
import { href } from "./route.ts";

interface Props {
  lines: Line[];
  board: string;
  window: string | null;
  /** The subject to mark. */
  marked?: string;
  label: string;
}

/** How long a line takes to its new place, in milliseconds. */
const MOVE = 450;

/** Draws the lines. */
export function Ranking({ lines, board, window, marked, label }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const places = useRef(new Map<string, number>());
  useLayoutEffect(() => {
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = places.current;
    const after = new Map<string, number>();
    for (const item of list.current?.children ?? []) {
      if (!(item instanceof HTMLElement)) continue;
      const subject = item.dataset["subject"] ?? "";
      const y = item.offsetTop;
      after.set(subject, y);
      const from = before.get(subject);
      if (isStill || before.size === 0) continue;
      if (from === undefined) item.animate([{ opacity: 0 }, { opacity: 1 }], { duration: MOVE, easing: "ease-out" });
      else if (from !== y) {
        item.animate([{ transform: `translateY(${from - y}px)` }, { transform: "none" }], { duration: MOVE, easing: "cubic-bezier(.2,.7,.2,1)" });
      }
    }
    places.current = after;
  }, [lines]);
  const top = Math.max(...lines.map((line) => Number(line.score)), 0);
  return (
    <ol class="ranking" ref={list} aria-label={label}>
      {lines.map((line) => {
        const share = top > 0 ? Math.max(Number(line.score) / top, 0) : 0;
        return (
          <li key={line.subject} data-subject={line.subject} class={line.subject === marked ? "is-marked" : ""}>
            <span class="ranking-bar" style={{ transform: `scaleX(${share})` }} />
            <span class="ranking-rank">{formatted(line.rank)}</span>
            <a class="ranking-subject" href={href(["boards", board, "subjects", line.subject], { window })}>
              <bdi>{line.subject}</bdi>
            </a>
            <span class="ranking-score">{formatted(line.score)}</span>
          </li>
        );
      })}
    </ol>
  );
}
