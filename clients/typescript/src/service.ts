import { Batcher, DEFAULTS, newId } from "./batch.ts";
import type { BatchOptions, Counts, Sending } from "./batch.ts";
import { Board } from "./board.ts";
import type { BoardOptions } from "./board.ts";
import type { RolltopError } from "./error.ts";
import { request } from "./http.ts";
import { fieldsOf, itemText, textOf } from "./item.ts";
import type { ItemOptions } from "./item.ts";
import { knowsSources, parseExact } from "./json.ts";
import type { Answers, Decimals, DefinedBoard, Evaluations, EventsReceipt, Query, Read, Time } from "./types.ts";

export interface Options<D extends Decimals = "number"> extends BatchOptions {
  /** The address of the service, such as `https://ranks.example`, perhaps with a path before `/v1`. */
  url: string | URL;
  /** A key of the service: `rt_…`. Keys that may do more than read do not belong into pages. */
  key?: string | undefined;
  /** A signed token, or a function that returns the current one. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** What sends requests; by default the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** The milliseconds in which an answer must arrive: 10,000. */
  timeout?: number | undefined;
  /** How many times a read is sent again after what is temporary: 3. */
  retries?: number | undefined;
  /** How amounts and scores are returned: as numbers, or with "string" exactly, where the engine can. */
  decimals?: D | undefined;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  timeout?: number | undefined;
  /** How many times it is sent again; by default that of the client for GET, and 0 for others. */
  retries?: number | undefined;
}

export interface EvaluateOptions {
  /** The type of the event. Each rule counts the event itself then. */
  type?: string | undefined;
  /** Whether the event is recorded by the same call. */
  record?: boolean | undefined;
  /** The id of the recorded event; by default a random one. */
  id?: string | undefined;
  at?: Time | undefined;
  boards?: readonly string[] | undefined;
  signal?: AbortSignal | undefined;
}

/** A client of a service. It is made by `rolltop(…)`. */
export class Service<D extends Decimals = "number"> {
  /** What has become of the items that were added. */
  readonly counts: Readonly<Counts> = { accepted: 0, duplicates: 0, rejected: 0, failed: 0, unknown: 0, dropped: 0 };
  readonly #connection: Sending;
  readonly #batchers = new Map<string | undefined, Batcher>();
  /** Ends the listening to the page. */
  readonly #gone = new AbortController();
  #isClosed = false;
  /** The first error that nobody was told. */
  #failure: RolltopError | undefined;

