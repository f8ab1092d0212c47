// Names of the responses that the console reads. The client has their types, which are generated from the API's
// description. A decimal that JavaScript would round is a text.

import type { Schemas, Unrounded } from "../../clients/typescript/src/types.ts";

/** A response, as `call` returns it. */
type Read<Name extends keyof Schemas> = Unrounded<Schemas[Name]>;

/** The definition of a board with all defaults. */
export type Definition = Read<"CanonicalDefinition">;
/** What a definition would do. */
export type Preview = Read<"DefinitionPreview">;
/** The state of a board. The members of `WindowStatus` are those of the main window. */
export type BoardStatus = Read<"BoardStatus">;
/** The state of one window; `length` is that of a board with several. */
export type WindowStatus = Omit<Read<"WindowStatus">, "length"> & { length?: string };
/** A slot that holds something. */
export type Slot = Read<"SlotStatus">;
/** The state of the second edition of a board. */
export type EditionStatus = Read<"Edition">;
/** A page of the keys of a board. */
export type KeyPage = Read<"KeyPage">;
/** The first lines of the rankings of several keys. */
export type Rankings = Read<"Rankings">;
export type RankingOfKey = Read<"RankingOfKey">;
export type Line = Read<"RankingEntry">;
/** What a board says about a subject. */
export type Standing = Read<"Standing">;
/** The lines of the ranking around a subject. */
export type Neighbors = Read<"Neighbors">;
/** The scores at percentiles, and the numbers of subjects between scores. */
export type Distribution = Read<"Distribution">;
export type ScoreRange = Read<"ScoreRange">;
/** A page of a ranking. */
export type Ranking = Read<"Ranking">;
/** The periods of a board with a season. */
export type Periods = Read<"PeriodList">;
export type ClosedPeriod = Read<"ClosedPeriod">;
/** The tiers of a board. */
export type Tiers = Read<"Tiers">;
export type Tier = Read<"Tier">;
/** A page of the hidden or frozen subjects of a board. */
export type ModeratedPage = Read<"ModeratedPage">;
export type ModeratedSubject = Read<"ModeratedSubject">;
export type Evaluation = Read<"Evaluations">;
export type Rollover = Read<"Rollover">;
export type Audit = Read<"Audit">;
/** A source, and how far its log is counted. */
export type Source = Read<"Source">;
export type SourceState = Read<"SourceState">;
/** The readiness of the instance. */
export type Ready = Read<"Ready">;
export type Clock = Read<"Clock">;
/** What the service says about a key. */
export type OwnKey = Read<"Key">;

/** A list of the API. */
export interface List<T> {
  items: T[];
}
