// The lines of a live ranking: what `GET …/stream` sends, and how a change is applied. Used by the console and the widget.

import type { Num } from "./json.ts";

/** A line of a ranking. */
export interface Line {
  rank: number;
  subject: string;
  score: Num;
}

/** The bounds of a window; null where it has none. */
export interface Bounds {
  from: string | null;
  to: string | null;
  slots: number;
}

/** What every read says about the board. */
export interface Frame {
  window: Bounds;
  as_of: string;
  /** Number of expired slots that scores may still include in part. */
  retiring: number;
}

/** The first page of a ranking. */
export interface Page extends Frame {
  board: string;
  /** The key of the ranking; absent on a board with one ranking. */
  by?: string;
  metric: string;
  total: number | null;
  items: Line[];
}

/** What has changed since the event before. */
export interface Change extends Frame {
  total: number | null;
  rows: (Line & { position: number })[];
  gone: string[];
}

/** Returns the page after a change. Subjects that are neither changed nor gone keep their order. */
export function changed(page: Page, change: Change): Page {
  const { rows, gone, window, as_of, retiring, total } = change;
  const moved = new Set(gone);
  for (const row of rows) moved.add(row.subject);
  const items = page.items.filter((line) => !moved.has(line.subject));
  // Rows are in the order of their positions, so each is inserted at its final place.
  for (const { position, rank, subject, score } of rows) items.splice(position - 1, 0, { rank, subject, score });
  return { ...page, window, as_of, retiring, total, items };
}
