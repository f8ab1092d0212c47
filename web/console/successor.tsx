// The second edition of a board: a successor beside its ranking, or the edition that a successor replaced.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { formatted } from "../widget/numbers.ts";
import { boardPath, call } from "./api.ts";
import { readPath, type Chosen } from "./chosen.ts";
import { now, time } from "./clock.ts";
import { may } from "./key.ts";
import { counted, Figure, Focused, Name, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import { Ranking } from "./ranking.tsx";
import { score } from "./score.ts";
import { canChange } from "./settings.ts";
import type { BoardStatus, EditionStatus, Line } from "./types.ts";

/** Milliseconds between two reads. */
const PACE = 2_000;

const REASONS: Record<string, string> = {
  filtered: "excluded by its filter",
  not_accepted: "not what it counts",
  too_late: "too late for it",
  out_of_range: "out of its range",
};

/** Says how many items an edition did not count, and why. */
function missed(counts: Record<string, number>): string {
  const parts = Object.entries(counts).map(([reason, items]) => `${formatted(items)} ${REASONS[reason] ?? reason}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

interface Props {
  board: BoardStatus;
  /** The ranking to show, in the main window; null for none. */
  chosen: Chosen | null;
  limit: number;
  onChanged: () => void;
}

/** The panel of the second edition, with its ranking. */
export function Successor({ board, chosen, limit, onChanged }: Props) {
  const role = board.next === undefined ? "previous" : "next";
  const { data, problem, refresh } = usePolled<EditionStatus>(boardPath(board.board, `/${role}`), PACE);
  const edition = data.value;
  const shown = edition?.ranked ? chosen : null;
  const page = usePolled<{ items: Line[] }>(shown && readPath(shown, `/rankings?of=${role}&limit=${limit}&attributes=name`), PACE);
  if (!edition) return <Notice problem={problem.value} />;
  const fill = edition.fill.state === "running" ? `running, ${counted(edition.fill.cells ?? 0, "cell")} so far` : edition.fill.state;
  const title = role === "next" ? "Successor" : "Previous edition";
  return (
    <section class="panel" aria-labelledby="edition">
      <h2 id="edition">{title}</h2>
      <p class="soft"><code>{edition.metric}</code>{edition.slot !== null && <> in slots of <code>{edition.slot}</code></>}</p>
      <dl class="figures">
        <Figure name="Both counted since">{time(edition.since)}</Figure>
        {role === "next" && <Figure name="Complete from">{edition.full_at === null ? "never, without a fill" : time(edition.full_at)}</Figure>}
        {role === "next" && <Figure name="Fill">{fill}</Figure>}
        {edition.until !== undefined && <Figure name="Kept until">{time(edition.until)}</Figure>}
        <Figure name={`Items that the ${role === "next" ? "successor" : "previous edition"} missed`}>{missed(edition.not_counted)}</Figure>
        <Figure name="Items that the board missed">{missed(edition.only_counted)}</Figure>
      </dl>
      <Differences edition={edition} role={role} />
      {shown && page.data.value && page.data.value.items.length > 0 && (
        <Ranking lines={page.data.value.items} board={edition} chosen={shown} label={`Ranking of the ${title.toLowerCase()}`} />
      )}
      {role === "next" && <Compared edition={edition} board={board} />}
      <Notice problem={problem.value ?? page.problem.value} />
      <Actions board={board.board} role={role} edition={edition} onDone={() => { refresh(); onChanged(); }} />
    </section>
  );
}

/** What will not be the same for readers of the board. */
function Differences({ edition, role }: { edition: EditionStatus; role: "next" | "previous" }) {
  if (edition.changes.length === 0) return null;
  const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return (
    <div>
      <p>{role === "next" ? "When it takes over, these change:" : "Going back changes these:"}</p>
      <ul>{edition.changes.map(({ key, board, edition: value }) => <li key={key}>{key}: {shown(board)} → {shown(value)}</li>)}</ul>
      <Stops edition={edition} />
    </div>
  );
}

/** The reads that no longer work when the edition is the board. */
function Stops({ edition }: { edition: EditionStatus }) {
  if (edition.stops.length === 0) return null;
  return (
    <>
      <p>What stops working:</p>
      <ul>{edition.stops.map((stops) => <li key={stops}>{stops}</li>)}</ul>
    </>
  );
}

/** The result of the latest comparison. */
function Compared({ edition, board }: { edition: EditionStatus; board: BoardStatus }) {
  const comparison = edition.comparison;
  if (comparison === undefined) return null;
  const tops = comparison.tops.map(({ lines, common }) => `${common} of the first ${lines}`).join(", ");
  return (
    <div>
      <p>
        {comparison.state === "running" && "Comparing: so far, "}
        {comparison.state === "failed" && `The comparison failed: ${comparison.error ?? "the reason is not known"}. Before that, `}
        {counted(comparison.in_both, "subject")} in both, {formatted(comparison.different)} with different scores, {formatted(comparison.only_board)}{" "}
        only on the board, {formatted(comparison.only_next)} only in the successor{tops && <>; in common: {tops}</>}.
      </p>
      {comparison.differences.length > 0 && (
        <ul>
          {comparison.differences.slice(0, 10).map(({ by, subject, score: before, next_score: after }) => (
            <li key={`${by}\n${subject}`}><Name of={subject} />{by !== undefined && <> in <Name of={by} /></>}: {before === null ? "none" : score(before, board)} → {after === null ? "none" : score(after, edition)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface ActionsProps {
  board: string;
  role: "next" | "previous";
  edition: EditionStatus;
  onDone: () => void;
}

/** What can be done with the edition. A second question comes before a change. */
function Actions({ board, role, edition, onDone }: ActionsProps) {
  const asked = useSignal<"promote" | "remove" | null>(null);
  const problem = useSignal<RolltopError | null>(null);
  const run = async (method: string, rest: string) => {
    try {
      await call(method, boardPath(board, `/${role}${rest}`));
      problem.value = null;
      asked.value = null;
      onDone();
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    }
  };
  const question = (text: ComponentChildren, label: string, isDanger: boolean, act: () => Promise<void>) => (
    <p class="actions">
      <span>{text}</span>
      <Focused key={label}>
        <button type="button" onClick={() => (asked.value = null)}>Cancel</button>
        <button type="button" class={isDanger ? "danger" : "main"} onClick={() => void act()}>{label}</button>
      </Focused>
    </p>
  );
  const canManage = canChange && may("manage", board);
  const isEarly = role === "next" && (edition.full_at === null || Date.parse(edition.full_at) > now.value);
  const until = edition.full_at === null ? "It never has all that the board has." : `Until ${time(edition.full_at)} its scores lack what the board has.`;
  const isRunning = edition.comparison?.state === "running";
  return (
    <>
      {asked.value === "promote" && question(
        role === "next" ? <>Let the successor take over? {isEarly && `${until} `}The present edition is kept for a day.</> : "Go back to this edition?",
        role !== "next" ? "Go back" : isEarly ? "Take over early" : "Take over",
        isEarly,
        () => run("POST", isEarly ? "/promote?early=true" : "/promote"),
      )}
      {asked.value === "remove" && question("Remove this edition with its data?", "Remove", true, () => run("DELETE", ""))}
      {asked.value === null && (
        <p class="actions">
          {role === "next" && <button type="button" disabled={isRunning} onClick={() => void run("POST", "/compare")}>Compare all subjects</button>}
          {canManage && <button type="button" disabled={edition.fill.state === "running"} onClick={() => (asked.value = "promote")}>{role === "next" ? "Promote …" : "Go back …"}</button>}
          {canManage && <button type="button" onClick={() => (asked.value = "remove")}>Remove …</button>}
        </p>
      )}
      <Notice problem={problem.value} />
    </>
  );
}
