// The types of the API, by shorter names, and with exact decimals as texts where that is asked for.

import type { components } from "./schema.ts";

export type Schemas = components["schemas"];

/** How amounts and scores are returned: as the nearest binary number, or exactly as texts. */
export type Decimals = "number" | "string";

/** The members of responses that hold exact decimals. */
export type DecimalMember =
  | "score"
  | "value"
  | "sum"
  | "count"
  | "amount"
  | "worst"
  | "left_value"
  | "right_value"
  | "next_score"
  | "standard_error"
  | "from"
  | "to";

/** A response whose decimals have another type. */
type With<N, T> = T extends readonly (infer E)[]
  ? With<N, E>[]
  : T extends object
    ? { [K in keyof T]: K extends DecimalMember ? Instead<N, T[K]> : With<N, T[K]> }
    : T;
type Instead<N, T> = T extends number ? N : With<N, T>;

/** A response with decimals of this kind. */
export type Read<T, D extends Decimals> = D extends "string" ? With<string, T> : T;
/** A response in which a decimal that JavaScript would round is a text. */
export type Unrounded<T> = With<number | string, T>;

export type Problem = Schemas["Problem"];
export type Increment = Schemas["Increment"];
export type Event = Schemas["Event"];
export type Definition = Schemas["Definition"];
export type DefinedBoard = Schemas["DefinedBoard"];
export type DefinitionPreview = Schemas["DefinitionPreview"];
export type BoardStatus = Schemas["BoardStatus"];
export type Query = Schemas["Query"];

export type Ranking<D extends Decimals = "number"> = Read<Schemas["Ranking"], D>;
export type Line<D extends Decimals = "number"> = Read<Schemas["RankingEntry"], D>;
export type LookupResult<D extends Decimals = "number"> = Read<Schemas["LookupResult"], D>;
export type Standing<D extends Decimals = "number"> = Read<Schemas["Standing"], D>;
export type Neighbors<D extends Decimals = "number"> = Read<Schemas["Neighbors"], D>;
export type WindowValue<D extends Decimals = "number"> = Read<Schemas["WindowValue"], D>;
export type Rankings<D extends Decimals = "number"> = Read<Schemas["Rankings"], D>;
export type Removal<D extends Decimals = "number"> = Read<Schemas["Removal"], D>;
export type Answers<D extends Decimals = "number"> = Read<Schemas["Answers"], D>;
export type Evaluations<D extends Decimals = "number"> = Read<Schemas["Evaluations"], D>;
export type EventsReceipt<D extends Decimals = "number"> = Read<Schemas["EventsReceipt"], D>;
/** A ranking that is followed: the first lines, without cursors. */
export type LiveRanking<D extends Decimals = "number"> = Omit<Ranking<D>, "next" | "prev">;
export type UnroundedRanking = Unrounded<LiveRanking>;

/** A time: RFC 3339, or a Date. */
export type Time = string | Date;
/** The key of a ranking; of several fields, a list of their values. */
export type Key = string | readonly string[];

/** What reads of a board may name. */
export interface ReadOptions {
  /** The length of the window, on a board with several; by default the main one. */
  window?: string | undefined;
  /** The key of the ranking, on a board whose metric has `BY`. */
  by?: Key | undefined;
  /** The edition to read while two count. */
  of?: "next" | "previous" | undefined;
  signal?: AbortSignal | undefined;
}

/** Names of attributes: a list, a text with commas between them, or `*` for all. */
export type AttributeNames = string | readonly string[];

/** Attributes of a subject: their names, and values of JSON. A BigInt is sent as a number. */
export type Attributes = Readonly<Record<string, unknown>>;

/** What reads of lines may name. */
export interface ShownOptions {
  /** The attributes that each line is to have, such as `["name", "picture"]`; `*` for all. By default none. */
  attributes?: AttributeNames | undefined;
}

/** What reads of a ranking may name. */
export interface PeriodOptions extends ReadOptions {
  /** The name of the period, such as `2026-11`, on a board with a season; by default the current one. */
  period?: string | undefined;
}

export interface PageOptions extends PeriodOptions, ShownOptions {
  limit?: number | undefined;
  offset?: number | undefined;
  /** The `next` or `prev` of another page; not together with `offset`. */
  cursor?: string | undefined;
}
