// Defines a board: the parts of the metric in fields, its text as it grows, and what the definition would do.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { boardPath, call, Problem } from "../api.ts";
import { counted, Heading, Notice } from "../parts.tsx";
import { go, href, route } from "../route.ts";
import { canChange } from "../settings.ts";
import { inWords, theLast } from "../timeline.ts";
import type { Preview } from "../types.ts";

/** The functions of metrics: what they rank by, and the name of the field beside the subject. */
const FUNCTIONS: Record<string, { says: string; value: string | null; subject: string }> = {
  COUNT: { says: "the number of events", value: null, subject: "post_id" },
  SUM: { says: "the sum of a field", value: "amount", subject: "seller_id" },
  AVG: { says: "the mean of a field", value: "stars", subject: "film_id" },
  MIN: { says: "the least value of a field", value: "seconds", subject: "runner_id" },
  MAX: { says: "the greatest value of a field", value: "points", subject: "player_id" },
  LAST: { says: "the newest value of a field", value: "price", subject: "item_id" },
  COUNT_DISTINCT: { says: "the number of different values of a field", value: "user_id", subject: "device_id" },
  APPROX_COUNT_DISTINCT: { says: "about the number of different values", value: "user_id", subject: "page_id" },
};

/** Milliseconds without typing after which the definition is tried. */
const PAUSE = 300;

/** Returns the largest usual slot that divides a window into at least a dozen. */
function usualSlot(window: string): string {
  const usual: Record<string, string> = { "1m": "2s", "30m": "1m", "1h": "1m", "24h": "1h", "7d": "6h", "30d": "1d" };
  return usual[window] ?? "1h";
}

