// Reads whole rankings as NDJSON.

import { problemError, RolltopError } from "./error.ts";
import { startDeadline, open, pauseAfter, withParameters } from "./http.ts";
import type { Connection } from "./http.ts";
import { blocks } from "./lines.ts";
import type { PeriodOptions, Problem, Ranking, ShownOptions } from "./types.ts";

export interface ExportOptions extends PeriodOptions, ShownOptions {
  /** The number of lines; by default all. */
  limit?: number | undefined;
  offset?: number | undefined;
  /** The `next` of a page. */
  cursor?: string | undefined;
  /** The number of lines that are read, and after a break read again, at once: 10,000. They are kept in memory. */
  piece?: number | undefined;
}

/** The last line of an export. */
interface Last {
  complete: boolean;
  next: string | null;
  /** Where it is not complete. */
  problem: Problem;
}

/**
 * Returns the lines of a ranking. They are read in pieces, and a piece is handed on when it is known to be whole: where
 * a connection breaks there is no place to continue from, so the piece is read again from its beginning.
 */
export async function* exported(
  connection: Connection,
  path: string,
  { limit = Infinity, piece = 10_000, offset, cursor, signal, ...read }: ExportOptions,
): AsyncGenerator<Ranking["items"][number], void> {
  for (let attempt = 0; limit > 0;) {
    const parameters = {
      ...read,
      cursor,
      offset: cursor ? undefined : offset,
      limit: Math.min(limit, piece),
    };
    const deadline = startDeadline(signal);
    let lines: unknown[] = [];
    let last: Last | undefined;
    try {
      deadline.set(connection.timeout);
      const response = await open(connection, "GET", withParameters(path, parameters), {
        accept: "application/x-ndjson",
        signal: deadline.signal,
      });
      for await (const texts of blocks(response, "\n")) {
        for (const text of texts) lines.push(connection.parse(text));
        deadline.set(connection.timeout);
      }
      last = lines.at(-1) as Last | undefined;
      if (typeof last?.complete !== "boolean") throw new RolltopError(0, "network", "the export was cut off");
      lines = lines.slice(0, -1);
    } catch (error) {
      await pauseAfter(deadline.reason(error), attempt++, connection.retries, signal);
      continue;
    } finally {
      deadline.end();
    }
    if (lines.length > 0) attempt = 0;
    yield* lines as Ranking["items"];
    limit -= lines.length;
    if (last.next === null && last.complete) return;
    if (!last.complete) {
      const error = problemError(last.problem);
      // Without a place to continue from, what was handed on would be read again.
      if (last.next === null && (lines.length > 0 || cursor)) throw error;
      await pauseAfter(error, attempt++, connection.retries, signal);
    }
    cursor = last.next ?? cursor;
  }
}
