// The sources of the service: how far each log is counted, and which boards hold it up.

import { useRef } from "preact/hooks";
import { duration, now } from "./clock.ts";
import { counted, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import type { List, Source, SourceState } from "./types.ts";

/** Milliseconds between two reads of a source. */
const PACE = 3_000;
/** Of more sources than these, the others are only named. */
const READ = 12;

/** The sources. Nothing if there are none. */
export function Sources() {
  const sources = usePolled<List<Source>>("v1/sources", 10_000);
  const items = sources.data.value?.items ?? [];
  if (items.length === 0 && sources.problem.value === null) return null;
  return (
    <section aria-labelledby="sources">
      <h2 id="sources">Sources</h2>
      <p class="soft">Logs whose events count once by their positions. A source goes on when all of its boards do.</p>
      <Notice problem={sources.problem.value} />
      <ul class="operate" role="list">
        {items.slice(0, READ).map(({ source }) => <Row key={source} name={source} />)}
      </ul>
      {items.length > READ && <p class="soft">And {counted(items.length - READ, "source")} more: {items.slice(READ).map(({ source }) => source).join(", ")}.</p>}
    </section>
  );
}

/** What this instance was sent of a source. */
function Sent({ of: { per_second, newest, rejected, repeated } }: { of: NonNullable<SourceState["sent"]> }) {
  const age = newest === null ? null : now.value - Date.parse(newest);
  const codes = Object.entries(rejected);
  return (
    <>
      ; {per_second} a second
      {age !== null && <>, the newest from {duration(Math.max(age, 0))} ago</>}
      {repeated > 0 && <>, {counted(repeated, "item")} sent again</>}
      {codes.length > 0 && <>; <b class="warm">rejected: {codes.map(([code, number]) => counted(number, code, code)).join(", ")}</b></>}
    </>
  );
}

/** One source. */
function Row({ name }: { name: string }) {
  const state = usePolled<SourceState>(`v1/sources/${encodeURIComponent(name)}`, PACE);
  /** What was reached last, and when this page has seen that first. */
  const moved = useRef({ reached: "", at: 0 });
  const source = state.data.value;
  if (source && moved.current.reached !== String(source.reached)) {
    moved.current = { reached: String(source.reached), at: Date.now() };
  }
  const joined = source?.joined ?? [];
  const unread = joined.filter(({ reached }) => reached === null);
  // The place of a source is that of the board which is least far: where others are further, it holds them up.
  const isUneven = joined.some(({ reached }) => reached !== null && reached !== source?.reached);
  const holding = isUneven ? joined.filter(({ reached }) => reached === source?.reached) : [];
  const filling = joined.filter(({ fill }) => fill !== undefined && fill.reached !== fill.until);
  const named = (boards: { board: string }[]) => boards.map(({ board }) => board).join(", ");
  // The clock of the page makes this appear again each second.
  const standing = now.value > 0 ? Date.now() - moved.current.at : 0;
  return (
    <li>
      <div class="bar">
        <b class="boards-name">{name}</b>
        <code class="soft">{source?.boards.join(", ") ?? "…"}</code>
        <span class="spring" />
        {source && (source.reached === null ? <span>nothing is counted yet</span> : <span>reached <code>{source.reached}</code> for {duration(standing)}</span>)}
      </div>
      {source && (
        <p class="soft">
          {counted(joined.length, "board")}
          {holding.length > 0 && <>; <b class="warm">held up by {named(holding)}</b></>}
          {unread.length > 0 && <>; <b class="warm">left out: {named(unread)}</b></>}
          {filling.length > 0 && <>; being filled from the past: {named(filling)}</>}
          {source.sent && <Sent of={source.sent} />}
        </p>
      )}
      <Notice problem={state.problem.value} />
    </li>
  );
}
