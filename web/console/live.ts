// A live ranking: the stream of its first lines.

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { parse } from "../ranking/json.ts";
import { changed, type Change, type Page } from "../ranking/lines.ts";
import { boardPath, call, Problem } from "./api.ts";
import { lostSince, noteTime } from "./clock.ts";

/** The time after which a stream that was refused is tried again, in milliseconds. */
const AGAIN = 5_000;

/** The state of the connection: before the first page; up to date; or neither, with the last page still shown. */
export type Connection = "connecting" | "live" | "broken";

/** A ranking that is followed. */
export interface Live {
  page: ReadonlySignal<Page | null>;
  connection: ReadonlySignal<Connection>;
  problem: ReadonlySignal<Problem | null>;
}

/** Follows the first lines of a ranking while the page is visible; none if `board` is null. */
export function useLive(board: string | null, window: string | null, limit: number): Live {
  const page = useSignal<Page | null>(null);
  const connection = useSignal<Connection>("connecting");
  const problem = useSignal<Problem | null>(null);
  useEffect(() => {
    page.value = null;
    problem.value = null;
    connection.value = "connecting";
    if (board === null) return undefined;
    let source: EventSource | null = null;
    let timer = 0;
    let isEnded = false;
    const received = (next: Page) => {
      noteTime(next.as_of);
      page.value = next;
      connection.value = "live";
      problem.value = null;
    };
    const close = () => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const open = () => {
      close();
      if (isEnded || document.hidden) return;
      source = new EventSource(boardPath(board, `/stream?limit=${limit}`, window));
      source.addEventListener("open", () => {
        // Connected again, it sends no page if nothing has changed.
        if (page.value) connection.value = "live";
      });
      source.addEventListener("page", (event) => received(parse(event.data) as Page));
      source.addEventListener("change", (event) => {
        if (page.value) received(changed(page.value, parse(event.data) as Change));
      });
      source.addEventListener("problem", (event) => {
        const { detail, status, code } = parse(event.data) as { detail: string; status: number; code: string };
        problem.value = new Problem(detail, status, code);
        connection.value = "broken";
      });
      source.addEventListener("error", () => {
        connection.value = "broken";
        // An `EventSource` connects again by itself, unless the response was an error. It does not tell which.
        if (source?.readyState === EventSource.CLOSED) void readOnce();
      });
    };
    /** Reads the page as it is, which also says what was wrong, and tries the stream again later. */
    const readOnce = async () => {
      close();
      try {
        const next = await call<Page>("GET", boardPath(board, `/rankings?limit=${limit}`, window));
        if (isEnded) return;
        page.value = next;
        problem.value = null;
      } catch (error) {
        if (isEnded) return;
        if (error instanceof Problem) problem.value = error;
      }
      timer = globalThis.setTimeout(open, AGAIN) as unknown as number;
    };
    const onVisible = () => (document.hidden ? close() : open());
    document.addEventListener("visibilitychange", onVisible);
    const unsubscribe = lostSince.subscribe((since) => {
      if (since === null && problem.peek()?.code === "unreachable") problem.value = null;
    });
    open();
    return () => {
      isEnded = true;
      close();
      unsubscribe();
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [board, window, limit]);
  return { page, connection, problem };
}
