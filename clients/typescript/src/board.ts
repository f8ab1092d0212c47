import type { Batcher } from "./batch.ts";
import { exported } from "./export.ts";
import type { ExportOptions } from "./export.ts";
import { checked, keyText, request, withParameters } from "./http.ts";
import type { Connection, Parameters, RequestOptions } from "./http.ts";
import { amountOf, itemText, keyOf, textOf, valueOf } from "./item.ts";
import type { Amount, ItemOptions } from "./item.ts";
import { attributesText, units } from "./json.ts";
import { live } from "./live.ts";
import type { LiveOptions } from "./live.ts";
import type {
  Attributes,
  BoardStatus,
  Decimals,
  Definition,
  DefinedBoard,
  DefinitionPreview,
  Key,
  Line,
  LiveRanking,
  LookupResult,
  Neighbors,
  PageOptions,
  PeriodOptions,
  Ranking,
  Rankings,
  Read,
  ReadOptions,
  Removal,
  ShownOptions,
  Standing,
  Time,
  WindowValue,
} from "./types.ts";

export interface BoardOptions {
  /**
   * Whether equal subjects that wait at the same time are sent as one increment with the sum of their amounts. It does
   * not apply to items with an `id`, `at`, `value`, `tie_break`, `attributes` or `retract` of their own.
   */
  coalesce?: boolean | undefined;
}

export interface AddOptions extends ItemOptions {
  /** The key of the ranking, on a board whose metric has `BY`. */
  by?: Key | undefined;
  /** The number or value to count in place of an amount, on boards of AVG, MIN, MAX, LAST and COUNT_DISTINCT. */
  value?: Amount | boolean | undefined;
  /** The second key, which a board with `tie_break` needs. */
  tie_break?: number | undefined;
  /**
   * Attributes of the subject, which are merged with those that it has after the item was counted: null removes one.
   * Those that are not set are reported to `onAttributesRejected`, and the item is counted all the same.
   */
  attributes?: Attributes | undefined;
}

/** A list of subjects, or a look-up without ranks, may have up to 1,000 of them; with ranks up to 200. */
export interface LookupOptions extends PeriodOptions, ShownOptions {
  /** Whether ranks and percentiles are wanted: true. */
  ranks?: boolean | undefined;
}

export interface CountOptions extends ReadOptions {
  /** The length of the window that ends now, such as `6h`. */
  last?: string | undefined;
  /** The beginning of the window, instead of `last`. */
  from?: Time | undefined;
  /** The end of the window, to read a past one. */
  as_of?: Time | undefined;
  edge?: "slots" | "weighted" | undefined;
}

/** Returns the path of a subject below its board. */
export const subjectPath = (subject: string): string => `/subjects/${encodeURIComponent(subject)}`;

/** A board of a service. It is made by `service.board(name)` and asks the service nothing by itself. */
export class Board<D extends Decimals = "number"> {
  readonly name: string;
  readonly #connection: Connection;
  readonly #batcher: () => Batcher;
  readonly #coalesce: boolean;
  readonly #path: string;

  /** @internal */
  constructor(connection: Connection, name: string, batcher: () => Batcher, { coalesce = false }: BoardOptions) {
    this.#connection = connection;
    this.name = name;
    this.#batcher = batcher;
    this.#coalesce = coalesce;
    this.#path = checked(`/v1/boards/${encodeURIComponent(name)}`);
  }

  /**
   * Adds 1 or an amount to those that are sent in the background. Resolves to true when there is room for further
   * items, or to false if the item was dropped; it says nothing about the sending: see `service.flush()`. Throws a
   * TypeError for what cannot be sent, such as an amount that is no number.
   */
  add(subject: string, amount?: Amount, options: AddOptions = {}): Promise<boolean> {
    const { by, at, id, value, tie_break, attributes, retract } = options;
    if (amount !== undefined && value !== undefined) {
      throw new TypeError("an increment has an amount or a value, not both");
    }
    const number = amountOf(amount);
    const item = { subject: textOf("subject", subject), by: keyOf(by) };
    const isAlike = (id ?? at ?? value ?? tie_break ?? attributes ?? retract) === undefined;
    const sum = this.#coalesce && isAlike ? units(number ?? 1) : undefined;
    if (sum !== undefined) return this.#batcher().add(JSON.stringify(item).slice(0, -1), sum);
    const text = itemText({ ...item, amount: number, value: valueOf(value), tie_break }, options);
    const end = attributes === undefined ? "}" : `,"attributes":${attributesText(attributes)}}`;
    return this.#batcher().add(text.slice(0, -1) + end);
  }

  /** Returns a page of the ranking. */
  top(options: PageOptions = {}): Promise<Ranking<D>> {
    return this.send("GET", "/rankings", options);
  }

