// What operators do: health, the simulated clock, and for each board rollover, audit and removal.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { RolltopError } from "../../../clients/typescript/src/error.ts";
import { formatted } from "../../widget/numbers.ts";
import { boardPath, call } from "../api.ts";
import { duration, noteTime, now, time } from "../clock.ts";
import { lacks, may } from "../key.ts";
import { counted, Empty, Figure, Focused, Heading, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { href } from "../route.ts";
import { anonymous, canChange, hasExplorer, hasSimulatedClock } from "../settings.ts";
import { Sources } from "../sources.tsx";
import type { Audit, Clock, Definition, List, Ready, Rollover } from "../types.ts";

/** Milliseconds between two reads of the health and the metrics. */
const PACE = 3_000;

/** Returns the values of the series of a metric in the Prometheus text format. */
function valuesOf(text: string, metric: string): number[] {
  return [...text.matchAll(new RegExp(`^${metric}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].map((match) => Number(match[1]));
}

/** Returns the sum of the series of a metric; null if there is none. */
function sumOf(text: string, metric: string): number | null {
  const values = valuesOf(text, metric);
  return values.length > 0 ? values.reduce((all, value) => all + value, 0) : null;
}

/** Returns the greatest of the series of a metric. */
function mostOf(text: string, metric: string): number | null {
  const values = valuesOf(text, metric);
  return values.length > 0 ? Math.max(...values) : null;
}

/** Writes a number of bytes. */
function bytes(number: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = number;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toPrecision(2)} ${units[unit]}`;
}

export function Operate() {
  const boards = usePolled<List<Definition>>("v1/boards", 5_000);
  const removed = useSignal<string | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const onRemoved = (name: string) => {
    removed.value = name;
    // The button that had the focus is removed with its board.
    heading.current?.focus();
    boards.refresh();
  };
  return (
    <>
      <div class="title">
        <Heading title="Operate">Operate</Heading>
        <p class="soft">Windows roll automatically. This page shows the state of the service{canChange && may("manage") && ". Its buttons do at once what otherwise happens automatically"}.</p>
      </div>
      <State />
      {hasSimulatedClock && <Clock />}
      <section aria-labelledby="each">
        <h2 id="each" ref={heading} tabIndex={-1}>Boards</h2>
        <div role="status">{removed.value !== null && <p>The board {removed.value} was removed.</p>}</div>
        <Notice problem={boards.problem.value} />
        {!canChange && <p class="soft">This console only reads. It changes boards if the setting <code>console</code> is <code>full</code>.</p>}
        {canChange && !may("manage") && <p class="soft">Boards can only be read here. {lacks("manage")}</p>}
        {boards.data.value?.items.length === 0 && <Empty title="No boards yet">{canChange && may("manage") && <p><a href={href(["define"])}>Define a board</a>.</p>}</Empty>}
        <ul class="operate" role="list">
          {boards.data.value?.items.map((board) => <Row key={board.board} board={board} onRemoved={onRemoved} />)}
        </ul>
      </section>
      <Sources />
    </>
  );
}

/** Whether the service is well, and what waits. */
function State() {
  const ready = usePolled<Ready>("readyz", PACE);
  const live = usePolled<Ready>("healthz", PACE * 10);
  const metrics = usePolled<string>(may("metrics") ? "metrics" : null, PACE);
  const health = ready.data.value ?? live.data.value;
  const text = typeof metrics.data.value === "string" ? metrics.data.value : "";
  const lag = mostOf(text, "rolltop_rollover_lag_seconds");
  const retiring = sumOf(text, "rolltop_retiring_slots");
  const waiting = mostOf(text, "rolltop_log_waiting_bytes");
  const unconfirmed = mostOf(text, "rolltop_log_unconfirmed_seconds");
  const free = mostOf(text, "rolltop_disk_available_bytes");
  const problem = ready.problem.value;
  // A link sends no key.
  const isLinked = ["metrics", "admin"].some((scope) => anonymous.scopes.includes(scope));
  return (
    <section class="panel" aria-label="State of the service">
      <dl class="figures">
        <Figure name="Service">{problem ? <b class="warm">{problem.status === 0 ? "not reached" : "not ready"}</b> : <b class="good">{ready.data.value ? "ready" : "…"}</b>}</Figure>
        {health && <Figure name="Version">{health.version}</Figure>}
        {health && <Figure name="Store">{health.store}</Figure>}
        <Figure name={hasSimulatedClock ? "Simulated clock" : "Clock of the store"}>{time(now.value, { precise: true })}</Figure>
        {lag !== null && <Figure name="Rollovers">{lag >= 10 ? <span class="warm">late by {duration(lag * 1_000)}</span> : "on time"}</Figure>}
        {retiring !== null && <Figure name="Slots retiring">{formatted(retiring)}</Figure>}
        {waiting !== null && <Figure name="Writes gathered for the log">{bytes(waiting)}</Figure>}
        {unconfirmed !== null && <Figure name="Oldest unconfirmed write">{unconfirmed > 0 ? duration(unconfirmed * 1_000) : "none"}</Figure>}
        {free !== null && <Figure name="Free on the disk">{bytes(free)}</Figure>}
        {text !== "" && <Figure name="Live streams open">{formatted(sumOf(text, "rolltop_live_listeners") ?? 0)}</Figure>}
      </dl>
      <Notice problem={problem} />
      {(ready.data.value?.warnings ?? []).map((warning) => <p class="notice" key={warning}>{warning}</p>)}
      {!may("metrics") && <p class="soft">Figures of the service are not shown. {lacks("metrics")}</p>}
      <p class="soft">
        {isLinked && <><a href="metrics">All metrics</a> · </>}{hasExplorer && <><a href="swagger-ui/">Explore the API</a> · </>}<a href="openapi.json">OpenAPI document</a>
      </p>
    </section>
  );
}

/** Moves the simulated clock. */
function Clock() {
  const target = useSignal("");
  const problem = useSignal<RolltopError | null>(null);
  useEffect(() => {
    void move(null);
  }, []);
  const move = async (to: number | null) => {
    try {
      const answer = to === null
        ? await call<Clock>("GET", "v1/clock")
        : await call<Clock>("PUT", "v1/clock", { now: new Date(to).toISOString() });
      noteTime(answer.now);
      problem.value = null;
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    }
  };
  const steps: [string, number][] = [["1 minute", 60_000], ["1 hour", 3_600_000], ["1 day", 86_400_000]];
  return (
    <section aria-labelledby="clock">
      <h2 id="clock">Clock</h2>
      <p>The clock stands at <b>{new Date(now.value).toISOString().replace(".000", "")}</b>. It moves forward only, and boards roll over when it does.</p>
      {canChange && !may("admin") && <p class="soft">It cannot be moved here. {lacks("admin")}</p>}
      {canChange && may("admin") && (
        <form
          class="line"
          onSubmit={(event) => {
            event.preventDefault();
            const to = Date.parse(target.value);
            if (Number.isNaN(to)) problem.value = new RolltopError(0, "time", "A time is written as 2026-01-31T12:00:00Z.");
            else void move(to);
          }}
        >
          {steps.map(([name, step]) => <button type="button" key={name} onClick={() => void move(now.value + step)}>+ {name}</button>)}
          <input class="code" aria-label="New time" placeholder="2026-01-31T12:00:00Z" value={target.value} onInput={(event) => (target.value = event.currentTarget.value)} />
          <button type="submit">Move</button>
        </form>
      )}
      <Notice problem={problem.value} />
    </section>
  );
}

/** What is asked about a board, or what came of it. */
type Step =
  | { kind: "rollover"; preview: Rollover }
  | { kind: "audit"; audit: Audit }
  | { kind: "remove" }
  | { kind: "said"; text: string };

/** One board with what can be done with it. */
function Row({ board, onRemoved }: { board: Definition; onRemoved: (name: string) => void }) {
  const name = board.board;
  const step = useSignal<Step | null>(null);
  const typed = useSignal("");
  /** The button that was pressed, which gets the focus back. */
  const opener = useRef<HTMLButtonElement | null>(null);
  const isBusy = useSignal(false);
  const problem = useSignal<RolltopError | null>(null);
  const attempt = async (work: () => Promise<Step | null>) => {
    // Its buttons are not disabled meanwhile: that would take the focus from them.
    if (isBusy.value) return;
    isBusy.value = true;
    try {
      step.value = await work();
      problem.value = null;
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    } finally {
      isBusy.value = false;
    }
  };
  const rollOver = (isTrial: boolean) => attempt(async () => {
    const report = await call<Rollover>("POST", boardPath(name, isTrial ? "/rollover?dry_run=true" : "/rollover"));
    return isTrial ? { kind: "rollover", preview: report } : { kind: "said", text: `Rolled over: ${what(report)}.` };
  });
  const audit = (repair: boolean) => attempt(async () => ({ kind: "audit", audit: await call<Audit>("POST", boardPath(name, repair ? "/audit?repair=true" : "/audit")) }));
  const remove = () => attempt(async () => {
    await call("DELETE", boardPath(name));
    onRemoved(name);
    return null;
  });
  const close = () => {
    step.value = null;
    opener.current?.focus();
  };
  const cancel = <button type="button" onClick={close}>Cancel</button>;
  const now = step.value;
  return (
    <li>
      <div class="bar">
        <a class="boards-name" href={href(["boards", name])}>{name}</a>
        <code class="soft">{board.metric}</code>
        <span class="spring" />
        {canChange && may("manage", name) && (
          <span class="actions">
            <button type="button" onClick={(event) => { opener.current = event.currentTarget; void rollOver(true); }} aria-label={`Roll over ${name}`}>Roll over …</button>
            <button type="button" onClick={(event) => { opener.current = event.currentTarget; void audit(false); }} aria-label={`Audit ${name}`}>Audit</button>
            <button type="button" onClick={(event) => { opener.current = event.currentTarget; typed.value = ""; step.value = { kind: "remove" }; }} aria-label={`Remove ${name}`}>Remove …</button>
          </span>
        )}
      </div>
      <div role="status">
        {now?.kind === "said" && <p>{now.text}</p>}
        {now?.kind === "rollover" && (now.preview.slots_advanced + now.preview.slots_retired + now.preview.subjects_touched === 0
          ? <p>Nothing to do: this board is up to date. {now.preview.head !== null && <>Its newest slot is that of {time(now.preview.head)}.</>}</p>
          : <p class="actions"><span>This would do: {what(now.preview)}.</span> <button type="button" class="main" onClick={() => { opener.current?.focus(); void rollOver(false); }}>Roll over now</button> {cancel}</p>)}
        {now?.kind === "audit" && (
          <p class="actions">
            <span>
              {counted(now.audit.subjects_checked, "score")} compared with {now.audit.subjects_checked === 1 ? "its" : "their"} slots in {formatted(now.audit.took_ms)} ms:{" "}
              {now.audit.differences === 0 ? <b class="good">all agree</b> : <b class="warm">{counted(now.audit.differences, "difference")}</b>}
              {now.audit.repaired > 0 && `, ${formatted(now.audit.repaired)} repaired`}
              {now.audit.missing_slots > 0 && <b class="warm">, {counted(now.audit.missing_slots, "slot")} missing</b>}.
            </span>
            {now.audit.differences > now.audit.repaired && <button type="button" class="main" onClick={() => { opener.current?.focus(); void audit(true); }}>Repair</button>}
          </p>
        )}
        {now?.kind === "remove" && (
          <form class="line" onSubmit={(event) => { event.preventDefault(); if (typed.value === name) void remove(); }}>
            <Focused>
              <label>Removes the board with all its data. Type its name to confirm: <input class="code" value={typed.value} onInput={(event) => (typed.value = event.currentTarget.value)} autocomplete="off" spellcheck={false} /></label>
              <button type="submit" class="danger" disabled={typed.value !== name}>Remove {name}</button> {cancel}
            </Focused>
          </form>
        )}
        <Notice problem={problem.value} />
      </div>
    </li>
  );
}

/** Says what a rollover does. */
function what({ slots_advanced: advanced, slots_retired: retired, subjects_touched: touched }: Rollover): string {
  return `${counted(advanced, "new slot")}, ${counted(retired, "slot")} retired, ${counted(touched, "score")} lowered`;
}