export function Define() {
  const name = useSignal(route.value.query.get("name") ?? "");
  const operation = useSignal("COUNT");
  const window = useSignal("24h");
  const type = useSignal("like");
  const value = useSignal("amount");
  const subject = useSignal("post_id");
  const metric = useSignal("COUNT(24h, like, post_id)");
  const slot = useSignal("1h");
  const further = useSignal("");
  const order = useSignal("desc");
  const zone = useSignal("UTC");
  const decimals = useSignal("0");
  const isMore = useSignal(false);
  const preview = useSignal<Preview | null>(null);
  const problem = useSignal<Problem | null>(null);
  const isDefining = useSignal(false);
  const metricBox = useRef<HTMLInputElement>(null);

  /** Writes the metric from its parts. COUNT_DISTINCT names the subject first, the others the value. */
  const compose = () => {
    const { value: hasValue } = FUNCTIONS[operation.value] ?? { value: null };
    const isDistinct = operation.value.endsWith("DISTINCT");
    const parts = [window.value, type.value, ...(hasValue === null ? [subject.value] : isDistinct ? [subject.value, value.value] : [value.value, subject.value])];
    metric.value = `${operation.value}(${parts.map((part) => part.trim()).join(", ")})`;
  };
  const body = () => {
    const windows = further.value.split(",").map((one) => one.trim()).filter((one) => one !== "");
    return {
      metric: metric.value,
      ...(slot.value.trim() === "" ? {} : { slot: slot.value.trim() }),
      ...(windows.length === 0 ? {} : { windows }),
      ...(order.value === "desc" ? {} : { order: order.value }),
      ...(zone.value.trim() === "" || zone.value === "UTC" ? {} : { timezone: zone.value.trim() }),
      ...(Number(decimals.value) === 0 ? {} : { decimals: Number(decimals.value) }),
    };
  };
  const text = JSON.stringify(body());
  // A name is needed for the path; the definition can be tried before there is one.
  const tried = name.value.trim() === "" ? "new-board" : name.value.trim();
  useEffect(() => {
    const ending = new AbortController();
    const timer = setTimeout(async () => {
      try {
        preview.value = await call<Preview>("PUT", boardPath(tried, "?dry_run=true"), JSON.parse(text), ending.signal);
        problem.value = null;
      } catch (error) {
        if (ending.signal.aborted || !(error instanceof Problem)) return;
        preview.value = null;
        problem.value = error;
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [text, tried]);

  const define = async () => {
    isDefining.value = true;
    try {
      await call("PUT", boardPath(name.value.trim()), body());
      go(["boards", name.value.trim()]);
    } catch (error) {
      if (error instanceof Problem) problem.value = error;
    } finally {
      isDefining.value = false;
    }
  };

  const chosen = FUNCTIONS[operation.value] ?? { says: "", value: null, subject: "" };
  const field = problem.value?.field;
  const isNameWrong = problem.value?.code === "invalid_board_name";
  const isPlaced = isNameWrong || ["metric", "slot", "windows", "timezone", "decimals", "order"].includes(field ?? "");
  /** The error of a field, below it. */
  const errorOf = (names: string[]) => names.includes(field ?? "") || (names.includes("name") && isNameWrong)
    ? <span class="error" id={`${names[0]}-error`}>{problem.value?.message}</span>
    : null;
  const described = (names: string[]) => (errorOf(names) ? { "aria-invalid": true, "aria-describedby": `${names[0]}-error` } : {});
  const canDefine = canChange && preview.value !== null && name.value.trim() !== "" && !preview.value.conflict && !isDefining.value;

  return (
    <>
      <div class="title">
        <Heading title="Define a board">Define a board</Heading>
        <p class="soft">Say what to count. Nothing is stored before you press “Define”. A definition cannot be changed later; a board can be removed and defined again.</p>
      </div>
      <form
        class="define"
        onSubmit={(event) => {
          event.preventDefault();
          if (canDefine) void define();
        }}
      >
        <fieldset>
          <legend>What to rank by</legend>
          <label>
            <span>Rank by</span>
            <select
              value={operation.value}
              onChange={(event) => {
                operation.value = event.currentTarget.value;
                const next = FUNCTIONS[operation.value];
                if (next?.value) value.value = next.value;
                if (next) subject.value = next.subject;
                compose();
              }}
            >
              {Object.entries(FUNCTIONS).map(([key, { says }]) => <option key={key} value={key}>{says}</option>)}
            </select>
          </label>
          <label>
            <span>of events of the type</span>
            <input value={type.value} onInput={(event) => { type.value = event.currentTarget.value; compose(); }} spellcheck={false} autocomplete="off" />
          </label>
          {chosen.value !== null && (
            <label>
              <span>{operation.value.endsWith("DISTINCT") ? "different values of the field" : "value in the field"}</span>
              <input value={value.value} onInput={(event) => { value.value = event.currentTarget.value; compose(); }} spellcheck={false} autocomplete="off" />
            </label>
          )}
          <label>
            <span>for each subject in the field</span>
            <input value={subject.value} onInput={(event) => { subject.value = event.currentTarget.value; compose(); }} spellcheck={false} autocomplete="off" />
          </label>
          <label>
            <span>over the last</span>
            <select
              value={["1m", "30m", "1h", "24h", "7d", "30d"].includes(window.value) ? window.value : ""}
              onChange={(event) => {
                window.value = event.currentTarget.value;
                slot.value = usualSlot(window.value);
                compose();
              }}
            >
              {["1m", "30m", "1h", "24h", "7d", "30d"].map((span) => <option key={span} value={span}>{inWords(span)}</option>)}
            </select>
          </label>
        </fieldset>
        <fieldset>
          <legend>The definition</legend>
          <label class="wide">
            <span>Metric: the same as a text, which you can change</span>
            <input
              ref={metricBox}
              class="code"
              value={metric.value}
              onInput={(event) => (metric.value = event.currentTarget.value)}
              spellcheck={false}
              autocomplete="off"
              {...described(["metric"])}
            />
            {field === "metric" && problem.value?.column !== undefined && <Caret text={metric.value} column={problem.value.column} />}
            {errorOf(["metric"])}
          </label>
          <label>
            <span>Slot: the step by which it rolls</span>
            <input class="code" value={slot.value} onInput={(event) => (slot.value = event.currentTarget.value)} spellcheck={false} autocomplete="off" {...described(["slot"])} />
            {errorOf(["slot"])}
          </label>
          <label>
            <span>Name of the board</span>
            <input class="code" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} placeholder="hot-posts" spellcheck={false} autocomplete="off" {...described(["name"])} />
            {errorOf(["name"])}
          </label>
        </fieldset>
        <details
          open={isMore.value || ["windows", "timezone", "decimals", "order"].includes(field ?? "")}
          onToggle={(event) => (isMore.value = event.currentTarget.open)}
        >
          <summary>More: further windows, order, time zone, decimals</summary>
          <fieldset>
            <label class="wide">
              <span>Further windows, each with its slot, such as <code>1h/1m, 7d/6h, all</code></span>
              <input class="code" value={further.value} onInput={(event) => (further.value = event.currentTarget.value)} spellcheck={false} autocomplete="off" {...described(["windows"])} />
              {errorOf(["windows"])}
            </label>
            <label>
              <span>First in the ranking</span>
              <select value={order.value} onChange={(event) => (order.value = event.currentTarget.value)}>
                <option value="desc">the highest score</option>
                <option value="asc">the lowest score</option>
              </select>
            </label>
            <label>
              <span>Time zone of days</span>
              <input class="code" value={zone.value} onInput={(event) => (zone.value = event.currentTarget.value)} placeholder="Europe/Berlin" spellcheck={false} autocomplete="off" {...described(["timezone"])} />
              {errorOf(["timezone"])}
            </label>
            <label>
              <span>Digits after the decimal point</span>
              <input type="number" min="0" max="9" value={decimals.value} onInput={(event) => (decimals.value = event.currentTarget.value)} {...described(["decimals"])} />
              {errorOf(["decimals"])}
            </label>
          </fieldset>
        </details>
        <div class="panel" role="status">
          {!isPlaced && problem.value && <Notice problem={problem.value} />}
          {problem.value && isPlaced && <p>Not a valid definition yet: see {isNameWrong ? "the name" : `“${field}”`}.</p>}
          {preview.value && <Outcome preview={preview.value} named={name.value.trim() !== ""} />}
          {!preview.value && !problem.value && <p>…</p>}
        </div>
        <p class="actions">
          <button type="submit" class="main" disabled={!canDefine}>Define</button>
          {!canChange && <span class="soft">This console only reads. Define it with <code>PUT /v1/boards/{tried}</code>, or see <a href="swagger-ui/">the API</a>.</span>}
          {canChange && preview.value && name.value.trim() === "" && <span class="soft">Give it a name first.</span>}
        </p>
      </form>
    </>
  );
}

/** Points at a column of a text in the same font above it. */
function Caret({ text, column }: { text: string; column: number }) {
  const before = Array.from(text).slice(0, column - 1).join("");
  return <span class="caret" aria-hidden="true"><span class="caret-space">{before}</span>↑</span>;
}

/** Says what the definition would do. */
function Outcome({ preview, named }: { preview: Preview; named: boolean }) {
  const { metric, slot, slots_in_window: slots, bytes_per_subject: bytes, conflict, exists } = preview;
  return (
    <>
      <p>
        <code>{metric}</code>{" "}
        {slot === null ? "counts over all time: nothing leaves it." : <>has {counted(slots, "slot")} of {inWords(slot)}: {slots === 1 ? <>each {theLast(slot)} it begins again, empty.</> : <>each {theLast(slot)} the oldest slot leaves.</>}</>}
      </p>
      <p class="soft">
        A subject takes about {counted(bytes.one_slot, "byte")} of memory with data in one slot
        {slots > 1 && <>, {counted(bytes.all_slots, "byte")} with data in all</>}
        {bytes.each_value !== null && <>, and {counted(bytes.each_value, "byte")} more for each further value</>}.
      </p>
      {named && conflict && (
        <p class="notice">A board of this name exists with another {conflict.keys.join(", ")}. Choose another name, or remove that board first, under <a href={href(["operate"])}>Operate</a>.</p>
      )}
      {named && exists && !conflict && <p>A board of this name exists with the same definition: defining it again changes nothing.</p>}
    </>
  );
}