  /** Returns the pages of the ranking, from the first one or the given one on. */
  async *pages(options: PageOptions = {}): AsyncGenerator<Ranking<D>, void> {
    for (let from: PageOptions = options; ;) {
      const page = (await this.top(from)) as Ranking<D> & { next: string | null };
      yield page;
      if (page.next === null) return;
      from = { ...options, offset: undefined, cursor: page.next };
    }
  }

  /** Returns the lines of all pages. `limit` is the number of lines of a page. */
  async *lines(options: PageOptions = {}): AsyncGenerator<Line<D>, void> {
    for await (const page of this.pages({ limit: 1000, ...options })) yield* page.items as Line<D>[];
  }

  /** Returns all lines of the ranking, for long ones: read as a stream, in pieces that survive broken connections. */
  export(options: ExportOptions = {}): AsyncGenerator<Line<D>, void> {
    return exported(this.#connection, `${this.#path}/rankings`, options) as AsyncGenerator<Line<D>, void>;
  }

  /** Returns the ranking, and again after each change, until the signal is aborted. */
  live(options: LiveOptions = {}): AsyncGenerator<LiveRanking<D>, void> {
    return live(this.#connection, `${this.#path}/stream`, options) as AsyncGenerator<LiveRanking<D>, void>;
  }

  /** Returns the ranks and scores of these subjects, all of one instant. */
  lookup(subjects: readonly string[], { ranks, ...options }: LookupOptions = {}): Promise<LookupResult<D>> {
    return this.send("POST", "/rankings/lookup", options, { subjects, ranks });
  }

  /** Returns the score and rank of a subject, and what it has in each slot. */
  subject(name: string, options: PeriodOptions & ShownOptions = {}): Promise<Standing<D>> {
    return this.send("GET", subjectPath(name), options);
  }

  /** Returns the lines around a subject, up to `radius` on each side. */
  neighbors(
    name: string,
    options: PeriodOptions & ShownOptions & { radius?: number | undefined } = {},
  ): Promise<Neighbors<D>> {
    return this.send("GET", `${subjectPath(name)}/neighbors`, options);
  }

  /** Returns the value of a subject over a window that is shorter than the board's, or a past one. */
  count(subject: string, options: CountOptions = {}): Promise<WindowValue<D>> {
    return this.send("GET", `${subjectPath(subject)}/window`, options);
  }

  /** Returns the keys of the rankings of a board whose metric has `BY`, ordered by bytes. */
  async *keys(options: { prefix?: string; window?: string; signal?: AbortSignal } = {}): AsyncGenerator<string, void> {
    for (let cursor: string | null = ""; cursor !== null;) {
      const page: { items: { by: string }[]; next: string | null } = await this.send("GET", "/keys", {
        limit: 1000,
        cursor: cursor || undefined,
        ...options,
      });
      for (const { by } of page.items) yield by;
      cursor = page.next;
    }
  }

  /** Returns the first lines of up to 100 rankings. */
  best(
    keys: readonly Key[],
    { limit, ...options }: Omit<ReadOptions, "by"> & ShownOptions & { limit?: number | undefined } = {},
  ): Promise<Rankings<D>> {
    return this.send("POST", "/rankings/by", options, { keys: keys.map(keyText), limit });
  }

  /** Defines the board. With `dryRun` it returns what the definition would do, and changes nothing. */
  define(definition: Definition, options: { dryRun: true; signal?: AbortSignal }): Promise<Read<DefinitionPreview, D>>;
  define(definition: Definition, options?: { dryRun?: false; signal?: AbortSignal }): Promise<Read<DefinedBoard, D>>;
  define(definition: Definition, { dryRun, signal }: { dryRun?: boolean; signal?: AbortSignal } = {}): Promise<never> {
    return this.send("PUT", "", { dry_run: dryRun, signal }, definition);
  }

  /** Returns the definition of the board and what it holds. */
  status(options: Pick<ReadOptions, "of" | "signal"> = {}): Promise<Read<BoardStatus, D>> {
    return this.send("GET", "", options);
  }

  /** Removes a subject from the ranking and from every slot, or with `allKeys` from the rankings of all keys. */
  remove(
    subject: string,
    { allKeys, ...options }: { by?: Key | undefined; allKeys?: boolean; signal?: AbortSignal } = {},
  ): Promise<Removal<D>> {
    return this.send("DELETE", subjectPath(subject), { ...options, all_keys: allKeys });
  }

  /** Makes a request about the board: for entries of this package. A body that is a text is JSON already. @internal */
  send<T>(method: string, path: string, options: object, body?: object | string): Promise<T> {
    const { signal, ...parameters } = options as Parameters & Pick<RequestOptions, "signal">;
    return request(this.#connection, method, withParameters(this.#path + path, parameters), {
      signal,
      body: typeof body === "string" ? body : JSON.stringify(body),
    }) as Promise<T>;
  }
}
