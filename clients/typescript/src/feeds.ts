// Follows rankings: one stream of server-sent events for all boards of a page, and polls where streams do not work.
//
// A `View` is a ranking that is followed, by any number of listeners. The `Hub` of a service gives each view to a
// `Feed`, which keeps its views up to date. Nothing is read while the page is hidden.

import { invalidResponse } from "./error.ts";
import type { RolltopError } from "./error.ts";
import { checked, once, open, sleep, startDeadline } from "./http.ts";
import type { Connection } from "./http.ts";
import { parseUnrounded } from "./json.ts";
import { blocks } from "./lines.ts";
import { changed, field, SILENCE } from "./live.ts";
import type { Change } from "./live.ts";
import type { Problem, UnroundedRanking } from "./types.ts";

/** The maximum number of views of a stream. */
const MAX_VIEWS = 20;
/** The maximum number of streams of a page to a service. Browsers open six connections with HTTP/1.1. */
const MAX_STREAMS = 3;
/** The number of attempts after which polls are tried, if a stream cannot be opened. */
const MAX_FAILURES = 3;

// Times in milliseconds.
/** The time in which changes of the views of a page are collected, so that they open the stream once. */
const COLLECT = 20;
/** The time in which a stream must begin. A proxy may keep its beginning back. */
const FIRST_EVENT = 10_000;
/** The age at which the end of a stream is no failure. */
const STABLE = 10_000;
const POLL = 5_000;
/** The same where no item changes the rankings any more. Subjects may still be removed or hidden. */
const POLL_FINAL = 60_000;
const POLL_TIMEOUT = 10_000;
/** The time after which a stream is tried again, while polls work. */
const STREAM_AGAIN = 180_000;
/** The same if the service had too much to do, or was stopping. */
const BUSY_AGAIN = 15_000;
const MAX_DELAY = 30_000;
/** The time after which a refused view is read again. It doubles up to the maximum. */
const REFUSED_AGAIN = 30_000;
const MAX_REFUSED_AGAIN = 300_000;

/** How up to date a view is. */
export type State = "loading" | "live" | "polling" | "reconnecting" | "error";

/** The lines of a view. Scores that a number cannot hold exactly are texts, where the engine tells them. */
export type Page = UnroundedRanking;

/** What is followed: the first lines of a ranking. */
export interface Wanted {
  board: string;
  /** The length of the window; by default, or if it is empty, the main one. */
  window?: string | undefined;
  /** The key of the ranking, where the metric has `BY`; undefined or empty for none. */
  by?: string | undefined;
  /** The name of a period, on a board with a season: it is polled. Undefined or empty for the current one. */
  period?: string | undefined;
  /** The names of attributes of subjects, with commas between them, or `*` for all; undefined or empty for none. */
  attributes?: string | undefined;
  /** The number of lines: 10, 25, 50 or 100. */
  limit: number;
}

/** The first lines of a ranking that is followed. */
export class View {
  /** The text of the parameter `view` of a stream. */
  readonly key: string;
  readonly #board: string;
  readonly #parameters: [name: string, value: string][];
  /** @internal */
  readonly period: string | undefined;
  state: State = "loading";
  page: Page | undefined;
  /** What is wrong, in the state `error`: for developers. */
  message = "";
  /** The code of the API, if the service has refused the view. */
  code = "";
  /** @internal */
  readonly listeners = new Set<() => void>();
  /**
   * The number of times that the service has refused it since it was last read; 0 if it can be read.
   * @internal
   */
  refusals = 0;
  /** @internal */
  probe: ReturnType<typeof setTimeout> | undefined;

