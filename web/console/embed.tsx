// How to use a board elsewhere: its tag for a page, commands, and programs.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Chosen } from "./chosen.ts";
import { exampleIncrement, keyHeader, postCommand } from "./example.ts";
import { anybodyMay } from "./key.ts";
import { Command } from "./parts.tsx";
import type { BoardStatus } from "./types.ts";

/** A language, with what uses the board in it. */
interface Use {
  name: string;
  text: string;
  note?: string;
}

/** Writes a text as an attribute of HTML. */
function attribute(name: string, value: string | undefined | null): string {
  return value ? ` ${name}="${value.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"` : "";
}

/** Writes a text as a part of an address in single quotes. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll("'", "%27");
}

/** Returns the ways to use a board. Where no key is chosen on a board with `BY`, they have the one of the example. */
function usesOf(board: BoardStatus, { board: name, by: key, window }: Chosen): Use[] {
  const base = new URL(".", document.baseURI).href;
  const url = base.replace(/\/$/, "");
  const { subject, by, amount, ...rest } = exampleIncrement(board, key);
  const path = `v1/boards/${name}`;
  const query = Object.entries({ by, window }).flatMap(([part, value]) => (value ? [`${part}=${encoded(value)}`] : []));
  const read = board.ranked ? "/rankings?" : `/subjects/${encoded(subject)}/window?`;
  const address = `${path}${read}${[...query, ...(board.ranked ? ["limit=10"] : [])].join("&")}`.replace(/\?$/, "");
  const readScope = board.ranked ? "view" : "read";
  const isOpen = anybodyMay("write", name) && anybodyMay(readScope, name);

  const json = (value: unknown) => JSON.stringify(value);
  const given = (members: object) => Object.entries(members).filter(([, value]) => value !== undefined && value !== null);
  const object = (members: object) => `{ ${given(members).map(([member, value]) => `${member}: ${json(value)}`).join(", ")} }`;
  const named = (members: object) => given(members).map(([member, value]) => `, ${member}=${json(value)}`).join("");
  const more = { by, ...rest };
  const inTypeScript = given(more).length > 0 ? `, ${amount ?? "undefined"}, ${object(more)}` : amount === undefined ? "" : `, ${amount}`;
  const inPython = `${amount === undefined ? "" : `, ${amount}`}${named(more)}`;

  const page: Use = {
    name: "Web page",
    text: [
      `<script type="module" src="${base}rolltop-board.js"></script>`,
      `<rolltop-board${attribute("board", name)}${attribute("by", by)}${attribute("window", window)}${anybodyMay("view", name) ? "" : ' key="rtp_…"'}></rolltop-board>`,
    ].join("\n"),
    note: 'The page must be of an origin in the setting cors_origins, or have a publishable key for its origin: key="rtp_…".',
  };
  return [
    ...(board.ranked ? [page] : []),
    {
      name: "curl",
      text: `${postCommand(`${path}/increments`, { subject, by, amount, ...rest }, name)}\n\ncurl${keyHeader(readScope, name)} '${base}${address}'`,
    },
    {
      name: "TypeScript",
      text: [
        'import { rolltop } from "rolltop";',
        "",
        `const service = rolltop({ url: ${json(url)}${isOpen ? "" : ", key: process.env.ROLLTOP_KEY"} });`,
        `const board = service.board(${json(name)});`,
        `await board.add(${json(subject)}${inTypeScript});`,
        "await service.flush();",
        board.ranked
          ? `console.log((await board.top(${object({ limit: 10, by, window })})).items);`
          : `console.log((await board.count(${json(subject)}${query.length > 0 ? `, ${object({ by, window })}` : ""})).value);`,
        "await service.close();",
      ].join("\n"),
    },
    {
      name: "Python",
      text: [
        ...(isOpen ? [] : ["import os"]),
        "from rolltop import Rolltop",
        "",
        `with Rolltop(${json(url)}${isOpen ? "" : ', os.environ["ROLLTOP_KEY"]'}) as service:`,
        `    board = service.board(${json(name)})`,
        `    board.add(${json(subject)}${inPython})`,
        "    service.flush()",
        board.ranked
          ? `    print(board.top(limit=10${named({ by, window })})["items"])`
          : `    print(board.count(${json(subject)}${named({ by, window })})["value"])`,
      ].join("\n"),
    },
  ];
}

/** Shows texts to copy. They are shown from the beginning on an empty board. */
export function Embed({ board, chosen }: { board: BoardStatus; chosen: Chosen }) {
  // It stays as it is when the first item is counted.
  const isOpen = useRef(board.ranked && board.total === 0);
  const name = useSignal<string | null>(null);
  const uses = usesOf(board, chosen);
  const shown = uses.find((use) => use.name === name.value) ?? uses[0];
  return (
    <details class="embed" open={isOpen.current}>
      <summary>Use it in a page or a program</summary>
      <div class="actions" role="group" aria-label="Language">
        {uses.map((use) => (
          <button key={use.name} type="button" aria-pressed={use === shown} onClick={() => (name.value = use.name)}>{use.name}</button>
        ))}
      </div>
      {shown && <Command key={shown.name} label={shown.name}>{shown.text}</Command>}
      {shown?.note && <p class="small">{shown.note}</p>}
    </details>
  );
}
