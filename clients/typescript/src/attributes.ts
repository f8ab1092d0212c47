// Attributes of the subjects of a board: what stands beside them in rankings, such as a name and a picture.

import { type Board, subjectPath } from "./board.ts";
import { keyText } from "./http.ts";
import { attributesText } from "./json.ts";
import type { Attributes, Decimals, Key, Schemas } from "./types.ts";

export type { Attributes } from "./types.ts";
export type SubjectAttributes = Schemas["SubjectAttributes"];
export type DescribedSubject = Schemas["DescribedSubject"];
export type SubjectsReceipt = Schemas["ModerationReceipt"];

interface Signal {
  signal?: AbortSignal | undefined;
}

interface InRanking extends Signal {
  /** The key of the ranking, if the board that keeps the attributes has a metric with `BY`. */
  by?: Key | undefined;
}

/** Attributes to merge with those of a subject, or null to remove all of it. */
export interface Change {
  subject: string;
  by?: Key | undefined;
  attributes: Attributes | null;
}

/**
 * Returns the calls about the attributes of subjects of a board. It asks the service nothing by itself. The calls throw a
 * TypeError for values that JSON does not have, such as undefined and NaN. A BigInt is sent as a number.
 */
export function attributes<D extends Decimals>(board: Board<D>) {
  const path = (subject: string) => `${subjectPath(subject)}/attributes`;
  return {
    /** Returns the attributes of a subject; an empty object if it has none. */
    get: async (subject: string, options: InRanking = {}) =>
      (await board.send<SubjectAttributes>("GET", path(subject), options)).attributes ?? {},

    /** Sets all attributes of a subject in place of those that it has, and returns them: undefined without the scope `view`. */
    set: async (subject: string, attributes: Attributes, options: InRanking = {}) =>
      (await board.send<SubjectAttributes>("PUT", path(subject), options, attributesText(attributes))).attributes,

    /** Sets these attributes of a subject, removes those that are null, and keeps the others. Returns what `set` returns. */
    change: async (subject: string, attributes: Attributes, options: InRanking = {}) =>
      (await board.send<SubjectAttributes>("PATCH", path(subject), options, attributesText(attributes))).attributes,

    /** Removes all attributes of a subject, and nothing else. */
    remove: async (subject: string, options: InRanking = {}): Promise<void> =>
      void (await board.send("DELETE", path(subject), options)),

    /** Changes the attributes of up to 100,000 subjects, as `change` does. */
    changeAll: async (subjects: readonly Change[], options: Signal = {}) => {
      const texts = subjects.map(({ attributes, by, ...change }) => {
        const item = JSON.stringify({ ...change, by: by === undefined ? undefined : keyText(by) });
        return `${item.slice(0, -1)},"attributes":${attributes === null ? attributes : attributesText(attributes)}}`;
      });
      return board.send<SubjectsReceipt>("POST", "/attributes", options, `{"subjects":[${texts.join()}]}`);
    },

    /**
     * Returns the subjects that have attributes, ordered by bytes. With `prefix` those that begin with it; where the board
     * that keeps them has a metric with `BY`, those whose keys begin with it.
     */
    async *list(options: Signal & { prefix?: string | undefined } = {}): AsyncGenerator<DescribedSubject, void> {
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page: Schemas["DescribedPage"] = await board.send("GET", "/attributes", { limit: 1000, cursor, ...options });
        yield* page.items;
        cursor = page.next;
      }
    },
  };
}
