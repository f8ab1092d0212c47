// Sends items in the background, each of them until it is acknowledged.
//
// A batch is written once and sent until the service has answered it, with the same ids: whether an attempt that got
// no answer was counted does not matter, because the service counts an id once. One request is in progress at a time,
// and items leave the queue in their order.

import { invalidResponse, RolltopError } from "./error.ts";
import { once, open, pause, sleep } from "./http.ts";
import type { Connection } from "./http.ts";
import type { Event, Increment } from "./types.ts";

/** An item that was not counted. */
export type Item = { board: string; increment: Increment } | { board?: string; event: Event };

export interface BatchOptions {
  /** The number of items that may wait: 10,000. */
  maxItems?: number | undefined;
  /** The number of items that are sent at once: 500, at most 1,000. */
  batchItems?: number | undefined;
  /** The milliseconds that items wait for others: 1,000. */
  batchMillis?: number | undefined;
  /** What `add` does if `maxItems` wait: return a promise that resolves when there is room, or drop the item. */
  full?: "wait" | "drop" | undefined;
  /** The milliseconds after which a batch that cannot be sent is reported to `onError`; by default it never is. */
  giveUpAfter?: number | undefined;
  /**
   * The milliseconds after which an item that may have been counted, by an attempt whose answer was lost, is not sent
   * again but reported to `onError`: 1,200,000, which is 20 minutes. It must be less than the board remembers ids
   * (`ids.horizon` of its status), or the item may count twice.
   */
  unknownFor?: number | undefined;
  /**
   * Called with items that were refused as a whole, given up, or left at the end. Those given up may have counted.
   * Without it they are logged, and `flush` and `close` reject with the first error.
   */
  onError?: ((error: RolltopError, items: Item[]) => void) | undefined;
  /** Called for an item that the service did not count, with the code that says why. */
  onRejected?: ((item: Item, code: string, detail: string) => void) | undefined;
  /** Called for an item that was counted, and whose attributes were not set, with the code that says why. */
  onAttributesRejected?: ((item: Item, code: string, detail: string) => void) | undefined;
}

/** The options with their defaults. */
export type BatchSettings = Required<{ [K in keyof BatchOptions]: Exclude<BatchOptions[K], undefined> }>;

export const DEFAULTS: Omit<BatchSettings, "onError"> = {
  maxItems: 10_000,
  batchItems: 500,
  batchMillis: 1000,
  full: "wait",
  giveUpAfter: Infinity,
  unknownFor: 1_200_000,
  onRejected: (...what) => console.error("an item is not counted:", ...what),
  onAttributesRejected: (...what) => console.error("attributes are not set:", ...what),
};

/** What has become of the items of a client. */
export interface Counts {
  /** Counted. */
  accepted: number;
  /** Counted by an attempt before, whose answer did not arrive. */
  duplicates: number;
  /** Not counted by the service; an event once for each board. */
  rejected: number;
  /** Reported to `onError`. */
  failed: number;
  /** Events of types that no board counts. The first of each type is logged. */
  unknown: number;
  /** Dropped because the queue was full. */
  dropped: number;
}

/** What the batchers of a client share. */
export interface Sending extends Connection, BatchSettings {
  counts: Counts;
}

interface Entry {
  /** The item as JSON. While `sum` is there, its beginning. */
  text: string;
  /** What equal items add up to, in 10^-9. It is removed when the entry is sent. */
  sum?: bigint;
  /** The time of the first attempt that may have been counted without an answer. */
  since?: number;
  /** Whether it was sent when the page was hidden. */
  left?: boolean;
}

interface Caused {
  cause?: { code?: string };
}

interface Rejection {
  code: string;
  detail: string;
  index?: number;
  board?: string;
}

interface Receipt {
  accepted: number;
  duplicates: number;
  rejected: Rejection[];
  attributes_rejected?: Rejection[];
  rejected_counts?: Record<string, number>;
  unknown_types?: Record<string, number>;
}

/** The characters of a batch. The service takes 8 MiB by default, and a character has up to three bytes. */
const BATCH_LENGTH = 1 << 20;
/** The most types of events of which it is said that no board counts them. */
const MOST_TYPES = 100;
/** The code of a rejection that may pass. */
const MEMORY_FULL = "memory_full";
/** The longest pause that the service may ask for, in seconds. */
const LONGEST_ASKED = 300;

/** Returns an id that no other item has. `randomUUID` does not exist on pages that were loaded by plain http. */
export const newId = (): string => crypto.randomUUID?.() ?? crypto.getRandomValues(new Uint32Array(4)).join("-");

