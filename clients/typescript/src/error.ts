import type { Problem } from "./types.ts";

/** Why there is no answer, or no usable one. */
export class RolltopError extends Error {
  override name = "RolltopError";
  /** The status of the response; 0 if there was none. */
  readonly status: number;
  /**
   * The code of the problem, such as `unknown_board`. If the service sent none: `network`, `timeout`, `closed` (the client
   * was closed before the items were acknowledged), `invalid_response` (a 200 that is not from the service) or `http`.
   */
  readonly code: string;
  /** What is wrong, for developers. */
  readonly detail: string;
  readonly requestId: string | undefined;
  /** The whole problem (RFC 9457), if the service sent one. */
  readonly problem: Problem | undefined;
  /** The seconds after which the service wants to see the request again. */
  readonly retryAfter: number | undefined;

  constructor(
    status: number,
    code: string,
    detail: string,
    more: { problem?: Problem | undefined; requestId?: string | undefined; retryAfter?: number | undefined; cause?: unknown } = {},
  ) {
    super(`${detail} (${status ? `${status} ` : ""}${code})`, { cause: more.cause });
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.problem = more.problem;
    this.requestId = more.problem?.request_id ?? more.requestId;
    this.retryAfter = more.retryAfter;
  }

  /** Whether the same request may succeed later. */
  get temporary(): boolean {
    return this.code === "invalid_response" || [0, 408, 429, 502, 503, 504].includes(this.status);
  }
}
