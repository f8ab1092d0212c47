// How the scores of a ranking are distributed: a bar for each range of scores.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { formatted } from "../widget/numbers.ts";
import { boundsOf } from "./bounds.ts";
import { readPath, type Chosen } from "./chosen.ts";
import { counted, Figure, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import { score, type Scale } from "./score.ts";
import type { Distribution as Answer, ScoreRange } from "./types.ts";

/** Milliseconds between two reads. */
const EVERY = 10_000;
/** Those of the worst score, of what half, most and nearly all subjects do not exceed, and of the best score. */
const PERCENTILES = [0, 50, 90, 99, 100];

type Board = { order: "asc" | "desc" } & Scale;

interface Props {
  board: Board;
  chosen: Chosen;
}

/** The distribution of a ranking, which is read while it is open. */
export function Distribution({ board, chosen }: Props) {
  const isOpen = useSignal(false);
  return (
    <details class="spread" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>How the scores are distributed</summary>
      {isOpen.value && <Ranges key={readPath(chosen, "")} board={board} chosen={chosen} />}
    </details>
  );
}

function Ranges({ board, chosen }: Props) {
  const decimals = digitsOf(board);
  const path = readPath(chosen, `/distribution?percentiles=${PERCENTILES.join(",")}`);
  const scores = usePolled<Answer>(path, EVERY);
  const [worst, median, , , best] = scores.data.value?.percentiles.map(({ score }) => score) ?? [];
  const isEmpty = worst === null || worst === undefined;
  const [low, high] = [Number(worst), Number(best)].sort((a, b) => a - b) as [number, number];
  const bounds = isEmpty ? [] : boundsOf(low, Number(median), high, decimals);
  const ranges = usePolled<Answer>(bounds.length > 0 ? `${path}&scores=${bounds.join(",")}` : null, EVERY);
  // While other bounds are read for the first time, the chart of those before stays.
  const last = useRef<ScoreRange[]>([]);
  last.current = bounds.length > 0 ? ranges.data.value?.ranges ?? last.current : [];
  const answer = scores.data.value;
  if (!answer) return <Notice problem={scores.problem.value} />;
  return (
    <>
      <Notice problem={scores.problem.value ?? ranges.problem.value} />
      {isEmpty && <p class="soft">No subject is ranked.</p>}
      {!isEmpty && bounds.length === 0 && (
        <p>{answer.total === 1 ? "The only subject has" : `All ${counted(answer.total ?? 0, "subject")} have`} a score of {score(worst, board)}.</p>
      )}
      {last.current.length > 0 && (
        <>
          <Figures answer={answer} board={board} />
          <Chart ranges={last.current} board={board} decimals={decimals} />
        </>
      )}
    </>
  );
}

/** Says what a good score is. */
function Figures({ answer, board }: { answer: Answer; board: Board }) {
  const [, half, most, nearlyAll] = answer.percentiles.map(({ score }) => score);
  const total = answer.total ?? 0;
  const orWorse = board.order === "asc" ? "or more" : "or less";
  return (
    <dl class="figures">
      <Figure name="Half of the subjects have"><b>{score(half ?? null, board)}</b> {orWorse}</Figure>
      {total >= 10 && <Figure name="90 % have"><b>{score(most ?? null, board)}</b> {orWorse}</Figure>}
      {total >= 100 && <Figure name="99 % have"><b>{score(nearlyAll ?? null, board)}</b> {orWorse}</Figure>}
    </dl>
  );
}

function Chart({ ranges, board, decimals }: { ranges: ScoreRange[]; board: Board; decimals: number }) {
  const most = Math.max(...ranges.map(({ subjects }) => subjects), 1);
  return (
    <table>
      <caption class="hidden">Number of subjects by score</caption>
      <thead>
        <tr><th scope="col">Score</th><th scope="col">Subjects</th></tr>
      </thead>
      <tbody>
        {ranges.map((range) => (
          <tr key={`${range.from} ${range.to}`}>
            <th scope="row">{nameOf(range, board, decimals)}</th>
            <td><span class="spread-bar" style={{ "--share": range.subjects / most }} />{formatted(range.subjects)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Returns the digits after the point with which scores are written. */
function digitsOf({ metric, decimals }: Scale): number {
  return metric.startsWith("AVG(") ? Math.max(decimals, 2) : decimals;
}

/** Returns the name of a range. Where scores are multiples of a unit, it names the last score that belongs to the range. */
function nameOf({ from, to }: ScoreRange, board: Board, decimals: number): string {
  if (from === null) return `below ${score(to, board)}`;
  if (to === null) return `${score(from, board)} and more`;
  if (board.metric.startsWith("AVG(") || typeof from !== "number" || typeof to !== "number") {
    return `${score(from, board)} to below ${score(to, board)}`;
  }
  const last = Number((to - 10 ** -decimals).toFixed(decimals));
  return last > from ? `${score(from, board)} – ${score(last, board)}` : score(from, board);
}
