// Tries rules: type one, give the fields of an event, and see what each side amounts to.

import { useSignal } from "@preact/signals";
import { RolltopError } from "../../../clients/typescript/src/error.ts";
import { formatted, type Num } from "../../widget/numbers.ts";
import { call } from "../api.ts";
import { time } from "../clock.ts";
import { Caret, Empty, Heading, messageOf, Name, Notice } from "../parts.tsx";
import { usePolled } from "../polled.ts";
import { href } from "../route.ts";
import type { Evaluation, List } from "../types.ts";

/** A rule of the configuration. */
interface NamedRule {
  name: string;
  when: string;
  metrics: { metric: string; board: string | null; note?: string; covers_since?: string }[];
}

/** Writes a value of a side. */
function shown(value: Num | boolean | null): string {
  if (value === null) return "no value";
  return typeof value === "boolean" ? String(value) : typeof value === "number" || /^-?[\d.]+$/.test(value) ? formatted(value) : `'${value}'`;
}

/** Returns a field's value as it is sent: numbers and booleans where the text is one. */
function typed(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  // Only numbers that are written back the same: "007" and long ids are texts.
  return Number.isFinite(Number(text)) && String(Number(text)) === text ? Number(text) : text;
}

export function Rules() {
  const named = usePolled<List<NamedRule>>("v1/rules", 30_000);
  const rule = useSignal("COUNT(24h, like, post_id) >= 10");
  const fields = useSignal<{ name: string; value: string }[]>([{ name: "post_id", value: "" }]);
  const result = useSignal<Evaluation | null>(null);
  const problem = useSignal<RolltopError | null>(null);

  const evaluate = async () => {
    const given = Object.fromEntries(fields.value.filter((field) => field.name.trim() !== "" && field.value !== "").map((field) => [field.name.trim(), typed(field.value)]));
    try {
      result.value = await call<Evaluation>("POST", "v1/evaluate", { rule: rule.value, fields: given });
      problem.value = null;
    } catch (error) {
      if (!(error instanceof RolltopError)) return;
      result.value = null;
      problem.value = error;
      // The service says which field the rule needs: there is then a box for it.
      const missing = error.code === "missing_field" ? error.problem?.field?.replace(/^fields\./, "") : undefined;
      if (missing && !fields.value.some((field) => field.name === missing)) {
        fields.value = [...fields.value.filter((field) => field.name !== "" && field.value !== ""), { name: missing, value: "" }];
      }
    }
  };
  const change = (index: number, next: Partial<{ name: string; value: string }>) => {
    fields.value = fields.value.map((field, at) => (at === index ? { ...field, ...next } : field));
  };
  const remove = (index: number, button: HTMLElement) => {
    // The buttons of the fields after it move up; that of the last one goes away.
    if (index === fields.value.length - 1) button.closest(".fields")?.querySelector<HTMLElement>("button.link")?.focus();
    fields.value = fields.value.filter((_, at) => at !== index);
  };
  const message = messageOf(problem.value);
  const rules = named.data.value?.items ?? [];
  return (
    <>
      <div class="title">
        <Heading title="Rules">Rules</Heading>
        <p class="soft">A rule compares counts of one subject with limits: “more than 3 logins on this device in 30 minutes”. It needs boards that count what it compares.</p>
      </div>
      <Notice problem={named.problem.value} />
      {rules.length > 0 && (
        <section aria-labelledby="named">
          <h2 id="named">Rules of the configuration</h2>
          <ul class="rules">
            {rules.map((one) => (
              <li key={one.name}>
                <button type="button" class="link" onClick={() => (rule.value = one.when)}>{one.name}</button>{" "}
                <code>{one.when}</code>
                {one.metrics.filter((metric) => metric.board === null).map((metric) => <span class="warm" key={metric.metric}> no board counts {metric.metric}</span>)}
                {one.metrics.filter((metric) => metric.note !== undefined || metric.covers_since !== undefined).map((metric) => (
                  <span class="soft hint" key={metric.metric}>
                    <code>{metric.metric}</code>: {metric.note}
                    {metric.covers_since !== undefined && <>{metric.note !== undefined && "; "}counted since {time(metric.covers_since)}, when its board was defined</>}
                  </span>
                ))}
              </li>
            ))}
          </ul>
        </section>
      )}
      <form
        class="define"
        onSubmit={(event) => {
          event.preventDefault();
          void evaluate();
        }}
      >
        <fieldset>
          <legend>Try a rule</legend>
          <label class="wide">
            <span class="label">Rule</span>
            <input
              class="code"
              value={rule.value}
              onInput={(event) => (rule.value = event.currentTarget.value)}
              spellcheck={false}
              autocomplete="off"
              {...(problem.value?.problem?.field === "rule" ? { "aria-invalid": true, "aria-describedby": "rule-error" } : {})}
            />
            {problem.value?.problem?.column !== undefined && <Caret text={rule.value} column={problem.value.problem.column} />}
          </label>
          <div class="wide fields" role="group" aria-label="Fields of the event">
            {fields.value.map((field, index) => (
              <div class="line" key={index}>
                <input class="code" aria-label={`Name of field ${index + 1}`} placeholder="field" value={field.name} onInput={(event) => change(index, { name: event.currentTarget.value })} spellcheck={false} autocomplete="off" />
                <input aria-label={field.name ? `Value of ${field.name}` : `Value of field ${index + 1}`} placeholder="value" value={field.value} onInput={(event) => change(index, { value: event.currentTarget.value })} spellcheck={false} autocomplete="off" />
                <button type="button" aria-label={`Remove field ${field.name || index + 1}`} onClick={(event) => remove(index, event.currentTarget)}>×</button>
              </div>
            ))}
            <button type="button" class="link" onClick={() => (fields.value = [...fields.value, { name: "", value: "" }])}>Add a field</button>
          </div>
        </fieldset>
        <p class="actions"><button type="submit" class="main">Evaluate</button></p>
      </form>
      <div role="status">
        {message !== null && <p class="notice" id="rule-error">{problem.value?.code === "missing_field" ? `Fill in a value for ${problem.value.problem?.field?.replace(/^fields\./, "")}.` : message}</p>}
        {result.value?.rules.map((evaluated) => <Verdict key={evaluated.rule} evaluated={evaluated} asOf={result.value?.as_of ?? ""} />)}
        {!result.value && !problem.value && <Empty title="Press “Evaluate” to see each side of the rule" />}
      </div>
    </>
  );
}

