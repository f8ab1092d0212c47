// Requests, their errors, and when they are sent again.

import { invalidResponse, RolltopError } from "./error.ts";
import type { Key, Problem, Time } from "./types.ts";

/** Values of the parameters of a request; those that are undefined are left out. */
export type Parameters = Record<string, string | number | boolean | Time | Key | undefined>;

export interface RequestOptions {
  /** A body, already written as JSON. */
  body?: string | undefined;
  accept?: string | undefined;
  /** The id of the last event of a stream that was received. */
  lastId?: string | undefined;
  signal?: AbortSignal | undefined;
  /** The number of times that the request is sent again; by default that of the client. */
  retries?: number | undefined;
  timeout?: number | undefined;
}

export interface Connection {
  /** The address of the service, without a slash at its end. */
  base: string;
  /** A key or token, or what returns the current one. */
  secret: string | (() => string | Promise<string>) | undefined;
  fetch: typeof fetch;
  timeout: number;
  retries: number;
  /** Parses the JSON of an answer. */
  parse: (text: string) => unknown;
}

/** The key of a ranking as the API wants it. */
export const keyText = (by: Key): string => (typeof by === "string" ? by : JSON.stringify(by));

/** Writes a path with parameters. */
export function withParameters(path: string, parameters: Parameters): string {
  let mark = "?";
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    let text = value instanceof Date ? value.toJSON() : value;
    if (typeof text === "object") text = name === "attributes" ? text.join() : keyText(text);
    // The service takes no empty list of names.
    if (name === "attributes" && text === "") continue;
    // Not with URLSearchParams, which would write half a surrogate pair as another key.
    path += `${mark}${name}=${encodeURIComponent(text)}`;
    mark = "&";
  }
  return path;
}

/**
 * Returns a path. Throws an error if a part of it is empty or a step in a path (`.` and `..`, also percent-encoded): an
 * address cannot have these, and `fetch` would send the request to another one.
 */
export function checked(path: string): string {
  if (/^[^/]|\/(\.|%2e){0,2}([/?#]|$)/i.test(path)) {
    throw new TypeError('no name in a path: "", "." or ".."');
  }
  return path;
}

/** Ends one request: when its time is over, or when another signal is aborted. */
export interface Deadline {
  signal: AbortSignal;
  /** Gives the request this many milliseconds from now on; 0 for no limit. */
  set(time: number): void;
  /** Ends the request if it is in progress, and the timer in any case. */
  end(reason?: unknown): void;
  /** Returns why a request failed with this error: the reason of the outer signal, or a RolltopError. */
  reason(error: unknown): unknown;
}

export function startDeadline(outer?: AbortSignal): Deadline {
  const controller = new AbortController();
  const { signal } = controller;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = (reason?: unknown): void => {
    clearTimeout(timer);
    controller.abort(reason);
  };
  outer?.throwIfAborted();
  outer?.addEventListener("abort", () => end(outer.reason), { signal });
  return {
    signal,
    end,
    set(time) {
      clearTimeout(timer);
      if (time > 0) timer = setTimeout(() => end(new RolltopError(0, "timeout", "no answer in time")), time);
    },
    reason(error) {
      if (signal.aborted) return signal.reason;
      if (error instanceof RolltopError) return error;
      return new RolltopError(0, "network", String(error), { cause: error });
    },
  };
}

/** Sends a request once. Throws a RolltopError unless the status is 200 to 299. */
export async function open(
  connection: Connection,
  method: string,
  path: string,
  { body, accept = "application/json", lastId, signal }: RequestOptions,
  more: RequestInit = {},
): Promise<Response> {
  const { secret } = connection;
  const bearer = typeof secret === "function" ? await secret() : secret;
  const headers: Record<string, string> = { accept };
  if (body) headers["content-type"] = "application/json";
  if (lastId) headers["last-event-id"] = lastId;
  if (bearer) headers["authorization"] = `Bearer ${bearer}`;
  const response = await connection.fetch(connection.base + path, {
    method,
    headers,
    body,
    signal,
    ...more,
  } as RequestInit);
  if (!response.ok) throw refusal(response, await response.text());
  return response;
}

/** Returns the error that a response is. */
function refusal(response: Response, text: string): RolltopError {
  let problem: Problem | undefined;
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    // A proxy answered, with a page of its own.
  }
  if (typeof problem?.code !== "string") problem = undefined;
  const { status, headers } = response;
  return new RolltopError(status, problem?.code ?? "http", problem?.detail ?? `status ${status} without a problem`, {
    problem,
    requestId: problem?.request_id ?? headers.get("x-request-id") ?? undefined,
    // A proxy may leave out the header, or write a date, or not let pages of other origins see it.
    retryAfter: Number(headers.get("retry-after")) || problem?.retry_after,
  });
}

/** Sends a request once and returns the JSON of the answer. */
export async function once(
  connection: Connection,
  method: string,
  path: string,
  options: RequestOptions,
): Promise<unknown> {
  const deadline = startDeadline(options.signal);
  deadline.set(options.timeout ?? connection.timeout);
  try {
    const response = await open(connection, method, path, { ...options, signal: deadline.signal });
    const text = await response.text();
    try {
      return text && connection.parse(text);
    } catch (cause) {
      throw invalidResponse(cause);
    }
  } catch (error) {
    throw deadline.reason(error);
  } finally {
    deadline.end();
  }
}

/** Sends a request, and again after what is temporary. Only for requests that do no harm twice. */
export async function request(
  connection: Connection,
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<unknown> {
  checked(path);
  for (let attempt = 0; ; attempt++) {
    try {
      return await once(connection, method, path, options);
    } catch (error) {
      await pauseAfter(error, attempt, options.retries ?? connection.retries, options.signal);
    }
  }
}

/** Waits before the next attempt. Throws the error if it is not temporary, or if there is no attempt left. */
export async function pauseAfter(
  error: unknown,
  attempt: number,
  retries: number,
  signal?: AbortSignal,
): Promise<void> {
  if (!(error instanceof RolltopError && error.temporary && attempt < retries)) throw error;
  await sleep(pause(attempt, error.retryAfter), signal);
  signal?.throwIfAborted();
}

const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 5_000;
/** Timers of a month and more fire at once. */
const A_DAY = 86_400_000;

/** Returns the milliseconds before the next attempt: random, so that many clients do not come back at one instant. */
export const pause = (attempt: number, retryAfter = 0): number =>
  Math.min(A_DAY, retryAfter * 1000) + Math.random() * Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** attempt);

/** Waits for a time, or until the signal is aborted. */
export const sleep = (time: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, time);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
