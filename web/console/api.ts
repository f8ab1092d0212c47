// Requests to the API of the service that this page came from. All paths are relative, so that the console also works
// below a path of a proxy.

import { RolltopError } from "../../clients/typescript/src/error.ts";
import { open, startDeadline } from "../../clients/typescript/src/http.ts";
import { parseUnrounded } from "../../clients/typescript/src/json.ts";
import { noteReached, noteTime } from "./clock.ts";
import { heldKey, noteRefused } from "./key.ts";

/** The longest time that a request may take, in milliseconds. */
const TIMEOUT = 30_000;

const connection = {
  base: "",
  // The browser sends the ETag of what it has, and the service answers 304 where nothing has changed.
  fetch: (path: string | URL | Request, init?: RequestInit) => fetch(path, { ...init, cache: "no-cache" }),
  timeout: TIMEOUT,
  retries: 0,
  parse: parseUnrounded,
};

/** A body that is written as JSON already. */
export class Json {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Sends a request with the key of the page and returns the body of the response. Throws a `RolltopError`, whose
 * `detail` says what was wrong and, where the service knows it, the way out.
 */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  key = heldKey(),
  parse = parseUnrounded,
): Promise<T> {
  const deadline = startDeadline(signal);
  deadline.set(TIMEOUT);
  let response: Response;
  let text: string;
  try {
    const options = { body: body instanceof Json ? body.text : (JSON.stringify(body) as string | undefined), signal: deadline.signal };
    response = await open({ ...connection, secret: key ?? undefined }, method, path, options);
    text = await response.text();
  } catch (caught) {
    if (signal?.aborted) throw caught;
    const error = deadline.reason(caught) as RolltopError;
    noteReached(error.status > 0);
    if (error.status > 0) {
      noteRefused(key, error.status, error.code);
      throw error;
    }
    const reason = error.code === "timeout" ? `did not answer in ${TIMEOUT / 1_000} s` : "cannot be reached";
    throw new RolltopError(0, "unreachable", `The service ${reason}. Is it running?`);
  } finally {
    deadline.end();
  }
  noteReached(true);
  let answer: Record<string, unknown>;
  try {
    answer = parse(text) as Record<string, unknown>;
  } catch {
    return text as T;
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
