// Follows the first lines of a ranking, as server-sent events that are read with `fetch`.
//
// Not with EventSource, which sends no key, and tells neither the status of a refused stream nor the comments that the
// service sends every 15 seconds. Without those, a connection that is lost without being closed would look alive.

import { problemError } from "./error.ts";
import type { RolltopError } from "./error.ts";
import { open, pause, sleep, startDeadline, withParameters } from "./http.ts";
import type { Connection } from "./http.ts";
import { blocks } from "./lines.ts";
import type { LiveRanking, Problem, ReadOptions, ShownOptions, UnroundedRanking } from "./types.ts";

export interface LiveOptions extends ReadOptions, ShownOptions {
  /** The number of lines: 10 (the default), 25, 50 or 100. */
  limit?: 10 | 25 | 50 | 100 | undefined;
  /** How often the service reads the ranking; by default `1s`. */
  interval?: "1s" | "5s" | "15s" | "1m" | undefined;
}

type Shown = LiveRanking | UnroundedRanking;
/**
 * What has changed since the event before. Its lines have subjects: only what is current is followed, and subjects are
 * removed from lines of final periods.
 */
export type Change<R extends Shown> = Pick<R, "window" | "as_of" | "retiring" | "total"> & {
  rows: (R["items"][number] & { position: number; subject: string })[];
  gone: string[];
};

/** The milliseconds after which a stream without a byte is abandoned. The service sends a comment every 15 seconds. */
export const SILENCE = 40_000;

/**
 * Returns the ranking, and again after each change, until the signal is aborted or it is left. Throws if the service
 * refuses it.
 */
export function live(
  connection: Connection,
  path: string,
  { signal, ...parameters }: LiveOptions,
): AsyncGenerator<LiveRanking, void> {
  // By itself, `return` would wait for the change that is waited for, and a ranking may never change again.
  const left = new AbortController();
  const leave = () => left.abort();
  if (signal?.aborted) leave();
  signal?.addEventListener("abort", leave, { signal: left.signal });
  const rankings = follow(connection, path, parameters, left.signal);
  const end = rankings.return.bind(rankings);
  rankings.return = (value) => (leave(), end(value));
  return rankings;
}

async function* follow(
  connection: Connection,
  path: string,
  parameters: Omit<LiveOptions, "signal">,
  signal: AbortSignal,
): AsyncGenerator<LiveRanking, void> {
  let ranking: LiveRanking | undefined;
  // With it, a stream that is opened again does not begin with what was received before it broke.
  let lastId: string | undefined;
  for (let attempt = 0; !signal.aborted; attempt++) {
    const deadline = startDeadline(signal);
    let retryAfter: number | undefined;
    try {
      deadline.set(connection.timeout);
      const response = await open(connection, "GET", withParameters(path, parameters), {
        accept: "text/event-stream",
        lastId,
        signal: deadline.signal,
      });
      for await (const events of blocks(response, "\n\n")) {
        const before = ranking;
        for (const event of events) {
          ranking = applied(ranking, event, connection);
          lastId = field(event, "id: ") ?? lastId;
          // Something that is not the service may answer with blocks, too.
          if (/^(retry|id): /m.test(event)) attempt = 0;
        }
        // What arrives while the caller works is in one step, and its time does not count.
        deadline.set(0);
        if (ranking && ranking !== before) yield ranking;
        deadline.set(SILENCE);
      }
    } catch (caught) {
      if (signal.aborted) return;
      const error = deadline.reason(caught) as RolltopError;
      if (!error.temporary) throw error;
      retryAfter = error.retryAfter;
    } finally {
      deadline.end();
    }
    await sleep(pause(attempt, retryAfter), signal);
  }
}

/** Returns the ranking after an event. Throws if the service will send no more of it. */
function applied(ranking: LiveRanking | undefined, event: string, { parse }: Connection): LiveRanking | undefined {
  const data = field(event, "data: ");
  if (!data) return ranking;
  const value = parse(data) as LiveRanking | Change<LiveRanking> | Problem;
  if ("items" in value) return value;
  if ("rows" in value) return ranking && changed(ranking, value);
  // After a problem of the store the stream goes on.
  if (value.status < 500) throw problemError(value);
  return ranking;
}

/** Returns the value of a field of an event. */
export function field(event: string, name: string): string | undefined {
  // Not by a regular expression, whose lines also end at U+2028, which subjects may have.
  const line = event.split("\n").find((line) => line.startsWith(name));
  return line?.slice(name.length);
}

/** Returns the ranking after a change. Subjects that are neither changed nor gone keep their order. */
export function changed<R extends Shown>(ranking: R, { rows, gone, ...frame }: Change<R>): R {
  const moved = new Set<string | null>([...gone, ...rows.map((row) => row.subject)]);
  const items = ranking.items.filter((line) => !moved.has(line.subject));
  // Rows are in the order of their positions, so each is inserted at its final place.
  for (const { position, ...line } of rows) items.splice(position - 1, 0, line as (typeof items)[number]);
  return { ...ranking, ...frame, items };
}
