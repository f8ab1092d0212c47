export { rolltop } from "./service.ts";
export type { CallOptions, EvaluateOptions, Options, Service } from "./service.ts";
export type { AddOptions, Board, BoardOptions, CountOptions, LookupOptions } from "./board.ts";
export type { BatchOptions, Counts, Item } from "./batch.ts";
export type { Amount, ItemOptions } from "./item.ts";
export type { ExportOptions } from "./export.ts";
export type { LiveOptions } from "./live.ts";
export { RolltopError } from "./error.ts";
export type {
  Answers,
  AttributeNames,
  Attributes,
  BoardStatus,
  Decimals,
  DefinedBoard,
  Definition,
  DefinitionPreview,
  Evaluations,
  EventsReceipt,
  Event,
  Increment,
  Key,
  Line,
  LiveRanking,
  LookupResult,
  Neighbors,
  PageOptions,
  PeriodOptions,
  Problem,
  Query,
  Ranking,
  Rankings,
  ReadOptions,
  Removal,
  Schemas,
  Standing,
  Time,
  WindowValue,
} from "./types.ts";
