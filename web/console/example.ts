// What can be counted on a board: an event and an increment, made from its definition.

import { anybodyMay } from "./key.ts";
import { argumentsOf, keyOf } from "./metric.ts";
import type { BoardStatus } from "./types.ts";

/** Members of JSON that are texts and numbers. */
type Members = Record<string, string | number>;

/** A field of a metric, with a value of it in an event, and the text that a metric makes from that. */
interface Sample {
  name: string;
  value: string;
  text: string;
}

/** Returns the fields of an argument: `a`, `(a, b)` or `prefix(a, 24)`. */
function samplesOf(argument: string): Sample[] {
  return (argument.startsWith("(") ? argumentsOf(argument) : [argument]).map((key) => {
    const [, address, bits] = /^prefix\((.*), (\d+)\)$/.exec(key) ?? [];
    if (address === undefined) {
      const value = `${key.replace(/_?id$/, "") || key}-1`;
      return { name: key, value, text: value };
    }
    // The first so many bits of the address.
    const kept = (at: number) => Math.min(Math.max(Number(bits) - 8 * at, 0), 8);
    const network = [203, 0, 113, 1].map((byte, at) => byte & ~(255 >> kept(at)));
    return { name: address, value: "203.0.113.1", text: `${network.join(".")}/${Math.min(Number(bits), 32)}` };
  });
}

/** Returns the text of a subject, key or value that is made from an argument. */
function textOf(argument: string): string {
  const texts = samplesOf(argument).map(({ text }) => text);
  return argument.startsWith("(") ? JSON.stringify(texts) : (texts[0] ?? "");
}

/** Returns the values of the fields of an event that lead to this key. */
function valuesOf(key: string, fields: Sample[]): string[] {
  const [first] = fields;
  if (fields.length === 1) return [first?.value === first?.text ? key : key.replace(/\/\d+$/, "")];
  const texts: unknown = JSON.parse(key);
  return Array.isArray(texts) ? texts.map((text) => String(text).replace(/^([\d.]+|[\da-f:]+)\/\d+$/, "$1")) : [];
}

/** The parts of a metric from which examples are made. */
interface Parts {
  name: string;
  /** The first of the types that count, and the fields with a number that it counts by. */
  type: string;
  numbers: string[];
  /** The argument of the subject, and that of what is counted, on boards of COUNT_DISTINCT. */
  subject: string;
  counted: string | null;
  by: string | null;
}

function partsOf(metric: string): Parts {
  const name = metric.slice(0, metric.indexOf("("));
  // The filter comes last.
  const [before = "", filter] = metric.split(" WHERE ");
  const [, terms = "", ...keys] = argumentsOf(filter === undefined ? before : `${before})`).map((argument) => argument.split(" BY ")[0] ?? "");
  // Several terms may be of the first type. If it is the only term, without a weight, its field is an argument of its own.
  const all = terms.split(/ [+-] /).map((term) => /^([\w.-]+)(?:: ([\w.-]+))?/.exec(term) ?? []);
  const type = all[0]?.[1] ?? "";
  const numbers = all.flatMap(([, of, field]) => (of === type && field !== undefined ? [field] : []));
  const isDistinct = name.endsWith("COUNT_DISTINCT");
  if (name !== "COUNT" && !isDistinct && keys.length > 1) numbers.push(keys.shift() ?? "");
  return { name, type, numbers, subject: keys[0] ?? "", counted: isDistinct ? (keys[1] ?? "") : null, by: keyOf(metric) };
}

/**
 * Returns an event that counts on a board, in the ranking of a key if one is given; null if the metric has a filter, which
 * the event would have to match.
 */
export function exampleEvent(board: BoardStatus, key: string | null): object | null {
  if (board.metric.includes(" WHERE ")) return null;
  const { type, numbers, subject, counted, by } = partsOf(board.metric);
  const fields: Members = {};
  for (const argument of [subject, by, counted, board.cap?.per ?? null]) {
    if (argument !== null) for (const { name, value } of samplesOf(argument)) fields[name] = value;
  }
  if (by !== null && key !== null) {
    const samples = samplesOf(by);
    const values = valuesOf(key, samples);
    samples.forEach(({ name }, at) => (fields[name] = values[at] ?? ""));
  }
  for (const number of numbers) fields[number] = 5;
  if (board.tie_break) fields[board.tie_break.field ?? "tie_break"] = 1;
  return { type, fields };
}

/** An increment of a board, as the API takes it. */
export interface Increment {
  subject: string;
  by?: string;
  amount?: number;
  value?: string | number;
  tie_break?: number;
}

/** Returns an increment that counts on a board, in the ranking of a key if its metric has `BY`. */
export function exampleIncrement(board: BoardStatus, key: string | null): Increment {
  const { name, subject, counted, by } = partsOf(board.metric);
  const increment: Increment = { subject: textOf(subject) };
  if (by !== null) increment.by = key ?? textOf(by);
  if (counted !== null) increment.value = textOf(counted);
  else if (board.cap) increment.value = textOf(board.cap.per);
  else if (name === "SUM") increment.amount = 5;
  else if (name !== "COUNT") increment.value = 5;
  if (board.tie_break) increment.tie_break = 1;
  return increment;
}

/** Returns the part of a command that sends a key, unless everybody may do this on the board. */
export function keyHeader(scope: "view" | "read" | "write", board: string): string {
  // A key does not belong into a command line, which is kept in a history.
  return anybodyMay(scope, board) ? "" : ' -H "authorization: Bearer $ROLLTOP_KEY"';
}

/** Returns the command that posts JSON to an address below that of the service. */
export function postCommand(path: string, body: object, board: string): string {
  // An apostrophe would end the text in quotes.
  const text = JSON.stringify(body).replaceAll("'", "\\u0027");
  return `curl -X POST ${new URL(path, document.baseURI).href}${keyHeader("write", board)} -H 'content-type: application/json' \\\n  -d '${text}'`;
}
