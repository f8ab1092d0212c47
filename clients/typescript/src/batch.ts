// Sends items in the background, each of them until it is acknowledged.
//
// A batch is written once and sent until the service has answered it, with the same ids: whether an attempt that got no
// answer was counted does not matter, because the service counts an id once. So one request is in progress at a time, and
// items leave the queue in their order.

import { RolltopError } from "./error.ts";
import { once, open, pause, sleep } from "./http.ts";
import type { Connection } from "./http.ts";
import { decimal } from "./json.ts";
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
  /** Called with items that are not counted, or of which nobody knows: refused as a whole, given up, or left at the end. */
  onError?: ((error: RolltopError, items: Item[]) => void) | undefined;
  /** Called for an item that the service did not count, with the code that says why. */
  onRejected?: ((item: Item, code: string, detail: string) => void) | undefined;
}

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
  /** Dropped because the queue was full. */
  dropped: number;
}

interface Entry {
  /** The item as JSON. While `sum` is there, its beginning. */
  text: string;
  /** What equal items add up to, in 10^-9. It is removed when the entry is sent. */
  sum?: bigint;
  /** Whether it was sent when the page was hidden. */
  left?: boolean;
}

interface Receipt {
  accepted: number;
  duplicates: number;
  rejected: { code: string; detail: string; index?: number; board?: string }[];
  rejected_counts?: Record<string, number>;
}

/** The characters of a batch. The service takes 8 MiB by default, and a character has up to three bytes. */
const BATCH_LENGTH = 1 << 20;

