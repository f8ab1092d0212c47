// Hides and freezes subjects of a board, and removes values: for backends, because it needs a key with the scope `manage`.

import { type Board, subjectPath } from "./board.ts";
import { keyText } from "./http.ts";
import type { Decimals, Key, Schemas } from "./types.ts";

export type ModeratedSubject = Schemas["ModeratedSubject"];

interface Signal {
  signal?: AbortSignal | undefined;
}

interface InRanking extends Signal {
  /** The key of the ranking, on a board whose metric has `BY`. */
  by?: Key | undefined;
}

export interface ListOptions extends InRanking {
  /** The beginning of the names. On a board with `BY` it needs `by`. */
  prefix?: string | undefined;
}

/** A subject of many that are to be changed. */
export interface Change {
  subject: string;
  by?: Key | undefined;
}

const listed = (subjects: readonly Change[]) =>
  subjects.map(({ by, ...change }) => ({ ...change, by: by === undefined ? undefined : keyText(by) }));

/** Returns the calls about the moderation of a board. It asks the service nothing by itself. */
export function moderation<D extends Decimals>(board: Board<D>) {
  async function* list(what: string, options: ListOptions): AsyncGenerator<ModeratedSubject, void> {
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: Schemas["ModeratedPage"] = await board.send("GET", `/${what}`, { limit: 1000, cursor, ...options });
      yield* page.items;
      cursor = page.next;
    }
  }
  return {
    /**
     * Takes a subject out of the rankings; it goes on counting. With `shadow` its own standing has the rank that it would
     * have.
     */
    hide: (subject: string, { shadow = false, ...options }: InRanking & { shadow?: boolean | undefined } = {}) =>
      board.send<Schemas["Hiding"]>("PUT", `${subjectPath(subject)}/hidden`, options, { shadow }),

    /** Shows a hidden subject again, with everything that it has counted. */
    show: (subject: string, options: InRanking = {}) =>
      board.send<Schemas["Hiding"]>("DELETE", `${subjectPath(subject)}/hidden`, options),

    /** Has nothing count for a subject any more. What it has leaves the window slot by slot. */
    freeze: (subject: string, options: InRanking = {}) =>
      board.send<Schemas["Freezing"]>("PUT", `${subjectPath(subject)}/frozen`, options),

    /** Has items of a subject count again. */
    unfreeze: (subject: string, options: InRanking = {}) =>
      board.send<Schemas["Freezing"]>("DELETE", `${subjectPath(subject)}/frozen`, options),

    /** Hides up to 100,000 subjects, or shows those with `hidden: false`. */
    hideAll: (subjects: readonly (Change & { hidden?: boolean; shadow?: boolean })[], options: Signal = {}) =>
      board.send<Schemas["ModerationReceipt"]>("POST", "/hidden", options, { subjects: listed(subjects) }),

    /** Freezes up to 100,000 subjects, or ends that for those with `frozen: false`. */
    freezeAll: (subjects: readonly (Change & { frozen?: boolean })[], options: Signal = {}) =>
      board.send<Schemas["ModerationReceipt"]>("POST", "/frozen", options, { subjects: listed(subjects) }),

    /**
     * Removes up to 1,000 values of a COUNT_DISTINCT board from all subjects, such as the likes that a person gave. It
     * passes over everything that the board holds: the `timeout` of the service has to be long enough.
     */
    removeValues: (values: readonly string[], options: InRanking = {}) =>
      board.send<Schemas["ValueRemovalsReceipt"]>("POST", "/removals", options, { values }),

    /** Returns the hidden subjects, ordered by bytes. */
    hidden: (options: ListOptions = {}) => list("hidden", options),

    /** Returns the frozen subjects, ordered by bytes. */
    frozen: (options: ListOptions = {}) => list("frozen", options),
  };
}
