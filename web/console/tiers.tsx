// The tiers of a board, which lines of its rankings show: a form to see and to set them.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { boardPath, call } from "./api.ts";
import { Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import type { Tier, Tiers } from "./types.ts";

/** Others change them rarely, and what this page changes is read at once. */
const EVERY = 60_000;

/** The bounds that a tier can have, with what they say. */
const BOUNDS = [["top", "best percent"], ["rank", "rank up to"], ["score", "score or better"]] as const;

/** A tier as it is typed. */
interface Row {
  /** Tells rows from one another, whatever is typed. */
  id: number;
  name: string;
  bound: (typeof BOUNDS)[number][0];
  value: string;
}

let lastId = 0;

function rowOf(tier: Tier): Row {
  const bound = BOUNDS.map(([bound]) => bound).find((bound) => tier[bound] !== undefined) ?? "top";
  return { id: ++lastId, name: tier.name, bound, value: String(tier[bound] ?? "") };
}

/** Returns a tier as the service takes it. It says what is wrong with a text that is not a number. */
function tierOf({ name, bound, value }: Row): object {
  const number = value.trim() === "" ? NaN : Number(value);
  return { name, [bound]: Number.isFinite(number) ? number : value };
}

/** The tiers of a board, which are read while it is open. */
export function TierSettings({ board }: { board: string }) {
  const isOpen = useSignal(false);
  return (
    <details class="tiers" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Tiers</summary>
      {isOpen.value && <Form key={board} board={board} />}
    </details>
  );
}

function Form({ board }: { board: string }) {
  const path = boardPath(board, "/tiers");
  const { data, problem, refresh } = usePolled<Tiers>(path, EVERY);
  /** What is typed; null before anything was. */
  const typed = useSignal<Row[] | null>(null);
  const says = useSignal("");
  const refusal = useSignal<RolltopError | null>(null);
  const isBusy = useSignal(false);
  const add = useRef<HTMLButtonElement>(null);
  const known = useRef<{ answer: Tiers; rows: Row[] } | null>(null);
  if (!data.value) return <Notice problem={problem.value} />;
  // Each answer is made into rows once, so that they keep their elements.
  if (known.current?.answer !== data.value) known.current = { answer: data.value, rows: data.value.tiers.map(rowOf) };
  const rows = typed.value ?? known.current.rows;
  const type = (rows: Row[]) => {
    typed.value = rows;
    says.value = "";
  };
  const change = (changed: Row, part: Partial<Row>) => type(rows.map((row) => (row === changed ? { ...row, ...part } : row)));
  const save = async () => {
    if (isBusy.value) return;
    isBusy.value = true;
    says.value = "";
    try {
      const { tiers } = await call<Tiers>("PUT", path, { tiers: rows.map(tierOf) });
      typed.value = tiers.map(rowOf);
      says.value = tiers.length > 0 ? "Saved. Lines show their tiers." : "Saved. The board has no tiers.";
      refusal.value = null;
    } catch (error) {
      if (error instanceof RolltopError) refusal.value = error;
    } finally {
      isBusy.value = false;
    }
    refresh();
  };
  return (
    <form onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <p class="small">The best tier first. A subject is in the first one that it reaches.</p>
      <ol role="list" aria-label="Tiers">
        {rows.map((row, index) => (
          <li key={row.id} class="line">
            <input
              aria-label={`Name of tier ${index + 1}`}
              value={row.name}
              onInput={(event) => change(row, { name: event.currentTarget.value })}
              placeholder="gold"
              autocomplete="off"
              spellcheck={false}
            />
            <select
              aria-label={`Bound of tier ${index + 1}`}
              value={row.bound}
              onChange={(event) => change(row, { bound: event.currentTarget.value as Row["bound"] })}
            >
              {BOUNDS.map(([bound, says]) => <option key={bound} value={bound}>{says}</option>)}
            </select>
            <input
              aria-label={`Value of tier ${index + 1}`}
              value={row.value}
              onInput={(event) => change(row, { value: event.currentTarget.value })}
              inputMode="decimal"
              placeholder="5"
              autocomplete="off"
            />
            <button
              type="button"
              aria-label={`Remove tier ${index + 1}`}
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
      </ol>
      <p class="actions">
        <button type="button" ref={add} onClick={() => type([...rows, { id: ++lastId, name: "", bound: "top", value: "" }])}>Add a tier</button>
        <button type="submit" class="main">Save</button>
        <span role="status">{says.value}</span>
      </p>
      <Notice problem={refusal.value} />
    </form>
  );
}
