// Items as they are sent. The service says whether they are in order; what no service can take is an error at once, with
// the name of the argument.

import { newId } from "./batch.ts";
import { keyText } from "./http.ts";
import type { Key, Time } from "./types.ts";

/** A number. A text is the number that is written in it, exactly. */
export type Amount = number | string | bigint;

/** What may be given for increments and events. */
export interface ItemOptions {
  /** When it happened; by default when it arrives at the service. */
  at?: Time | undefined;
  /** What tells it from others: an id counts once. By default a random one. */
  id?: string | undefined;
  /** Whether it undoes an earlier item. */
  retract?: boolean | undefined;
}

/** A number as JSON has it. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

/** Returns an amount as it is sent. Throws a TypeError for what is no number. */
export function amountOf(amount: Amount | undefined): number | string | undefined {
  if (amount === undefined || typeof amount === "number") return finite("amount", amount);
  if (typeof amount !== "string" && typeof amount !== "bigint") {
    throw new TypeError("amount must be a number, or a text with one");
  }
  const text = String(amount);
  if (!NUMBER.test(text)) throw new TypeError(`amount: "${text.slice(0, 40)}" is not a number, such as 19.99`);
  return text;
}

/** Returns a value as it is sent. */
export function valueOf(value: Amount | boolean | undefined): Amount | boolean | undefined {
  if (value === null || typeof value === "object") throw new TypeError("value must be a number or a text");
  return finite("value", value);
}

/** JSON would write null, which means 1, or nothing. */
function finite<T>(name: string, value: T): T {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${name}: ${value} is no number`);
  return value;
}

export function textOf(name: string, text: string): string {
  if (typeof text !== "string") throw new TypeError(`${name} must be a text`);
  return text;
}

export function keyOf(by: Key | undefined): string | undefined {
  if (by === undefined) return by;
  return Array.isArray(by) ? keyText(by) : textOf("by", by as string);
}

export function fieldsOf(fields: Record<string, unknown>): Record<string, unknown> {
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    throw new TypeError("fields must be an object");
  }
  for (const [name, value] of Object.entries(fields)) finite(`fields.${name}`, value);
  return fields;
}

/** Returns the JSON of an item with these members, and an id. */
export function itemText(members: object, { at, id = newId(), retract }: ItemOptions): string {
  if (at instanceof Date ? Number.isNaN(+at) : at !== undefined && typeof at !== "string") {
    throw new TypeError("at must be a Date or a text with a time");
  }
  if (retract !== undefined && typeof retract !== "boolean") throw new TypeError("retract must be true or false");
  const item = { ...members, at, retract, id: textOf("id", id) };
  return JSON.stringify(item, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}
