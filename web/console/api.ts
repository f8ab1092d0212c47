// Requests to the API of the service that this page came from. All paths are relative, so that the console also works
// below a path of a proxy.

import { parse } from "../ranking/json.ts";
import { noteReached, noteTime } from "./clock.ts";
import { heldKey, noteRefused } from "./key.ts";

/** The longest time that a request may take, in milliseconds. */
const TIMEOUT = 30_000;

/** A refused or failed request. `message` says what was wrong and, where the service knows it, the way out. */
export class Problem extends Error {
  constructor(
    message: string,
    /** The status, or 0 if there was no response. */
    readonly status: number,
    /** The stable code of the API, or `unreachable`. */
    readonly code: string,
    /** The member of the request that was wrong. */
    readonly field?: string,
    /** The column of that member's text at which the error is, counted from 1. */
    readonly column?: number,
  ) {
    super(message);
  }
}

/** Sends a request with the key of the page and returns the body of the response. Throws a `Problem`. */
export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, key = heldKey()): Promise<T> {
  const limit = AbortSignal.timeout(TIMEOUT);
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, {
      method,
      // The browser sends the ETag of what it has, and the service answers 304 where nothing has changed.
      cache: "no-cache",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    noteReached(false);
    const reason = limit.aborted ? `did not answer in ${TIMEOUT / 1_000} s` : "cannot be reached";
    throw new Problem(`The service ${reason}. Is it running?`, 0, "unreachable");
  }
  noteReached(true);
  let answer: Record<string, unknown> = {};
  try {
    answer = parse(text) as Record<string, unknown>;
  } catch {
    if (response.ok) return text as T;
  }
  if (!response.ok) {
    const { detail, code, field, column } = answer as { detail?: string; code?: string; field?: string; column?: number };
    if (!signal?.aborted) noteRefused(key, response.status, code ?? "");
    throw new Problem(detail ?? `The service answered with status ${response.status}.`, response.status, code ?? "", field, column);
  }
  // The cached body of a 304 is older than what the header says.
  const asOf = response.headers.get("rolltop-as-of") ?? answer["as_of"];
  if (typeof asOf === "string") noteTime(asOf);
  return answer as T;
}

/** Returns the path of a board, or of something below it. */
export function boardPath(board: string, rest = ""): string {
  return `v1/boards/${encodeURIComponent(board)}${rest}`;
}

/** Returns whether a name can be part of the path of an address. Browsers take these two for steps in it. */
export function isAddressable(name: string): boolean {
  return name !== "." && name !== "..";
}
