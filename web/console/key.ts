// The key of this page, and what it allows. The key itself is kept by this module and the browser's session storage: it is
// part of requests only, never of addresses, signals, the document or messages.

import { computed, signal } from "@preact/signals";
import { anonymous } from "./settings.ts";
import type { OwnKey } from "./types.ts";

/** What may be done. `admin` includes all others, `read` includes `view`. */
export type Scope = "view" | "read" | "write" | "manage" | "admin" | "metrics";

/** Scopes on boards. */
export interface Grant {
  scopes: readonly string[];
  /** Names, and beginnings of names with `*` after them. */
  boards: readonly string[];
}

// Services below other paths of the same proxy have keys of their own.
const PLACE = `rolltop.key ${new URL(".", document.baseURI).pathname}`;

let held: string | null = remembered();

function remembered(): string | null {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null;
  }
}

function remember(key: string | null): void {
  held = key;
  try {
    if (key === null) sessionStorage.removeItem(PLACE);
    else sessionStorage.setItem(PLACE, key);
  } catch {
    // A browser may keep nothing. Then the key is asked for after each reload.
  }
}

/** Returns the key to send with requests. */
export function heldKey(): string | null {
  return held;
}

/** What is known about the key that is held; null before the service has said it, and without a key. */
export const own = signal<OwnKey | null>(null);

/** Whether a key is held about which the service has not said anything yet. */
export const isUnchecked = signal(held !== null);

/** Whether what is known about the key may be outdated. */
export const isOutdated = signal(false);

/** Why a key is asked for; null if it is not. */
export const reason = signal<string | null>(null);

/** Changes whenever another key is held, or none. What was read with the one before is then forgotten. */
export const epoch = signal(0);

/** What requests of this page may do. */
export const grant = computed<Grant>(() => own.value ?? anonymous);

function allows({ scopes }: Grant, scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes("admin") || (scope === "view" && scopes.includes("read"));
}

function allowsOn(grant: Grant, scope: Scope, board: string | undefined): boolean {
  const isIn = (pattern: string) => (pattern.endsWith("*") ? board?.startsWith(pattern.slice(0, -1)) : board === pattern);
  return allows(grant, scope) && (board === undefined || grant.boards.some(isIn));
}

/** Returns whether requests of this page may do something, to a board if one is given. */
export function may(scope: Scope, board?: string): boolean {
  return allowsOn(grant.value, scope, board);
}

/** Returns whether callers without a key may do something to a board. */
export function anybodyMay(scope: Scope, board: string): boolean {
  return allowsOn(anonymous, scope, board);
}

/** Returns whether the console shows anything without a key. */
export const isOpen = allows(anonymous, "read");

/** Says why something cannot be done. */
export function lacks(scope: Scope): string {
  return own.value ? `The key “${own.value.name}” does not have the scope ${scope}.` : `This needs a key with the scope ${scope}.`;
}

/** Returns the name of a board that could be made: not one that exists, unless only single names are allowed. */
export function possibleName(): string {
  const { boards } = grant.value;
  return (boards.find((pattern) => pattern.endsWith("*")) ?? boards[0] ?? "*").replace("*", "new-board");
}

/** Takes a key that the service knows. */
export function hold(key: string, known: OwnKey): void {
  const isOther = key !== held;
  remember(key);
  own.value = known;
  isUnchecked.value = false;
  isOutdated.value = false;
  reason.value = null;
  if (isOther) epoch.value += 1;
}

/** Forgets the key, and asks for one if there is a reason to. */
export function forget(why: string | null = null): void {
  remember(null);
  own.value = null;
  isUnchecked.value = false;
  isOutdated.value = false;
  reason.value = why;
  epoch.value += 1;
}

/** Takes that the service has refused a request that had this key, or none. */
export function noteRefused(key: string | null, status: number, code: string): void {
  // The answer to a request from before a change says nothing about the key that is held now.
  if (key !== held) return;
  if (status === 403 && code === "forbidden") isOutdated.value = key !== null;
  if (status !== 401) return;
  if (key === null) reason.value = "This needs a key.";
  else forget(code === "key_expired" ? "The key has expired." : "The key is not valid any more: it was revoked or replaced.");
}