export class Batcher {
  readonly #queue: Entry[] = [];
  /** The batch that is being sent; empty if none is. */
  #sending: Entry[] = [];
  /** The entries that equal items are added to, by their beginning. */
  readonly #sums = new Map<string, Entry>();
  #batchItems: number;
  readonly #mostItems: number;
  #added = 0;
  #done = 0;
  /** The number of items that are sent without waiting for others. */
  #flushTo = 0;
  /** What waits for a condition: flushes, and adds for room. */
  #waiting: [until: () => boolean, resolve: () => void][] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Types of events that no board counts, of which that was said. */
  readonly #unknown = new Set<string>();
  readonly #stop = new AbortController();
  readonly #connection: Sending;
  readonly #board: string | undefined;

  /** Sends increments of a board, or events if none is given. */
  constructor(connection: Sending, board: string | undefined) {
    this.#connection = connection;
    this.#board = board;
    // With a shorter queue, a full one would wait for more items.
    this.#batchItems = this.#mostItems = Math.min(connection.batchItems, connection.maxItems);
  }

  /** Adds an item with an id, or, with `sum`, the beginning of one that equal items are added to. */
  async add(text: string, sum?: bigint): Promise<boolean> {
    // Entries that nothing is added to are not among these, and their texts are longer.
    const equal = this.#sums.get(text);
    if (equal) {
      equal.sum = (equal.sum as bigint) + (sum as bigint);
      return true;
    }
    const isFull = this.#queue.length + this.#sending.length >= this.#connection.maxItems;
    if (isFull && this.#connection.full === "drop") {
      this.#connection.counts.dropped++;
      return false;
    }
    const entry: Entry = { text };
    if (sum !== undefined) {
      entry.sum = sum;
      this.#sums.set(text, entry);
    }
    this.#queue.push(entry);
    this.#added++;
    this.#plan();
    if (isFull) await this.#wait(() => this.#queue.length < this.#connection.maxItems);
    return true;
  }