  /** @internal */
  constructor({ board, limit, window, by, period, attributes }: Wanted) {
    this.#board = board;
    this.period = period;
    // The key comes last, because it may have commas.
    const given = { limit: String(limit), window, period, attributes, by };
    this.#parameters = Object.entries(given).flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []));
    // Names of attributes have other signs between them there than in an address.
    const shown = ([name, value]: [string, string]) => `${name}=${name === "attributes" ? value.replaceAll(",", ";") : value}`;
    this.key = [board, ...this.#parameters.map(shown)].join();
  }

  /**
   * The path of the first page. Throws an error if an address cannot have the names in it.
   * @internal
   */
  get path(): string {
    const query = this.#parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return checked(`/v1/boards/${encodeURIComponent(this.#board)}/rankings?${query.join("&")}`);
  }

  /** @internal */
  update(state: State, page = this.page, message = "", code = ""): void {
    if (state === this.state && page === this.page && message === this.message && code === this.code) return;
    Object.assign(this, { state, page, message, code });
    for (const listener of [...this.listeners]) {
      try {
        listener();
      } catch (error) {
        // What a page does wrong is no failure of the stream. Node has no `reportError`.
        (globalThis.reportError ?? console.error)(error);
      }
    }
  }

  /**
   * Notes that the lines may be out of date.
   * @internal
   */
  lose(): void {
    if (this.page) this.update("reconnecting");
  }
}

/** The views of a service that are read with the same key, or without one. */
class Hub {
  readonly connection: Connection;
  readonly views = new Map<string, View>();
  /** The time before which no stream is tried, because polls work and streams did not. */
  streamsFrom = 0;
  readonly feeds: Feed[] = [];
  readonly #id: string;
  #arranging = false;

  private constructor(id: string, base: string, key: string) {
    this.#id = id;
    this.connection = {
      base,
      secret: key,
      // The browser keeps pages and sends their ETags. An If-None-Match of ours would need a preflight request.
      fetch: (input, init) => fetch(input, { cache: "no-cache", ...init }),
      timeout: POLL_TIMEOUT,
      retries: 0,
      parse: parseUnrounded,
    };
  }

  /** Returns the hub for a service and a key, which may be empty. */
  static of(base: string, key: string): Hub {
    // An address has no spaces.
    const id = `${base} ${key}`;
    const hub = hubs.get(id) ?? new Hub(id, base, key);
    hubs.set(id, hub);
    return hub;
  }