  /** @internal */
  constructor({ url, key, token, decimals, ...options }: Options<D>) {
    const exact = decimals === "string";
    if (exact && !knowsSources()) {
      throw new Error('decimals: "string" needs a newer engine');
    }
    const base = String(url).replace(/\/+$/, "");
    if (!/^https?:\/\/./.test(base)) throw new TypeError(`no URL: ${base}`);
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    this.#connection = {
      timeout: 10_000,
      retries: 3,
      fetch: (input, init) => fetch(input, init),
      ...DEFAULTS,
      onError: (error, items) => {
        console.error(`${items.length} items were not sent:`, error);
        this.#failure ??= error;
      },
      ...Object.fromEntries(given),
      base,
      secret: token ?? key,
      parse: exact ? parseExact : JSON.parse,
      counts: this.counts,
    };
    // A receipt lists up to 1,000 rejected items. With more in a batch, some would not be reported.
    const { batchItems, maxItems } = this.#connection;
    if (!(batchItems >= 1 && batchItems <= 1000)) throw new RangeError("batchItems is not 1 to 1000");
    if (!(maxItems >= 1)) throw new RangeError("maxItems is not 1 or more");
    const { signal } = this.#gone;
    globalThis.addEventListener?.("pagehide", this.#leave, { signal });
    globalThis.document?.addEventListener("visibilitychange", this.#leave, { signal });
  }

  /** Returns a board, which need not exist yet. */
  board(name: string, options: BoardOptions = {}): Board<D> {
    return new Board<D>(this.#connection, name, () => this.#batcher(name), options);
  }

  /** Adds an event to those that are sent in the background. Resolves as `board.add` does. */
  event(
    type: string,
    fields: Record<string, unknown>,
    options: ItemOptions = {},
  ): Promise<boolean> {
    return this.#batcher(undefined).add(itemText({ type: textOf("type", type), fields: fieldsOf(fields) }, options));
  }

  /**
   * Sends what was added before, and resolves when the service has answered all of it, or it was reported to `onError`.
   * Without an `onError` it rejects with the first error of what was not sent. While the service cannot be reached it
   * waits.
   */
  async flush(): Promise<void> {
    await Promise.all([...this.#batchers.values()].map((batcher) => batcher.flush()));
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure) throw failure;
  }

  /**
   * Sends what was added before and ends the client. What is left after `timeout` milliseconds goes to `onError`; without
   * one it rejects as `flush` does.
   */
  async close({ timeout }: { timeout?: number | undefined } = {}): Promise<void> {
    this.#isClosed = true;
    const timer = timeout === undefined ? undefined : setTimeout(this.#end, timeout);
    try {
      await this.flush();
    } finally {
      clearTimeout(timer);
      this.#end();
      this.#gone.abort();
    }
  }

  /** Returns all boards. */
  boards(options: { signal?: AbortSignal } = {}): Promise<{
    items: Read<DefinedBoard, D>[];
    next: string | null;
  }> {
    return this.call("GET", "/v1/boards", undefined, options);
  }

  /** Answers up to 1,000 questions about subjects and metrics in one request. */
  query(queries: readonly Query[], { signal }: { signal?: AbortSignal } = {}): Promise<Answers<D>> {
    return this.call("POST", "/v1/query", { queries }, { signal, retries: this.#connection.retries });
  }

  /** Evaluates a rule, or several, for an event with these fields. */
  evaluate(
    rule: string | readonly string[],
    fields: Record<string, unknown>,
    { signal, ...options }: EvaluateOptions = {},
  ): Promise<Evaluations<D>> {
    // With an id it does no harm to send it again.
    const id = options.record ? (options.id ?? newId()) : undefined;
    const body = { [typeof rule === "string" ? "rule" : "rules"]: rule, fields, ...options, id };
    return this.call("POST", "/v1/evaluate", body, { signal, retries: this.#connection.retries });
  }

  /** Sends the event of a token, such as a like. A token that counts once, or that can be taken back, does no harm again. */
  like(token: string, options: CallOptions = {}): Promise<EventsReceipt<D>> {
    return this.#press(token, {}, options);
  }

  /** Takes back the event of a token that allows it (`"retract": true`), whether it was sent with this token or another one. */
  unlike(token: string, options: CallOptions = {}): Promise<EventsReceipt<D>> {
    return this.#press(token, { retract: true }, options);
  }

  #press(token: string, body: object, options: CallOptions): Promise<never> {
    const connection = { ...this.#connection, secret: token };
    return request(connection, "POST", "/v1/events", { ...options, body: JSON.stringify(body) }) as Promise<never>;
  }

  /** Sends any other request, with a body that is written as JSON, and returns the JSON of the answer. */
  call<T = unknown>(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<T> {
    return request(this.#connection, method, path, {
      ...options,
      retries: options.retries ?? (method === "GET" ? undefined : 0),
      body: JSON.stringify(body) as string | undefined,
    }) as Promise<T>;
  }

  #batcher(board: string | undefined): Batcher {
    if (this.#isClosed) throw new Error("the client was closed");
    let batcher = this.#batchers.get(board);
    if (!batcher) this.#batchers.set(board, (batcher = new Batcher(this.#connection, board)));
    return batcher;
  }

  readonly #end = (): void => {
    for (const batcher of this.#batchers.values()) batcher.end();
  };

  /** Sends what is queued so that it outlives the page. Browsers take 64 KiB of all such requests together. */
  readonly #leave = ({ type }: { type: string }): void => {
    // Not every browser says that a page is hidden before it says that the page is left.
    if (type !== "pagehide" && document.visibilityState !== "hidden") return;
    let bytes = 65_536;
    for (const batcher of this.#batchers.values()) bytes = batcher.leave(bytes);
  };
}

/** Returns a client of the service at `url`. */
export const rolltop = <D extends Decimals = "number">(options: Options<D>): Service<D> => new Service<D>(options);
