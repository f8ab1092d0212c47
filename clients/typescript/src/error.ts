import type { Problem } from "./types.ts";

/** Why there is no answer, or no usable one. */
export class RolltopError extends Error {
  override name = "RolltopError";
  /** The status of the response; 0 if there was none. */
  declare readonly status: number;
  /**
   * The code of the problem, such as `unknown_board`. If the service sent none: `network`, `timeout`, `closed` (the
   * client was closed before the items were acknowledged), `unknown` (items that may have been counted are not sent
   * again), `invalid_response` (a 200 that is not from the service) or `http`.
   */
  declare readonly code: string;
  /** What is wrong, for developers. */
  declare readonly detail: string;
  declare readonly requestId: string | undefined;
  /** The whole problem (RFC 9457), if the service sent one. */
  declare readonly problem: Problem | undefined;
  /** The seconds after which the service wants to see the request again. */
  declare readonly retryAfter: number | undefined;

  /** @internal */
  constructor(
    status: number,
    code: string,
    detail: string,
    more: {
      cause?: unknown;
      problem?: Problem | undefined;
      requestId?: string | undefined;
      retryAfter?: number | undefined;
    } = {},
  ) {
    super(`${detail} (${status} ${code})`, more);
    Object.assign(this, { status, code, detail }, more);
  }

  /** Whether the same request may succeed later. */
  get temporary(): boolean {
    return [0, 200, 408, 425, 429, 500, 502, 503, 504].includes(this.status);
  }
}

/** Returns the error that a 200 is which is not from the service: a gateway of a hotel answers 200 to everything. */
export const invalidResponse = (cause?: unknown): RolltopError =>
  new RolltopError(200, "invalid_response", "the answer is not that of the service", { cause });

/** Returns the error that a problem in a stream is. */
export const problemError = (problem: Problem): RolltopError =>
  new RolltopError(problem.status, problem.code, problem.detail, { problem, requestId: problem.request_id });
