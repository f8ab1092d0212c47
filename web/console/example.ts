// An event that counts on a board, made from the text of its metric.

import { argumentsOf, keyOf } from "./metric.ts";
import { anonymous } from "./settings.ts";

/** Returns the fields of an argument: `a`, `(a, b)` or `prefix(a, 24)`. */
function fieldsOf(argument: string): string[] {
  const inside = argument.replace(/^prefix\(([^,]*),.*\)$/, "$1").replace(/[()]/g, "");
  return inside.split(",").map((field) => field.trim()).filter((field) => /^[A-Za-z_][\w.]*$/.test(field));
}

/**
 * Returns an event that counts on a board with this metric, in the ranking of a key if one is given, and with a second
 * key in the field that is named; null if the
 * metric has a filter, or if the key is made from more than the text of a field.
 */
export function exampleEvent(metric: string, key: string | null, tieBreak: string | null): object | null {
  const by = keyOf(metric);
  if (/\sWHERE\s/.test(metric)) return null;
  if (key !== null && !/^[\w.]+$/.test(by ?? "")) return null;
  const name = metric.slice(0, metric.indexOf("("));
  const [, terms = "", ...rest] = argumentsOf(metric).flatMap((argument) => argument.split(" BY "));
  // The first of the types that count. If it is the only one, without a weight, its field is an argument of its own.
  const [, type, field, more] = /^([\w.-]+)(?:: ([\w.-]+))?(.*)$/.exec(terms) ?? [];
  if (!type || rest.length === 0) return null;
  const hasValue = field === undefined && more === "" && ["SUM", "AVG", "MIN", "MAX", "LAST"].includes(name);
  const fields: Record<string, string | number> = {};
  for (const field of rest.flatMap(fieldsOf)) fields[field] = `${field.replace(/_?id$/, "") || field}-1`;
  if (hasValue && rest[0]) for (const value of fieldsOf(rest[0])) fields[value] = 5;
  if (field !== undefined) fields[field] = 5;
  if (Object.values(fields).length === 0) return null;
  if (by !== null && key !== null) fields[by] = key;
  if (tieBreak !== null) fields[tieBreak] = 1;
  return { type, fields };
}

/** Returns the command that posts an event. */
export function postCommand(event: object): string {
  const base = new URL("v1/events", document.baseURI).href;
  // An apostrophe would end the text in quotes.
  const body = JSON.stringify(event).replaceAll("'", "\\u0027");
  // A key does not belong into a command line, which is kept in a history.
  const key = ["write", "admin"].some((scope) => anonymous.scopes.includes(scope)) ? "" : ` -H "authorization: Bearer $ROLLTOP_KEY"`;
  return `curl -X POST ${base}${key} -H 'content-type: application/json' \\\n  -d '${body}'`;
}
