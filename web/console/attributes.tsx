// The attributes of a subject: what stands beside it in rankings, with a form to change them.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { call, Json } from "./api.ts";
import { pageOf, subjectPath, type Chosen } from "./chosen.ts";
import { may } from "./key.ts";
import { Name, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import { href } from "./route.ts";
import { canChange } from "./settings.ts";
import type { BoardStatus } from "./types.ts";

/** Others change them rarely, and what this page changes is read at once. */
const EVERY = 60_000;

/** A number as the service has it, with all its digits. */
class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Reviver = (key: string, value: unknown) => unknown;

/** Parses JSON, and keeps numbers as they are written, where the browser tells that. */
const parseDigits = (text: string): unknown =>
  JSON.parse(text, ((_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? new Digits(context?.source ?? String(value)) : value) as Reviver);

/** Returns the JSON of a value. */
function printed(value: unknown): string {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(printed).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${printed(member)}`).join(", ")}}`;
}

/** Attributes: their names, and the JSON of each value. */
type Texts = Map<string, string>;

interface Answer {
  attributes: Record<string, unknown>;
}

const textsOf = ({ attributes }: Answer): Texts =>
  new Map(Object.entries(attributes).map(([name, value]) => [name, printed(value)]));

/** An attribute as it is typed. */
interface Row {
  /** Tells rows from one another, whatever is typed. */
  id: number;
  name: string;
  value: string;
}

let lastId = 0;

const rowsOf = (texts: Texts): Row[] => [...texts].map(([name, value]) => ({ id: ++lastId, name, value }));

/** Returns the name to show beside a subject, from the attribute `name`; null if it has none. */
export function nameOf(attributes: Record<string, unknown> | undefined): string | null {
  const name = attributes && Object.hasOwn(attributes, "name") ? attributes["name"] : undefined;
  const text = typeof name === "string" || typeof name === "number" ? String(name) : "";
  return text.trim() === "" ? null : text;
}

/** The attributes of a subject. Where the page may change them, they are boxes. */
export function Attributes({ board, chosen, subject, onChange }: { board: BoardStatus; chosen: Chosen; subject: string; onChange: () => void }) {
  // What another board keeps has no key.
  const by = board.attributes === undefined ? chosen.by : null;
  const path = subjectPath({ board: chosen.board, window: null, by, period: null }, subject, "/attributes");
  const { data, problem, refresh } = usePolled<Answer>(path, EVERY, (path, signal) => call("GET", path, undefined, signal, undefined, parseDigits));
  const known = useRef<{ answer: Answer; texts: Texts; rows: Row[] } | null>(null);
  const isEditable = canChange && may("write", chosen.board);
  // Each answer is made into rows once, so that they keep their elements.
  if (data.value && known.current?.answer !== data.value) {
    const texts = textsOf(data.value);
    known.current = { answer: data.value, texts, rows: rowsOf(texts) };
  }
  if (known.current === null && problem.value === null) return null;
  const { texts, rows } = known.current ?? { texts: new Map<string, string>(), rows: [] };
  if (texts.size === 0 && !isEditable) return null;
  return (
    <section aria-labelledby="attributes">
      <h2 id="attributes">Attributes</h2>
      <p class="small">
        {board.attributes === undefined
          ? "Rankings can show them beside the subject. They do not change with the window or the period."
          : <>They are those of the board <a href={href(...pageOf({ board: board.attributes, window: null, by: null, period: null }))}>{board.attributes}</a>, which other boards may show too.</>}
      </p>
      {data.value === null || problem.value !== null
        ? <Notice problem={problem.value} />
        : isEditable
        ? <Form key={path} path={path} texts={texts} rows={rows} onSaved={() => { refresh(); onChange(); }} />
        : (
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Value, as JSON</th></tr></thead>
            <tbody>{[...texts].map(([name, value]) => <tr key={name}><th scope="row"><code>{name}</code></th><td><code><Name of={value} /></code></td></tr>)}</tbody>
          </table>
        )}
    </section>
  );
}

/** Returns what differs from the attributes that are known, as the JSON that merges it. Throws an error that says what is wrong. */
function changes(rows: Row[], known: Texts): string[] {
  const given = new Set<string>();
  const changed: string[] = [];
  for (const { name: typed, value } of rows) {
    const name = typed.trim();
    if (name === "" && value.trim() === "") continue;
    if (name === "") throw new Error(`The value ${value} has no name.`);
    if (given.has(name)) throw new Error(`“${name}” is there twice.`);
    given.add(name);
    if (known.get(name) === value) continue;
    try {
      JSON.parse(value);
    } catch {
      throw new Error(`The value of “${name}” is not JSON. Texts are in quotes, such as "Ann".`);
    }
    changed.push(`${JSON.stringify(name)}:${value}`);
  }
  for (const name of known.keys()) if (!given.has(name)) changed.push(`${JSON.stringify(name)}:null`);
  return changed;
}

function Form({ path, texts, rows: read, onSaved }: { path: string; texts: Texts; rows: Row[]; onSaved: () => void }) {
  /** What is typed, and what was known when that began; null before anything was. */
  const typed = useSignal<{ rows: Row[]; known: Texts } | null>(null);
  const says = useSignal("");
  const wrong = useSignal("");
  const refusal = useSignal<RolltopError | null>(null);
  const isBusy = useSignal(false);
  const add = useRef<HTMLButtonElement>(null);
  const rows = typed.value?.rows ?? read;
  const type = (rows: Row[]) => {
    typed.value = { rows, known: typed.value?.known ?? texts };
    says.value = wrong.value = "";
  };
  const change = (changed: Row, part: Partial<Row>) => type(rows.map((row) => (row === changed ? { ...row, ...part } : row)));
  const save = async () => {
    if (isBusy.value) return;
    says.value = wrong.value = "";
    refusal.value = null;
    let changed: string[];
    try {
      changed = changes(rows, typed.value?.known ?? texts);
    } catch (error) {
      wrong.value = (error as Error).message;
      return;
    }
    if (changed.length === 0) {
      says.value = "Nothing has changed.";
      return;
    }
    isBusy.value = true;
    try {
      const answer = await call<Answer>("PATCH", path, new Json(`{${changed.join()}}`), undefined, undefined, parseDigits);
      const known = textsOf(answer);
      typed.value = { rows: rowsOf(known), known };
      says.value = known.size > 0 ? "Saved." : "Saved. The subject has no attributes.";
      onSaved();
    } catch (error) {
      if (error instanceof RolltopError) refusal.value = error;
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <form class="attributes" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <ul role="list" aria-label="Attributes">
        {rows.map((row, index) => (
          <li key={row.id} class="line">
            <input
              class="code"
              aria-label={`Name of attribute ${index + 1}`}
              value={row.name}
              onInput={(event) => change(row, { name: event.currentTarget.value })}
              placeholder="name"
              autocomplete="off"
              spellcheck={false}
            />
            <input
              class="code attributes-value"
              aria-label={`Value of attribute ${index + 1}, as JSON`}
              value={row.value}
              onInput={(event) => change(row, { value: event.currentTarget.value })}
              placeholder={'"Ann"'}
              autocomplete="off"
              spellcheck={false}
            />
            <button
              type="button"
              aria-label={`Remove attribute ${index + 1}`}
              onClick={() => {
                type(rows.filter((other) => other !== row));
                // The button that has the focus goes with its row.
                add.current?.focus();
              }}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <p class="actions">
        <button type="button" ref={add} onClick={() => type([...rows, { id: ++lastId, name: "", value: "" }])}>Add an attribute</button>
        <button type="submit" class="main">Save</button>
        <span role="status">{says.value}</span>
      </p>
      {wrong.value !== "" && <p class="notice" role="alert">{wrong.value}</p>}
      <Notice problem={refusal.value} />
    </form>
  );
}
