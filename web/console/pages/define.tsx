// Defines a board: the parts of the metric in fields, its text as it grows, and what the definition would do.

import { useSignal } from "@preact/signals";
import type { TargetedMouseEvent } from "preact";
import { useEffect } from "preact/hooks";
import { RolltopError } from "../../../clients/typescript/src/error.ts";
import { boardPath, call } from "../api.ts";
import { lostSince } from "../clock.ts";
import { lacks, may, possibleName } from "../key.ts";
import { keyOf } from "../metric.ts";
import { Caret, counted, Empty, Field, Heading, Notice } from "../parts.tsx";
import { go, href, route } from "../route.ts";
import { API, canChange } from "../settings.ts";
import { inWords, theLast, windowOf } from "../span.ts";
import type { Preview } from "../types.ts";

/** A function of metrics: what it ranks by, and examples of an event type, a value and a subject. */
interface Operation {
  says: string;
  type: string;
  value: string | null;
  subject: string;
}

const OPERATIONS: Record<string, Operation> = {
  COUNT: { says: "the number of events", type: "like", value: null, subject: "post_id" },
  SUM: { says: "the sum of a field", type: "sale", value: "amount", subject: "seller_id" },
  AVG: { says: "the mean of a field", type: "rating", value: "stars", subject: "film_id" },
  MIN: { says: "the least value of a field", type: "run", value: "seconds", subject: "runner_id" },
  MAX: { says: "the greatest value of a field", type: "game", value: "points", subject: "player_id" },
  LAST: { says: "the newest value of a field", type: "quote", value: "price", subject: "item_id" },
  COUNT_DISTINCT: { says: "the number of different values", type: "login", value: "user_id", subject: "device_id" },
  APPROX_COUNT_DISTINCT: { says: "about the number of different values", type: "visit", value: "user_id", subject: "page_id" },
};

/** The usual slot of usual windows. Over all time there is none. */
const SLOTS: Record<string, string> = { "1m": "2s", "30m": "1m", "1h": "1m", "24h": "1h", "7d": "6h", "30d": "1d", all: "" };

/** Milliseconds without typing after which the definition is tried. */
const PAUSE = 300;

/** The labels of the keys of a definition. */
const LABELS: Record<string, string> = {
  metric: "Metric",
  slot: "Slot",
  windows: "Further windows",
  order: "First in the ranking",
  timezone: "Time zone of days",
  decimals: "Digits after the decimal point",
  max_keys: "Most keys with a ranking",
  season: "Totals begin again",
  movement: "Lines show the rank of",
  attributes: "Attributes of subjects are those of the board",
  others: "Other keys of the definition, as JSON",
};

/** Keys for which there is no box. */
const EXAMPLE = '{"ties": "first", "ranks": "ordinal"}';

/** The earlier times whose ranks lines can show. */
const MOVEMENTS: Record<string, string> = {
  "": "now only",
  "1h": "now and the beginning of the hour",
  "1d": "now and the beginning of the day",
  period: "now and the period before",
};

/** The usual lengths of the periods of a season, of which the service takes more. */
const PERIODS: Record<string, string> = {
  "": "never",
  "1d": "each day",
  "1w": "each week",
  "1mo": "each month",
  "1y": "each year",
  manual: "when somebody closes the period",
};

/** The attributes of boxes for names and texts of the language. */
const CODE = { class: "code", spellcheck: false, autocomplete: "off" } as const;

/** Returns the text of a metric from its parts. Distinct values come after the subject, other values before it. */
function composed(operation: string, parts: { window: string; type: string; value: string; subject: string; by: string }): string {
  const hasValue = OPERATIONS[operation]?.value !== null;
  const isDistinct = operation.endsWith("DISTINCT");
  const subject = parts.by.trim() === "" ? parts.subject : `${parts.subject.trim()} BY ${parts.by.trim()}`;
  const fields = !hasValue ? [subject] : isDistinct ? [subject, parts.value] : [parts.value, subject];
  return `${operation}(${[parts.window, parts.type, ...fields].map((part) => part.trim()).join(", ")})`;
}

