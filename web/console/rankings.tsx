// The rankings of a board that has one for each key: the keys by name, with the first lines of each.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatted } from "../widget/numbers.ts";
import { call } from "./api.ts";
import { nameOf } from "./attributes.tsx";
import { pageOf, readPath, type Chosen } from "./chosen.ts";
import { keyInWords } from "./metric.ts";
import { counted, Empty, Name, Notice } from "./parts.tsx";
import { usePolled } from "./polled.ts";
import { lineKey } from "./ranking.tsx";
import { href, replaceQuery, route } from "./route.ts";
import { score } from "./score.ts";
import type { BoardStatus, KeyPage, RankingOfKey, Rankings as RankingsOfKeys } from "./types.ts";

/** Keys on a page, and lines of the ranking of each. */
const KEYS = 25;
const LINES = 3;
/** Milliseconds between two reads. */
const PACE = 3_000;

/** What is shown: rankings in the order of their keys, and where the next page begins. */
interface Shown {
  keys: number;
  rankings: RankingOfKey[];
  next: string | null;
}

/** Reads the keys that begin with a text, from the one after `after`, with their rankings. */
async function read(chosen: Chosen, search: string, after: string, signal: AbortSignal): Promise<Shown> {
  const cursor = after && `&cursor=${encodeURIComponent(after)}`;
  const path = readPath(chosen, `/keys?limit=${KEYS}&prefix=${encodeURIComponent(search)}${cursor}`);
  const { keys, items, next } = await call<KeyPage>("GET", path, undefined, signal);
  if (items.length === 0) return { keys, rankings: [], next: null };
  const body = { keys: items.map(({ by }) => by), limit: LINES };
  const { rankings } = await call<RankingsOfKeys>("POST", readPath(chosen, "/rankings/by?attributes=name"), body, signal);
  return { keys, rankings: rankings.filter(({ items }) => items.length > 0), next };
}

interface Props {
  board: BoardStatus;
  /** The board and its window, without a key. */
  chosen: Chosen;
  /** What to show where the board has no keys. */
  children: ComponentChildren;
}

/** The list of the keys, with a box that searches them. */
export function Rankings({ board, chosen, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  const search = route.value.query.get("search") ?? "";
  const after = route.value.query.get("after") ?? "";
  const place = readPath(chosen, `/keys?search=${encodeURIComponent(search)}&after=${encodeURIComponent(after)}`);
  const { data, problem } = usePolled<Shown>(place, PACE, (_, signal) => read(chosen, search, after, signal));
  const latest = useRef<Shown | null>(null);
  useEffect(() => {
    latest.current = data.value;
  });
  // While the next list is on its way, what is already known of it stays.
  const shown = data.value ?? latest.current;
  const rankings = shown?.rankings.filter(({ by }) => by.startsWith(search)) ?? [];
  const next = data.value?.next ?? null;
  const link = (text: string, after: string | null) => (
    <a href={href(...pageOf(chosen, { search, after }))} onClick={() => heading.current?.focus()}>{text}</a>
  );
  return (
    <section class="rankings" aria-labelledby="rankings">
      <h2 id="rankings" ref={heading} tabIndex={-1}>A ranking for each {keyInWords(board.metric)}</h2>
      <div class="bar">
        <label class="search">
          <span class="hidden">Search keys by their beginning</span>
          <input
            type="search"
            placeholder="Beginning of a key"
            value={search}
            onInput={(event) => replaceQuery(pageOf(chosen, { search: event.currentTarget.value })[1])}
          />
        </label>
        {shown && (
          <span class="soft small">{counted(shown.keys, "key")} of at most {formatted(board.max_keys ?? 0)}</span>
        )}
      </div>
      <Notice problem={problem.value} />
      {data.value && next === null && search === "" && after === "" && rankings.length === 0 && children}
      {data.value && next === null && search !== "" && after === "" && rankings.length === 0 && (
        <Empty title={<>No key begins with “<bdi>{search}</bdi>”</>}>
          <p>
            Upper and lower case differ.{" "}
            <a href={href(...pageOf({ ...chosen, by: search }))}>Show the ranking of this key</a>, which is empty.
          </p>
        </Empty>
      )}
      {rankings.length > 0 && (
        <ul class="boards" role="list" aria-label={`Keys of ${board.board}`}>
          {rankings.map((ranking) => <Row key={ranking.by} ranking={ranking} board={board} chosen={chosen} />)}
        </ul>
      )}
      {(after !== "" || next !== null) && (
        <p class="actions">
          {after !== "" && link("From the beginning", null)}
          {next !== null && link("Next keys", next)}
        </p>
      )}
    </section>
  );
}

/** The name of a subject, beside it. */
function Described({ attributes }: { attributes: Record<string, unknown> | undefined }) {
  const name = nameOf(attributes);
  return name === null ? null : <> <Name of={name} /></>;
}

/** A key with the first lines of its ranking. */
function Row({ ranking, board, chosen }: { ranking: RankingOfKey; board: BoardStatus; chosen: Chosen }) {
  return (
    <li>
      <span class="boards-title">
        <a class="boards-name" href={href(...pageOf({ ...chosen, by: ranking.by }))}><Name of={ranking.by} /></a>{" "}
        <span class="soft small">{ranking.total !== null && counted(ranking.total, "subject")}</span>
      </span>
      <span class="boards-figures">
        {ranking.items.map((line, at) => (
          <span class="best" key={lineKey(line, at)}>
            {formatted(line.rank)}. {line.subject === null ? <i class="soft">removed</i> : <><b><Name of={line.subject} /></b><Described attributes={line.attributes} /></>} {score(line.score, board)}
          </span>
        ))}
      </span>
    </li>
  );
}