/** The verdict of a rule, with each of its sides. */
function Verdict({ evaluated, asOf }: { evaluated: Evaluation["rules"][number]; asOf: string }) {
  return (
    <section class="panel" aria-label="Verdict">
      <p class={`verdict ${evaluated.hit ? "is-hit" : ""}`}>
        <b>{evaluated.hit ? "Hit" : "No hit"}</b> <span class="soft">at {time(asOf, { precise: true })}</span>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Sides of the rule">
        <table>
          <thead><tr><th>Left</th><th class="number">Value</th><th>Compared</th><th>Right</th><th class="number">Value</th><th>True</th></tr></thead>
          <tbody>
            {evaluated.sides.map((side, index) => (
              <tr key={index}>
                <td><code>{side.left}</code></td>
                <td class="number"><b>{shown(side.left_value)}</b></td>
                <td>{side.operator}</td>
                <td><code>{side.right}</code></td>
                <td class="number"><b>{shown(side.right_value)}</b></td>
                <td>{side.hit ? "yes" : "no"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {evaluated.sides.some((side) => side.metrics.length > 0) && (
        <ul class="soft">
          {evaluated.sides.flatMap((side) => side.metrics).map((metric, index) => (
            <li key={index}>
              <code>{metric.metric}</code> of <b><Name of={metric.subject} /></b>{metric.by !== undefined && <> in <b><Name of={metric.by} /></b></>} is {shown(metric.value)}, from the slots of <a href={href(["boards", metric.board], { by: metric.by })}>{metric.board}</a>
              {metric.capped && " (at least: the board has dropped further values)"}
              {metric.covers_since !== undefined && <> (counted since {time(metric.covers_since)}, when the board was defined)</>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
