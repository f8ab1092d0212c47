// A live ranking: the stream of its first lines, as the custom element follows it.

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { RolltopError } from "../../clients/typescript/src/error.ts";
import { follow, hurry, type Page } from "../../clients/typescript/src/feeds.ts";
import type { Chosen } from "./chosen.ts";
import { lostSince, noteTime } from "./clock.ts";
import { heldKey, noteRefused } from "./key.ts";

/** The state of the connection: before the first page; up to date; or neither, with the last page still shown. */
export type Connection = "connecting" | "live" | "broken";

/** A ranking that is followed. */
export interface Live {
  page: ReadonlySignal<Page | null>;
  connection: ReadonlySignal<Connection>;
  problem: ReadonlySignal<RolltopError | null>;
}

/** The address of the service: this page's, without the slash at its end. */
const base = new URL(".", document.baseURI).href.replace(/\/$/, "");

lostSince.subscribe((since) => {
  // Other requests notice first that the service is there again.
  if (since === null) hurry();
});

/** Follows the first lines of a ranking while the page is visible; none if `chosen` is null. */
export function useLive(chosen: Chosen | null, limit: number): Live {
  const page = useSignal<Page | null>(null);
  const connection = useSignal<Connection>("connecting");
  const problem = useSignal<RolltopError | null>(null);
  useEffect(() => {
    page.value = null;
    problem.value = null;
    connection.value = "connecting";
    if (chosen === null) return undefined;
    const key = heldKey();
    const { view, stop } = follow(base, { board: chosen.board, window: chosen.window ?? "", by: chosen.by ?? "", attributes: "name", limit }, () => show(), key ?? "");
    const show = () => {
      const { state, code } = view;
      if (["key_required", "invalid_key", "key_expired"].includes(code)) noteRefused(key, 401, code);
      if (view.page) noteTime(view.page.as_of);
      page.value = view.page ?? page.peek();
      connection.value = state === "loading" ? "connecting" : state === "live" || state === "polling" ? "live" : "broken";
      // That the service is unreachable is shown at the top of the page.
      problem.value = state === "error" && lostSince.peek() === null ? new RolltopError(0, "stream", view.message) : null;
    };
    show();
    return stop;
  }, [chosen?.board, chosen?.window, chosen?.by, limit]);
  return { page, connection, problem };
}