  /** Sends everything that was added before, and resolves when the service has answered all of it. */
  flush(): Promise<void> {
    const to = (this.#flushTo = this.#added);
    this.#plan();
    return this.#wait(() => this.#done >= to);
  }

  #wait(until: () => boolean): Promise<void> {
    return new Promise((resolve) => (until() ? resolve() : this.#waiting.push([until, resolve])));
  }

  /** Reports what is still there as not sent, and refuses further items. */
  end(): void {
    this.#stop.abort(new RolltopError(0, "closed", "the client was closed"));
    clearTimeout(this.#timer);
    this.#fail(this.#queue.splice(0), this.#stop.signal.reason);
  }

  /**
   * Sends up to this many bytes of what is queued so that the request outlives the page, and returns how many are left.
   * The entries stay where they are, and are sent again with the same ids if the page goes on.
   */
  leave(bytes: number): number {
    const texts: string[] = [];
    const start = bytes;
    // What is written around the items.
    bytes -= 24;
    for (const entry of [...this.#sending, ...this.#queue]) {
      if (entry.left) continue;
      const size = new Blob([this.#text(entry)]).size + 1;
      if (size > bytes) break;
      bytes -= size;
      entry.left = true;
      entry.since ??= Date.now();
      texts.push(entry.text);
    }
    if (texts.length === 0) return start;
    open(this.#connection, "POST", this.#path(), { body: this.#body(texts) }, { keepalive: true }).catch(() => {});
    return bytes;
  }

  #path(): string {
    return this.#board ? `/v1/boards/${encodeURIComponent(this.#board)}/increments` : "/v1/events";
  }

  #body(texts: string[]): string {
    return `{"${this.#board ? "increments" : "events"}":[${texts.join()}]}`;
  }

  /** Returns an entry as it is sent from now on: nothing is added to it any more. */
  #text(entry: Entry): string {
    if (entry.sum !== undefined) {
      this.#sums.delete(entry.text);
      entry.text += `,"amount":${entry.sum}e-9,"id":"${newId()}"}`;
      delete entry.sum;
    }
    return entry.text;
  }

  /** Sends what is due, or waits for more. */
  #plan(): void {
    if (this.#sending.length > 0 || this.#queue.length === 0) return;
    if (this.#queue.length >= this.#batchItems || this.#flushTo > this.#done) void this.#run();
    else this.#timer ??= setTimeout(() => void this.#run(), this.#connection.batchMillis);
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let length = 0;
    let count = 0;
    for (const entry of this.#queue.slice(0, this.#batchItems)) {
      length += this.#text(entry).length;
      // What may have counted is on its own: it may be too late to send it again.
      if (count > 0 && (length > BATCH_LENGTH || !entry.since !== !this.#queue[0]?.since)) break;
      count++;
    }
    this.#sending = this.#queue.splice(0, count);
    await this.#send(this.#sending);
    this.#sending = [];
    this.#waiting = this.#waiting.filter(([until, resolve]) => !until() || resolve());
    this.#plan();
  }

  /** Sends a batch until it is answered, or has to be divided. */
  async #send(entries: Entry[]): Promise<void> {
    const began = Date.now();
    const { signal } = this.#stop;
    const { giveUpAfter, unknownFor } = this.#connection;
    for (let attempt = 0; ; attempt++) {
      const now = Date.now();
      // Not after the last attempt, but before the next one: in between the machine may have slept.
      if (entries.some((entry) => now - (entry.since ?? now) > unknownFor)) {
        return this.#fail(entries, new RolltopError(0, "unknown", "no answer in time"));
      }
      const body = this.#body(entries.map((entry) => entry.text));
      try {
        const receipt = (await once(this.#connection, "POST", this.#path(), { body, signal })) as Receipt;
        if (typeof receipt?.accepted !== "number") throw invalidResponse();
        // A request of this size is not too large.
        this.#batchItems = Math.min(this.#mostItems, 2 * this.#batchItems);
        entries = this.#settle(entries, receipt);
        if (entries.length === 0) return;
        throw new RolltopError(503, MEMORY_FULL, "the service has no memory");
      } catch (caught) {
        const error = caught as RolltopError;
        if (error.status === 413 && entries.length > 1) {
          this.#batchItems = Math.ceil(entries.length / 2);
          this.#queue.unshift(...entries);
          return;
        }
        if (mayHaveCounted(error)) for (const entry of entries) entry.since ??= now;
        if (signal.aborted || !mayPass(error) || Date.now() - began >= giveUpAfter) return this.#fail(entries, error);
        await sleep(pause(attempt, Math.min(error.retryAfter ?? 0, LONGEST_ASKED)), signal);
      }
    }
  }

  /** Returns those that have to be sent again. */
  #settle(entries: Entry[], receipt: Receipt): Entry[] {
    const { accepted, duplicates, rejected, attributes_rejected, rejected_counts, unknown_types } = receipt;
    const { counts } = this.#connection;
    const again = new Set<Entry>();
    counts.accepted += accepted;
    counts.duplicates += duplicates;
    for (const [code, count] of Object.entries(rejected_counts ?? {})) {
      if (code !== MEMORY_FULL) counts.rejected += count;
    }
    for (const [type, count] of Object.entries(unknown_types ?? {})) {
      counts.unknown += count;
      if (this.#unknown.has(type) || this.#unknown.size === MOST_TYPES) continue;
      this.#unknown.add(type);
      console.error(`no board counts events of the type ${type}`);
    }
    for (const { index, code, detail, board } of rejected) {
      const entry = entries[index ?? 0];
      if (entry && code === MEMORY_FULL) {
        delete entry.since;
        again.add(entry);
      } else if (entry) report(() => this.#connection.onRejected(this.#item(entry, board), code, detail));
    }
    for (const { index, code, detail } of attributes_rejected ?? []) {
      const entry = entries[index ?? 0];
      if (entry) report(() => this.#connection.onAttributesRejected(this.#item(entry), code, detail));
    }
    this.#done += entries.length - again.size;
    return [...again];
  }

  #fail(entries: Entry[], error: RolltopError): void {
    if (entries.length === 0) return;
    this.#done += entries.length;
    this.#connection.counts.failed += entries.length;
    const items = entries.map((entry) => this.#item(entry));
    report(() => this.#connection.onError(error, items));
  }

  /** Returns an entry as the caller gave it. */
  #item(entry: Entry, board = this.#board): Item {
    const item: unknown = JSON.parse(this.#text(entry));
    if (this.#board) return { board: this.#board, increment: item as Increment };
    return { ...(board && { board }), event: item as Event };
  }
}

/** Returns whether the same items may be counted later. */
const mayPass = ({ temporary, status, code }: RolltopError): boolean =>
  temporary || status >= 500 || /^(incomplete_body|connection_ended|board_changed)$/.test(code);

/** Returns whether items that got this error may have been counted all the same. */
function mayHaveCounted({ status, code, cause }: RolltopError): boolean {
  // Only Node tells that there was no connection.
  if (status === 0) return !/REFUSED|NOTFOUND|EAI/.test((cause as Caused)?.cause?.code as string);
  // A proxy may answer 503, without a problem, although the service has the request.
  return status === 503 ? /^(store_timeout|http)$/.test(code) : status >= 500 || status === 200 || status === 408;
}

/** Calls a function of the caller. What it does wrong must not end the sending. */
function report(call: () => void): void {
  try {
    call();
  } catch (error) {
    console.error(error);
  }
}
