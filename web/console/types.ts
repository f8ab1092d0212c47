// The responses of the API, as far as the console reads them.

import type { Frame, Line } from "../ranking/lines.ts";
import type { Num } from "../ranking/json.ts";

/** The definition of a board with all defaults. */
export interface Definition {
  board: string;
  metric: string;
  slot: string | null;
  decimals: number;
  timezone: string;
  order: "asc" | "desc";
  ranked: boolean;
  mode: "sliding" | "from_first";
  windows: string[];
  /** The most keys that may have a ranking; absent on a board with one ranking. */
  max_keys?: number;
  slots_in_window: number;
  /** Windows in which one slot is a large part. */
  notes?: string[];
}

/** A slot that holds something. */
export interface Slot {
  from: string;
  to: string;
  /** Number of subjects; null on an unranked board. */
  subjects: number | null;
  events: number;
}

/** An expired slot that is being subtracted. */
export interface RetiringSlot {
  from: string;
  to: string;
  subjects: number;
}

/** The state of one window. */
export interface WindowStatus extends Frame {
  length?: string;
  slot: string | null;
  head: string | null;
  floor: string | null;
  /** Number of ranked subjects, of all keys together; null if it is not known. */
  total: number | null;
  /** Number of keys that have a ranking; absent on a board with one ranking. */
  keys?: number;
  slots: Slot[];
  retiring_slots: RetiringSlot[];
}

/** The state of a board. The members of `WindowStatus` are those of the main window. */
export interface BoardStatus extends Definition, WindowStatus {
  slot: string | null;
  each_window?: (WindowStatus & { length: string })[];
  /** The metric of the successor, and of the edition that a successor replaced. */
  next?: string;
  previous?: string;
}

/** The state of the second edition of a board. */
export interface EditionStatus extends Definition {
  since: string;
  full_at: string | null;
  exact: boolean | null;
  fill: { state: "none" | "running" | "done"; cells?: number };
  /** Number of items that this edition, or the board, did not count, by reason. */
  not_counted: Record<string, number>;
  only_counted: Record<string, number>;
  until?: string;
  comparison?: Comparison;
}

/** A comparison of a board and its successor. */
export interface Comparison {
  state: "running" | "done" | "failed";
  error: string | null;
  in_both: number;
  only_board: number;
  only_next: number;
  different: number;
  tops: { lines: number; common: number; largest_change: number }[];
  differences: { by?: string; subject: string; score: Num | null; next_score: Num | null }[];
}

/** A list of the API. */
export interface List<T> {
  items: T[];
}

/** A page of the keys of a board. */
export interface KeyPage extends Frame, List<{ by: string }> {
  /** Number of keys that have a ranking. */
  keys: number;
  /** The cursor of the next page: the last key of this one; null on the last page. */
  next: string | null;
}

/** The first lines of the ranking of a key. */
export interface RankingOfKey extends Frame, List<Line> {
  by: string;
  total: number;
}

/** What a board says about a subject. */
export interface Standing extends Frame {
  subject: string;
  total: number | null;
  score: Num | null;
  rank: number | null;
  percentile: number | null;
  slots: Record<string, unknown>[];
}

/** The lines of the ranking around a subject. */
export interface Neighbors extends Frame {
  items: Line[];
}

/** What a definition would do. */
export interface Preview extends Definition {
  exists: boolean;
  conflict: { keys: string[] } | null;
  bytes_per_subject: { one_slot: number; all_slots: number; each_value: number | null; at_most: number | null };
}

/** The verdict of a rule. */
export interface Evaluation {
  as_of: string;
  rules: {
    rule: string;
    name?: string;
    hit: boolean;
    sides: {
      left: string;
      left_value: Num | string | boolean | null;
      operator: string;
      right: string;
      right_value: Num | string | boolean | null;
      hit: boolean;
      metrics: { metric: string; board: string; by?: string; subject: string; value: Num | null; capped?: boolean; covers_since?: string }[];
    }[];
  }[];
}

/** What a rollover did or would do. */
export interface Rollover {
  board: string;
  head: string;
  floor: string;
  slots_advanced: number;
  slots_retired: number;
  subjects_touched: number;
  took_ms: number;
}

/** The result of an audit. */
export interface Audit {
  subjects_checked: number;
  differences: number;
  worst: Num | null;
  repaired: number;
  missing_slots: number;
  took_ms: number;
}

/** The readiness of the instance. */
export interface Health {
  status: string;
  store: string;
  version: string;
  warnings?: string[];
}