/** Returns the object that is written as JSON, empty if nothing is; null if it is none. */
function objectOf(text: string): Record<string, unknown> | null {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

export function Define() {
  if (may("manage")) return <Form />;
  return (
    <>
      <div class="title"><Heading title="Define a board">Define a board</Heading></div>
      <Empty title="Boards cannot be defined here"><p>{lacks("manage")} <a href={href(["key"])}>Change the key</a>.</p></Empty>
    </>
  );
}

function Form() {
  const name = useSignal(route.value.query.get("name") ?? "");
  const operation = useSignal("COUNT");
  const parts = useSignal({ window: "24h", type: "like", value: "amount", subject: "post_id", by: "" });
  const own = useSignal<string | null>(null);
  const slot = useSignal("1h");
  const further = useSignal("");
  const order = useSignal("desc");
  const zone = useSignal("UTC");
  const decimals = useSignal("0");
  const maxKeys = useSignal("");
  const movement = useSignal("");
  const keeper = useSignal("");
  const others = useSignal("");
  const season = useSignal({ every: "", grace: "", archive: "" });
  const preview = useSignal<Preview | null>(null);
  const problem = useSignal<RolltopError | null>(null);
  const isDefining = useSignal(false);
  const isMore = useSignal(false);

  const metric = own.value ?? composed(operation.value, parts.value);
  const isOwn = own.value !== null && own.value !== composed(operation.value, parts.value);
  const hasKeys = keyOf(metric) !== null;
  const isAllTime = windowOf(metric) === "all";
  const { every, grace, archive } = season.value;
  const windows = further.value.split(",").map((one) => one.trim()).filter((one) => one !== "");
  const otherKeys = objectOf(others.value);
  const body = {
    metric,
    ...(slot.value.trim() === "" ? {} : { slot: slot.value.trim() }),
    ...(windows.length === 0 ? {} : { windows }),
    ...(order.value === "desc" ? {} : { order: order.value }),
    ...(zone.value.trim() === "" || zone.value === "UTC" ? {} : { timezone: zone.value.trim() }),
    ...(Number(decimals.value) === 0 ? {} : { decimals: Number(decimals.value) }),
    // A board with one ranking has no such limit.
    ...(hasKeys && maxKeys.value !== "" ? { max_keys: Number(maxKeys.value) } : {}),
    // Other windows forget by themselves.
    ...(isAllTime && every !== ""
      ? { season: { every, ...(grace.trim() === "" ? {} : { grace: grace.trim() }), ...(archive === "" ? {} : { archive: Number(archive) }) } }
      : {}),
    // A board with keys compares with no earlier time.
    ...(hasKeys || movement.value === "" ? {} : { movement: movement.value }),
    ...(keeper.value.trim() === "" ? {} : { attributes: keeper.value.trim() }),
    ...otherKeys,
  };
  const text = otherKeys === null ? null : JSON.stringify(body);
  // A name is needed for the path; the definition can be tried before there is one.
  const tried = name.value.trim() === "" ? possibleName() : name.value.trim();
  const isLost = lostSince.value !== null;
  // Again when the service is lost or reached: nothing else on this page asks it.
  useEffect(() => {
    if (problem.value?.code === "unreachable") problem.value = null;
    if (text === null) {
      preview.value = problem.value = null;
      return;
    }
    const ending = new AbortController();
    const timer = setTimeout(async () => {
      try {
        preview.value = await call<Preview>("PUT", boardPath(tried, "?dry_run=true"), JSON.parse(text), ending.signal);
        problem.value = null;
      } catch (error) {
        if (ending.signal.aborted || !(error instanceof RolltopError)) return;
        preview.value = null;
        problem.value = error;
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [text, tried, isLost]);

  const define = async () => {
    isDefining.value = true;
    try {
      await call("PUT", boardPath(name.value.trim()), body);
      go(["boards", name.value.trim()]);
    } catch (error) {
      if (error instanceof RolltopError) problem.value = error;
    } finally {
      isDefining.value = false;
    }
  };

  const goBack = (event: TargetedMouseEvent<HTMLElement>) => {
    // The button goes away.
    event.currentTarget.closest(".field")?.querySelector("input")?.focus();
    own.value = null;
  };
  const setSeason = (part: Partial<typeof season.value>) => (season.value = { ...season.value, ...part });
  const set = (part: Partial<typeof parts.value>) => (parts.value = { ...parts.value, ...part });
  const chosen = OPERATIONS[operation.value];
  // The key may be for other boards.
  const isNameWrong = ["invalid_board_name", "forbidden"].includes(problem.value?.code ?? "");
  const wrong = text === null ? "others" : isNameWrong ? "name" : (problem.value?.problem?.field ?? "");
  const isPlaced = isNameWrong || wrong in LABELS;
  /** Returns what is wrong with a box. The service names the box first, which its place says here. */
  const errorOf = (key: string) => (wrong === key ? problem.value?.message.replace(/^'\w+': /, "") : undefined);
  /** Returns what is wrong with a part of the metric, which the service could only place in the whole text. */
  const partError = (part: string) => (isOwn || /^[^\s,()]*$/.test(part.trim()) ? undefined : "No spaces, commas or parentheses here.");
  const canDefine = canChange && preview.value !== null && name.value.trim() !== "" && !preview.value.conflict && !isDefining.value;

  return (
    <>
      <div class="title">
        <Heading title="Define a board">Define a board</Heading>
        <p class="soft">Choose what to rank. Nothing is stored until you press “Define”. A definition cannot be changed in place, but a successor with another one can take over later.</p>
      </div>
      <form
        class="define"
        onSubmit={(event) => {
          event.preventDefault();
          if (canDefine) void define();
        }}
      >
        <fieldset>
          <legend class="hidden">The board</legend>
          <Field label="Name of the board" error={errorOf("name")}>
            {(attributes) => <input {...attributes} {...CODE} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} placeholder="such as top-songs" />}
          </Field>
        </fieldset>
        <fieldset disabled={isOwn}>
          <legend>What to rank by</legend>
          <Field label="Rank by">
            {(attributes) => (
              <select
                {...attributes}
                value={operation.value}
                onChange={(event) => {
                  operation.value = event.currentTarget.value;
                  const next = OPERATIONS[operation.value];
                  if (next) set({ type: next.type, subject: next.subject, value: next.value ?? parts.value.value });
                }}
              >
                {Object.entries(OPERATIONS).map(([key, { says }]) => <option key={key} value={key}>{says}</option>)}
              </select>
            )}
          </Field>
          <Field label="of events of the type" error={partError(parts.value.type)}>
            {(attributes) => <input {...attributes} {...CODE} value={parts.value.type} onInput={(event) => set({ type: event.currentTarget.value })} />}
          </Field>
          {chosen?.value !== null && (
            <Field label={operation.value.endsWith("DISTINCT") ? "different values of the field" : "value in the field"} error={partError(parts.value.value)}>
              {(attributes) => <input {...attributes} {...CODE} value={parts.value.value} onInput={(event) => set({ value: event.currentTarget.value })} />}
            </Field>
          )}
          <Field label="for each value of the field">
            {(attributes) => <input {...attributes} {...CODE} value={parts.value.subject} onInput={(event) => set({ subject: event.currentTarget.value })} />}
          </Field>
          <Field label="over">
            {(attributes) => (
              <select
                {...attributes}
                value={parts.value.window}
                onChange={(event) => {
                  set({ window: event.currentTarget.value });
                  slot.value = SLOTS[event.currentTarget.value] ?? "1h";
                }}
              >
                {Object.keys(SLOTS).map((span) => <option key={span} value={span}>{span === "all" ? "all time" : `the last ${theLast(span)}`}</option>)}
              </select>
            )}
          </Field>
          <Field label="with a ranking for each (optional)">
            {(attributes) => (
              <input {...attributes} {...CODE} placeholder="such as community" value={parts.value.by} onInput={(event) => set({ by: event.currentTarget.value })} />
            )}
          </Field>
        </fieldset>
        <fieldset>
          <legend>The same as a text</legend>
          <Field
            label="Metric, which you can also write yourself"
            error={errorOf("metric")}
            isWide
            below={<>
              {wrong === "metric" && problem.value?.problem?.column !== undefined && <Caret text={metric} column={problem.value.problem.column} />}
              {isOwn && <span class="soft small">You wrote the metric yourself. <button type="button" class="link" onClick={goBack}>Go back to the fields above</button></span>}
            </>}
          >
            {(attributes) => <input {...attributes} {...CODE} value={metric} onInput={(event) => (own.value = event.currentTarget.value)} />}
          </Field>
          <Field label={slot.value === "" ? "Slot: none over all time" : "Slot: the step in which it rolls"} error={errorOf("slot")}>
            {(attributes) => <input {...attributes} {...CODE} value={slot.value} onInput={(event) => (slot.value = event.currentTarget.value)} />}
          </Field>
        </fieldset>
        <details open={isMore.value || (wrong in LABELS && !["metric", "slot"].includes(wrong))} onToggle={(event) => (isMore.value = event.currentTarget.open)}>
          <summary>More: further windows, order, time zone, decimals{isAllTime && ", season"}{!hasKeys && ", movement"}, attributes, others</summary>
          <fieldset>
            <legend class="hidden">More</legend>
            <Field label={<>Further windows, each with its slot, such as <code>1h/1m, 7d/6h, all</code></>} error={errorOf("windows")} isWide>
              {(attributes) => <input {...attributes} {...CODE} value={further.value} onInput={(event) => (further.value = event.currentTarget.value)} />}
            </Field>
            <Field label={LABELS["order"]} error={errorOf("order")}>
              {(attributes) => (
                <select {...attributes} value={order.value} onChange={(event) => (order.value = event.currentTarget.value)}>
                  <option value="desc">the highest score</option>
                  <option value="asc">the lowest score</option>
                </select>
              )}
            </Field>
            <Field label={LABELS["timezone"]} error={errorOf("timezone")}>
              {(attributes) => <input {...attributes} {...CODE} value={zone.value} onInput={(event) => (zone.value = event.currentTarget.value)} placeholder="Europe/Berlin" />}
            </Field>
            <Field label={LABELS["decimals"]} error={errorOf("decimals")}>
              {(attributes) => <input {...attributes} type="number" min="0" max="9" value={decimals.value} onInput={(event) => (decimals.value = event.currentTarget.value)} />}
            </Field>
            {isAllTime && (
              <Field label={LABELS["season"]} error={errorOf("season")}>
                {(attributes) => (
                  <select {...attributes} value={every} onChange={(event) => setSeason({ every: event.currentTarget.value })}>
                    {Object.entries(PERIODS).map(([length, says]) => <option key={length} value={length}>{says}</option>)}
                  </select>
                )}
              </Field>
            )}
            {isAllTime && every !== "" && (
              <>
                <Field label="Time for late items after that">
                  {(attributes) => <input {...attributes} {...CODE} placeholder="1h" value={grace} onInput={(event) => setSeason({ grace: event.currentTarget.value })} />}
                </Field>
                <Field label="Ended periods that are kept">
                  {(attributes) => <input {...attributes} type="number" min="0" max="100" placeholder="12" value={archive} onInput={(event) => setSeason({ archive: event.currentTarget.value })} />}
                </Field>
              </>
            )}
            {!hasKeys && (
              <Field label={LABELS["movement"]} error={errorOf("movement")}>
                {(attributes) => (
                  <select {...attributes} value={movement.value} onChange={(event) => (movement.value = event.currentTarget.value)}>
                    {Object.entries(MOVEMENTS).map(([since, says]) => <option key={since} value={since}>{says}</option>)}
                  </select>
                )}
              </Field>
            )}
            <Field label={LABELS["attributes"]} error={errorOf("attributes")}>
              {(attributes) => <input {...attributes} {...CODE} placeholder="this one" value={keeper.value} onInput={(event) => (keeper.value = event.currentTarget.value)} />}
            </Field>
            <Field label={LABELS["others"]} error={text === null ? `An object is needed, such as ${EXAMPLE}.` : errorOf("others")} isWide>
              {(attributes) => (
                <input {...attributes} {...CODE} placeholder={EXAMPLE} value={others.value} onInput={(event) => (others.value = event.currentTarget.value)} />
              )}
            </Field>
            {hasKeys && (
              <Field label={LABELS["max_keys"]} error={errorOf("max_keys")}>
                {(attributes) => <input {...attributes} type="number" min="1" placeholder="1000000" value={maxKeys.value} onInput={(event) => (maxKeys.value = event.currentTarget.value)} />}
              </Field>
            )}
          </fieldset>
        </details>
        <div class="panel" role="status">
          {!isPlaced && <Notice problem={problem.value} />}
          {isPlaced && <p>Not ready yet: see “{isNameWrong ? "Name of the board" : LABELS[wrong]}”.</p>}
          {preview.value && <Outcome preview={preview.value} named={name.value.trim() !== ""} />}
          {!preview.value && !problem.value && !isPlaced && <p>…</p>}
        </div>
        <p class="actions">
          <button type="submit" class="main" disabled={!canDefine}>Define</button>
          {!canChange && <span class="soft">This console only reads. Define it with <code>PUT /v1/boards/{tried}</code>, or see <a href={API}>the API</a>.</span>}
          {canChange && preview.value && name.value.trim() === "" && <span class="soft">Give it a name first.</span>}
        </p>
      </form>
    </>
  );
}

/** Says what the definition would do. */
function Outcome({ preview, named }: { preview: Preview; named: boolean }) {
  const { metric, slot, slots_in_window: slots, bytes_per_subject: bytes, conflict, exists } = preview;
  const rolling = slots === 1 ? <>each {theLast(slot ?? "")} it begins again, empty.</> : <>each {theLast(slot ?? "")} the oldest slot leaves.</>;
  return (
    <>
      <p>
        <code>{metric}</code>{" "}
        {slot === null ? "counts over all time: nothing leaves it." : <>has {counted(slots, "slot")} of {inWords(slot)}: {rolling}</>}
      </p>
      <p class="soft">
        A subject takes about {counted(bytes.one_slot, "byte")} of memory{slots > 1 && <> with data in one slot, {counted(bytes.all_slots, "byte")} with data in all</>}
        {bytes.each_value !== null && <>, and {counted(bytes.each_value, "byte")} more for each further value</>}.
      </p>
      {preview.notes?.map((note) => <p class="notice" key={note}>{note}.</p>)}
      {named && conflict && (
        <p class="notice">A board with this name exists, and differs in: {conflict.keys.join(", ")}. Choose another name, or remove that board first, under <a href={href(["operate"])}>Operate</a>.</p>
      )}
      {named && exists && !conflict && <p>A board with this name and the same definition exists: defining it again changes nothing.</p>}
    </>
  );
}
