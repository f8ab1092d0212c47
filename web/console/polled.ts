// What is read again and again while a page shows it.

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { call } from "./api.ts";
import { lostSince } from "./clock.ts";
import { epoch } from "./key.ts";

/** The longest time between two tries after failures, in milliseconds. */
const LONGEST = 8_000;

/** The last responses by path, so that a page that is opened again is there at once. */
const cache = new Map<string, unknown>();
const CACHED = 60;
epoch.subscribe(() => cache.clear());

function remember(path: string, answer: unknown): void {
  cache.delete(path);
  cache.set(path, answer);
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHED) break;
    cache.delete(oldest);
  }
}

/** Returns the last response of a path; null if it is not known. */
function remembered<T>(path: string | null): T | null {
  return path === null ? null : ((cache.get(path) as T | undefined) ?? null);
}

/** The last response, and what was wrong with the last request. After a failure the response before it stays. */
export interface Polled<T> {
  data: ReadonlySignal<T | null>;
  problem: ReadonlySignal<RolltopError | null>;
  /** Reads now, unless the page is hidden. */
  refresh: () => void;
}

/** Makes the requests of a read. */
type Ask<T> = (path: string, signal: AbortSignal) => Promise<T>;

function get<T>(path: string, signal: AbortSignal): Promise<T> {
  return call<T>("GET", path, undefined, signal);
}

/** Reads a path every so many milliseconds while the page is visible; never if the path is null. The pace may change. */
export function usePolled<T>(path: string | null, every: number, ask: Ask<T> = get): Polled<T> {
  const data = useSignal<T | null>(remembered(path));
  const problem = useSignal<RolltopError | null>(null);
  const started = useRef<() => void>(() => undefined);
  const pace = useRef(every);
  pace.current = every;
  useEffect(() => {
    data.value = remembered(path);
    problem.value = null;
    if (path === null) return undefined;
    const ending = new AbortController();
    let timer = 0;
    let failures = 0;
    let isReading = false;
    let isStale = false;
    const read = async (): Promise<void> => {
      clearTimeout(timer);
      if (ending.signal.aborted) return;
      if (isReading) {
        // What is on its way may be from before the change.
        isStale = true;
        return;
      }
      isReading = true;
      try {
        const answer = await ask(path, ending.signal);
        if (ending.signal.aborted) return;
        data.value = answer;
        remember(path, answer);
        problem.value = null;
        failures = 0;
      } catch (error) {
        if (ending.signal.aborted) return;
        problem.value = error instanceof RolltopError ? error : new RolltopError(0, "unexpected", String(error));
        failures += 1;
        if (problem.value.status === 404) cache.delete(path);
      } finally {
        isReading = false;
      }
      if (isStale && failures === 0 && !document.hidden) {
        isStale = false;
        void read();
        return;
      }
      if (!document.hidden) timer = window.setTimeout(read, Math.min(pace.current * 2 ** failures, Math.max(pace.current, LONGEST)));
    };
    const onVisible = () => {
      if (document.hidden) clearTimeout(timer);
      else void read();
    };
    document.addEventListener("visibilitychange", onVisible);
    // When any request reaches the service again, there is nothing to wait for.
    const unsubscribe = lostSince.subscribe((since) => {
      if (since !== null || problem.peek()?.code !== "unreachable") return;
      problem.value = null;
      if (!document.hidden) void read();
    });
    started.current = () => {
      if (!document.hidden) void read();
    };
    started.current();
    return () => {
      ending.abort();
      clearTimeout(timer);
      unsubscribe();
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [path]);
  return { data, problem, refresh: useCallback(() => started.current(), []) };
}