  /** Arranges the views soon. */
  plan(): void {
    if (this.#arranging) return;
    this.#arranging = true;
    setTimeout(() => {
      this.#arranging = false;
      this.arrange();
    }, COLLECT);
  }

  /** Gives each view that somebody listens to a feed, and changes as few feeds as possible. */
  arrange(): void {
    for (const [key, view] of this.views) {
      if (view.listeners.size > 0) continue;
      clearTimeout(view.probe);
      this.views.delete(key);
    }
    if (this.views.size === 0 && hubs.get(this.#id) === this) hubs.delete(this.#id);
    const waiting = new Set([...this.views.values()].filter((view) => view.refusals === 0));
    const plans = this.feeds.map((feed) => feed.views.filter((view) => waiting.delete(view)));
    for (const view of waiting) {
      let at = plans.findIndex((plan, at) => plan.length < MAX_VIEWS || at === MAX_STREAMS);
      if (at < 0) at = plans.length;
      // Streams are of current periods.
      if (view.period) at = MAX_STREAMS;
      while (plans.length <= at) plans.push([]);
      plans[at]?.push(view);
    }
    plans.forEach((plan, at) => (this.feeds[at] ??= new Feed(this, at < MAX_STREAMS)).follow(plan));
  }

  /** Ends all requests while the page is hidden, and begins again. */
  show(visible: boolean): void {
    if (visible) this.arrange();
    else for (const feed of this.feeds) feed.stop();
    for (const view of this.views.values()) {
      if (!visible) view.lose();
      if (view.refusals > 0) this.#readAgain(view, visible ? 0 : undefined);
    }
  }

  /** Reads the first page of a view. Returns whether it could be read: null if the service refuses to. */
  async read(view: View, signal?: AbortSignal): Promise<boolean | null> {
    try {
      const page = (await once(this.connection, "GET", view.path, { signal })) as Page;
      if (!Array.isArray(page?.items)) throw invalidResponse();
      view.refusals = 0;
      view.update("polling", view.page && JSON.stringify(view.page) === JSON.stringify(page) ? view.page : page);
      return true;
    } catch (caught) {
      const error = caught as RolltopError;
      if (signal?.aborted) return false;
      if (error.temporary || error.status >= 500) {
        view.lose();
        return false;
      }
      this.refuse(view, error);
      return null;
    }
  }

  /** Notes that a view cannot be read, and reads it again from time to time. */
  refuse(view: View, { detail, message, code }: Partial<RolltopError>): void {
    // It was abandoned while it was read.
    if (this.views.get(view.key) !== view) return;
    view.page = undefined;
    view.refusals += 1;
    view.update("error", undefined, `${detail ?? message} (at ${this.connection.base})`, code);
    for (const feed of this.feeds) feed.views = feed.views.filter((other) => other !== view);
    this.#readAgain(view, jitter(Math.min(MAX_REFUSED_AGAIN, REFUSED_AGAIN * 2 ** (view.refusals - 1))));
  }

  /** Reads a refused view after a time, or no longer. */
  #readAgain(view: View, delay: number | undefined): void {
    clearTimeout(view.probe);
    if (delay === undefined || !isVisible()) return;
    view.probe = setTimeout(async () => {
      const read = await this.read(view);
      if (this.views.get(view.key) !== view) return;
      if (read) this.plan();
      else if (read === false) this.#readAgain(view, jitter(REFUSED_AGAIN));
    }, delay);
  }
}

/** What has become of a stream. */
type Outcome =
  /** It ended or broke after events. */
  | "ended"
  /** It could not be opened. */
  | "failed"
  /** The response was no stream, or nothing came. */
  | "refused"
  /** The status was 503. */
  | "busy";

/** Keeps up to 20 views up to date with a stream, or any number with polls. */
class Feed {
  views: View[] = [];
  readonly #hub: Hub;
  readonly #streams: boolean;
  /** Whether one of the streams of the page is this feed's. */
  #hasStream = false;
  #running: AbortController | undefined;

  constructor(hub: Hub, streams: boolean) {
    this.#hub = hub;
    this.#streams = streams;
  }

  /** Takes one of the streams that a page may have to a service, whatever the keys. Returns whether one was left. */
  #takeStream(): boolean {
    const { base } = this.#hub.connection;
    const feeds = [...hubs.values()].filter((hub) => hub.connection.base === base).flatMap((hub) => hub.feeds);
    this.#hasStream ||= this.#streams && feeds.filter((feed) => feed.#hasStream).length < MAX_STREAMS;
    return this.#hasStream;
  }

  /** Follows these views from now on. */
  follow(views: View[]): void {
    const isSame = views.length === this.views.length && views.every((view) => this.views.includes(view));
    if (isSame && (this.#running || views.length === 0)) return;
    this.stop();
    this.views = views;
    if (views.length === 0 || !isVisible()) return;
    const running = (this.#running = new AbortController());
    void this.#run(running.signal).finally(() => {
      if (this.#running === running) this.stop();
    });
  }

  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#hasStream = false;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; this.views.length > 0 && !signal.aborted;) {
      const isPolled = !this.#takeStream() || performance.now() < this.#hub.streamsFrom;
      const began = performance.now();
      const outcome = isPolled ? "refused" : await this.#listen(signal);
      if (signal.aborted) return;
      failures = outcome === "ended" && performance.now() - began > STABLE ? 1 : failures + 1;
      if (!isPolled) for (const view of this.views) view.lose();
      if (outcome === "refused" || outcome === "busy" || failures >= MAX_FAILURES) {
        const read = await Promise.all(this.views.map((view) => this.#hub.read(view, signal)));
        if (signal.aborted) return;
        // A stream is refused if none of its views can be read. Those that never can be are abandoned.
        if (read.includes(null)) continue;
        if (read.includes(true)) {
          const again = outcome === "busy" ? BUSY_AGAIN : STREAM_AGAIN;
          if (!isPolled) this.#hub.streamsFrom = performance.now() + jitter(again);
          failures = 0;
          await wait(jitter(this.views.every((view) => view.page?.period?.final) ? POLL_FINAL : POLL), signal);
          continue;
        }
        this.#hub.streamsFrom = 0;
        for (const view of this.views) if (!view.page) view.update("error", undefined, this.#unreachable());
      }
      await wait(jitter(Math.min(MAX_DELAY, 500 * 2 ** failures)), signal);
    }
  }

  #unreachable(): string {
    const { base, secret } = this.#hub.connection;
    const own = globalThis.location?.origin;
    const isForeign = own !== undefined && new URL(base).origin !== own;
    const origins = secret ? "of the origins of the key" : "of its cors_origins, or is a key missing";
    const origin = isForeign ? `, and is ${own} one ${origins}` : "";
    return `no answer from ${base}: does the service run there${origin}?`;
  }

  /** Reads a stream to its end. */
  async #listen(signal: AbortSignal): Promise<Outcome> {
    const deadline = startDeadline(signal);
    let events = 0;
    let outcome: Outcome = "failed";
    try {
      deadline.set(FIRST_EVENT);
      const query = this.views.map((view) => `view=${encodeURIComponent(view.key)}`);
      const options = { accept: "text/event-stream", signal: deadline.signal };
      const path = `/v1/stream?${query.join("&")}`;
      const response = await open(this.#hub.connection, "GET", path, options, { cache: "no-store" });
      if (!/^text\/event-stream\b/.test(response.headers.get("content-type") ?? "")) return "refused";
      for await (const texts of blocks(response, "\n\n")) {
        for (const text of texts) events += this.#take(text);
        if (events > 0) deadline.set(SILENCE);
      }
    } catch (caught) {
      const { status, code } = deadline.reason(caught) as RolltopError;
      outcome = status === 503 ? "busy" : code === "network" ? "failed" : "refused";
    } finally {
      deadline.end();
    }
    return events > 0 ? "ended" : outcome;
  }

  /** Applies a block of a stream. Returns the number of events in it. */
  #take(block: string): number {
    const data = field(block, "data: ");
    if (data === undefined) return 0;
    const { view: key, page, change, problem } = parseUnrounded(data) as Partial<Record<"view", string>> &
      Partial<{ page: Page; change: Change<Page>; problem: Problem }>;
    const view = this.#hub.views.get(key ?? "");
    if (!view) return 1;
    if (page) view.update("live", page);
    else if (change && view.page) view.update("live", changed(view.page, change));
    // After a problem of the store the stream goes on. Others end the view.
    else if (problem && problem.status >= 500) view.lose();
    else if (problem) this.#hub.refuse(view, problem);
    return 1;
  }
}

const hubs = new Map<string, Hub>();

/**
 * Follows a ranking of the service at `base`, until `stop` is called. The listener is called when the view changes. All
 * requests have the key, which must be a text of visible ASCII characters; none if it is empty.
 */
export function follow(
  base: string,
  wanted: Wanted,
  listener: () => void,
  key = "",
): { view: View; stop: () => void } {
  const hub = Hub.of(base, key);
  const fresh = new View(wanted);
  const view = hub.views.get(fresh.key) ?? fresh;
  hub.views.set(view.key, view);
  view.listeners.add(listener);
  hub.plan();
  const stop = (): void => {
    view.listeners.delete(listener);
    hub.plan();
  };
  return { view, stop };
}

const isVisible = (): boolean => globalThis.document?.visibilityState !== "hidden";
globalThis.document?.addEventListener("visibilitychange", () => {
  for (const hub of [...hubs.values()]) hub.show(isVisible());
});

/** Returns a random time around this one, so that many pages do not ask at the same instant. */
const jitter = (time: number): number => time * (0.75 + Math.random() / 2);

const wakes = new EventTarget();

/** Tries again at once what waits for its next try. */
export function hurry(): void {
  wakes.dispatchEvent(new Event("wake"));
}
globalThis.addEventListener?.("online", hurry);

/** Waits for a time, or until the signal is aborted or the network is back. */
async function wait(time: number, signal: AbortSignal): Promise<void> {
  const own = startDeadline(signal);
  wakes.addEventListener("wake", () => own.end(), { signal: own.signal });
  await sleep(time, own.signal);
  own.end();
}
