// The ranking that a page shows. Every read and every link of the page is made from it, so all are of the same one.

import { boardPath } from "./api.ts";
import { route } from "./route.ts";

/** One of the rankings of a board. */
export interface Chosen {
  board: string;
  /** The length of its window; null for the main one. */
  window: string | null;
  /** Its key, where the metric of the board has `BY`; null for a board with one ranking, or before a key is chosen. */
  by: string | null;
  /** The name of its period, on a board with a season; null for the current one. */
  period: string | null;
}

/** Returns what the address of the page chooses of a board. */
export function chosenOf(board: string): Chosen {
  const { query } = route.value;
  return { board, window: query.get("window") || null, by: query.get("by") || null, period: query.get("period") || null };
}

/** Returns what a ranking is called. */
export function titleOf({ board, by }: Chosen): string {
  return by === null ? board : `${by} in ${board}`;
}

/** Returns the path of a read below the board of a ranking. */
export function readPath({ board, ...parts }: Chosen, rest: string): string {
  const query = new URLSearchParams(Object.entries(parts).filter((part): part is [string, string] => part[1] !== null));
  return boardPath(board, query.size === 0 ? rest : `${rest}${rest.includes("?") ? "&" : "?"}${query}`);
}

/** The path and the query of a page. */
type Address = [string[], Record<string, string | null>];

/** Returns the path of a subject of a ranking, or of something below it. */
export function subjectPath(chosen: Chosen, subject: string, rest = ""): string {
  return readPath(chosen, `/subjects/${encodeURIComponent(subject)}${rest}`);
}

/** Returns the address of the page of a ranking, with further parts of its query. */
export function pageOf({ board, ...parts }: Chosen, further: Record<string, string | null> = {}): Address {
  return [["boards", board], { ...parts, ...further }];
}

/** Returns the address of the page of a subject of a ranking. */
export function subjectPage({ board, ...parts }: Chosen, subject: string): Address {
  return [["boards", board, "subjects", subject], parts];
}