/** Returns an id that no other item has. `randomUUID` does not exist on pages that were loaded by plain http. */
export const newId = (): string =>
  crypto.randomUUID?.() ??
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export class Batcher {
  readonly #queue: Entry[] = [];
  /** The batch that is being sent. */
  #sending: Entry[] = [];
  /** The entries that equal items are added to, by their beginning. */
  readonly #sums = new Map<string, Entry>();
  #batchItems: number;
  readonly #maxItems: number;
  #added = 0;
  #done = 0;
  /** The number of items that are sent without waiting for others. */
  #flushTo = 0;
  readonly #flushes: { to: number; resolve: () => void }[] = [];
  #room: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = false;
  readonly #stop = new AbortController();
  readonly #connection: Connection;
  readonly #board: string | undefined;
  readonly #path: string;
  readonly #options: BatchOptions;
  readonly #counts: Counts;

  /** Sends increments of a board, or events if none is given. */
  constructor(connection: Connection, board: string | undefined, options: BatchOptions, counts: Counts) {
    this.#connection = connection;
    this.#board = board;
    this.#path = board === undefined ? "/v1/events" : `/v1/boards/${encodeURIComponent(board)}/increments`;
    this.#options = options;
    this.#counts = counts;
    this.#maxItems = options.maxItems ?? 10_000;
    this.#batchItems = options.batchItems ?? 500;
    // A receipt lists up to 1,000 rejected items. With more in a batch, some would not be reported.
    if (!(this.#batchItems >= 1 && this.#batchItems <= 1000)) throw new RangeError("batchItems must be from 1 to 1000");
    if (!(this.#maxItems >= 1)) throw new RangeError("maxItems must be at least 1");
  }

  /** Adds an item with an id, or, with `sum`, the beginning of one that equal items are added to. */
  async add(text: string, sum?: bigint): Promise<boolean> {
    if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
    const equal = sum === undefined ? undefined : this.#sums.get(text);
    if (equal && sum !== undefined) {
      equal.sum = (equal.sum ?? 0n) + sum;
      return true;
    }
    const isFull = this.#queue.length + this.#sending.length >= this.#maxItems;
    if (isFull && this.#options.full === "drop") {
      this.#counts.dropped++;
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
    if (isFull) await new Promise<void>((resolve) => this.#room.push(resolve));
    return true;
  }

  /** Sends everything that was added before, and resolves when the service has answered all of it. */
  flush(): Promise<void> {
    const to = (this.#flushTo = this.#added);
    if (this.#done >= to) return Promise.resolve();
    const flushed = new Promise<void>((resolve) => this.#flushes.push({ to, resolve }));
    this.#plan();
    return flushed;
  }

  /** Reports what is still there as not sent, and refuses further items. */
  end(): void {
    this.#stop.abort(new RolltopError(0, "closed", "the client was closed"));
    clearTimeout(this.#timer);
    const left = this.#queue.splice(0);
    this.#done += left.length;
    if (left.length > 0) this.#fail(left, this.#stop.signal.reason);
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
      const size = new TextEncoder().encode(this.#text(entry)).length + 1;
      if (size > bytes) break;
      bytes -= size;
      entry.left = true;
      texts.push(entry.text);
    }
    if (texts.length === 0) return start;
    open(this.#connection, "POST", this.#path, { body: this.#body(texts) }, { keepalive: true }).catch(() => {});
    return bytes;
  }

  #body(texts: string[]): string {
    return `{"${this.#board === undefined ? "events" : "increments"}":[${texts.join()}]}`;
  }

  /** Returns an entry as it is sent from now on: nothing is added to it any more. */
  #text(entry: Entry): string {
    if (entry.sum !== undefined) {
      this.#sums.delete(entry.text);
      entry.text += `,"amount":${decimal(entry.sum)},"id":"${newId()}"}`;
      delete entry.sum;
    }
    return entry.text;
  }

  /** Sends what is due, or waits for more. */
  #plan(): void {
    if (this.#running || this.#queue.length === 0) return;
    if (this.#queue.length >= this.#batchItems || this.#flushTo > this.#done) void this.#run();
    else this.#timer ??= setTimeout(() => void this.#run(), this.#options.batchMillis ?? 1000);
  }

  async #run(): Promise<void> {
    this.#running = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let length = 0;
    let count = 0;
    for (const entry of this.#queue.slice(0, this.#batchItems)) {
      length += this.#text(entry).length;
      if (count > 0 && length > BATCH_LENGTH) break;
      count++;
    }
    this.#sending = this.#queue.splice(0, count);
    const again = await this.#send(this.#sending);
    if (again) this.#queue.unshift(...this.#sending);
    else this.#done += this.#sending.length;
    this.#sending = [];
    this.#running = false;
    while (this.#flushes[0] && this.#flushes[0].to <= this.#done) this.#flushes.shift()?.resolve();
    if (this.#queue.length < this.#maxItems) for (const resolve of this.#room.splice(0)) resolve();
    this.#plan();
  }

  /** Sends a batch until it is answered. Returns whether it has to be divided. */
  async #send(entries: Entry[]): Promise<boolean> {
    const began = Date.now();
    const { signal } = this.#stop;
    const body = this.#body(entries.map((entry) => entry.text));
    for (let attempt = 0; ; attempt++) {
      try {
        const receipt = (await once(this.#connection, "POST", this.#path, { body, signal })) as Receipt;
        // A gateway of a hotel answers 200 to everything.
        if (typeof receipt?.accepted !== "number") {
          throw new RolltopError(200, "invalid_response", "the answer is not a receipt");
        }
        this.#settle(entries, receipt);
        return false;
      } catch (caught) {
        const error = caught as RolltopError;
        if (error.status === 413 && entries.length > 1) {
          this.#batchItems = Math.ceil(entries.length / 2);
          return true;
        }
        const isLate = Date.now() - began >= (this.#options.giveUpAfter ?? Infinity);
        if (signal.aborted || !error.temporary || isLate) {
          this.#fail(entries, error);
          return false;
        }
        await sleep(pause(attempt, error.retryAfter), signal);
      }
    }
  }

  #settle(entries: Entry[], { accepted, duplicates, rejected, rejected_counts }: Receipt): void {
    this.#counts.accepted += accepted;
    this.#counts.duplicates += duplicates;
    this.#counts.rejected += Object.values(rejected_counts ?? {}).reduce((sum, count) => sum + count, 0);
    for (const { index, code, detail, board } of rejected) {
      const entry = entries[index ?? 0];
      if (entry) report(() => this.#options.onRejected?.(this.#item(entry, board), code, detail));
    }
    if (rejected[0] && !this.#options.onRejected) console.error(`rolltop: ${rejected.length} items rejected`, rejected[0]);
  }

  #fail(entries: Entry[], error: RolltopError): void {
    this.#counts.failed += entries.length;
    if (!this.#options.onError) console.error(`rolltop: ${entries.length} items not sent`, error);
    else report(() => this.#options.onError?.(error, entries.map((entry) => this.#item(entry))));
  }

  /** Returns an entry as the caller gave it. */
  #item(entry: Entry, board = this.#board): Item {
    const item: unknown = JSON.parse(this.#text(entry));
    if (this.#board !== undefined) return { board: this.#board, increment: item as Increment };
    return { ...(board !== undefined && { board }), event: item as Event };
  }
}

/** Calls a function of the caller. What it does wrong must not end the sending. */
function report(call: () => void): void {
  try {
    call();
  } catch (error) {
    console.error(error);
  }
}
