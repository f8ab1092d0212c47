// The lines of a ranking as elements. Elements of subjects that stay are kept, and move to their new places.

import type { Page } from "../../clients/typescript/src/feeds.ts";
import { formatted } from "./numbers.ts";

/** A line of a ranking. */
export type Line = Page["items"][number];

/** Returns the text to show for a subject. */
export type NameOf = (subject: string) => string;

/** What a page says about how lines look. */
export interface Looks {
  /** The address of a subject's page, with `{subject}` in it. */
  template: string | null;
  nameOf: NameOf | null;
  /** The text of a line whose subject was removed. */
  removed: string;
  showsTiers: boolean;
  showsTies: boolean;
  /** Names of attributes of subjects that have a name to show, a picture, and a link; empty for none. */
  nameFrom: string;
  pictureFrom: string;
  linkFrom: string;
}

/** Functions whose error was reported, so that each is reported once and not every second. */
const reported = new WeakSet<object>();

/**
 * Returns the text to show for a subject: where the page's function returns nothing or throws, its name among the
 * attributes, or else the subject itself.
 */
function textOf(subject: string, nameOf: NameOf | null, name: unknown): string {
  try {
    const text: unknown = nameOf?.(subject);
    if (typeof text === "string") return text;
  } catch (error) {
    if (nameOf && !reported.has(nameOf)) reportError(error);
    if (nameOf) reported.add(nameOf);
  }
  const text = typeof name === "string" || typeof name === "number" ? String(name) : "";
  return text.trim() === "" ? subject : text;
}

/** How long a line takes to its new place, in milliseconds. */
const MOVE = 300;

/** Creates an element of the shadow tree. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  part: string,
  ...children: Node[]
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  created.setAttribute("part", part);
  created.append(...children);
  return created;
}

/** Sets the text of a node, unless it is the same. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Returns the address of a subject's page from a template such as `/posts/{subject}`. Returns null if the address is not
 * one of HTTP, or if the subject would be a step in the path (`..`).
 */
export function address(template: string | null, subject: string): string | null {
  if (template === null || subject === "." || subject === "..") return null;
  try {
    const encoded = encodeURIComponent(subject);
    return webAddress(template.replaceAll("{subject}", () => encoded));
  } catch {
    return null;
  }
}

/**
 * Returns an address of HTTP as it is requested, also one that is relative to the page. Returns null for everything else, such
 * as `javascript:` and `data:`, and for an address with a user name, which may look like that of another host.
 */
export function webAddress(text: unknown): string | null {
  if (typeof text !== "string" || text.trim() === "") return null;
  try {
    const { protocol, username, password, href } = new URL(text, document.baseURI);
    return /^https?:$/.test(protocol) && username + password === "" ? href : null;
  } catch {
    return null;
  }
}

/** Returns what orders equal scores as a text: a number, or a time as the visitor writes it. */
function tieText(tie: Line["tie"]): string {
  if (tie === undefined) return "";
  const at = typeof tie === "string" ? new Date(tie) : undefined;
  return at && !Number.isNaN(+at) ? at.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" }) : formatted(tie);
}

/** The elements of a line. */
class Row {
  readonly line = element("li", "line");
  readonly #rank = element("span", "rank");
  readonly #picture = element("span", "picture");
  readonly #tie = element("span", "tie");
  readonly #tier = element("span", "tier");
  readonly #move = element("span", "move");
  readonly #score = element("span", "score");
  readonly #bar = element("span", "bar");
  #subject: HTMLElement | undefined;
  /** The address of the picture that is shown, or could not be. */
  #source: string | null = null;

  show({ rank, score, subject, from, tie, tier = "", attributes = {} }: Line, share: number, looks: Looks): void {
    const { template, nameOf, removed, showsTiers, showsTies, nameFrom, pictureFrom, linkFrom } = looks;
    // Not what every object has.
    const own = (name: string): unknown => (Object.hasOwn(attributes, name) ? attributes[name] : undefined);
    const name = subject === null ? removed : textOf(subject, nameOf, own(nameFrom));
    const href = subject === null ? null : (webAddress(own(linkFrom)) ?? address(template, subject));
    const tag = href === null ? "span" : "a";
    if (this.#subject?.localName !== tag) {
      this.#subject = element(tag, subject === null ? "subject removed" : "subject");
      this.line.replaceChildren(this.#rank, this.#subject, this.#score, this.#bar);
    }
    setText(this.#subject, name);
    if (href !== null && this.#subject.getAttribute("href") !== href) this.#subject.setAttribute("href", href);
    if (!pictureFrom) this.#picture.remove();
    else if (!this.#picture.parentNode) this.#subject.before(this.#picture);
    this.#showPicture(webAddress(own(pictureFrom)));
    if (!showsTiers || !tier) this.#tier.remove();
    else if (!this.#tier.parentNode) this.#score.before(this.#tier);
    setText(this.#tier, tier);
    // Lines of a board without movement have no place for it. Whoever was not among the first has come from anywhere.
    if (from === undefined) this.#move.remove();
    else if (!this.#move.parentNode) this.#score.before(this.#move);
    const moved = Number(from ?? rank) - Number(rank);
    setText(this.#move, moved > 0 ? `▲${moved}` : moved < 0 ? `▼${-moved}` : "");
    this.#move.setAttribute("part", moved > 0 ? "move up" : moved < 0 ? "move down" : "move");
    if (moved === 0) for (const name of ["role", "aria-label"]) this.#move.removeAttribute(name);
    else {
      this.#move.setAttribute("role", "img");
      this.#move.setAttribute("aria-label", `${moved > 0 ? "up" : "down"} ${Math.abs(moved)}`);
    }
    // The names of parts have no spaces.
    const tierPart = tier && ` tier-${tier.trim().replace(/\s+/g, "-")}`;
    this.line.setAttribute("part", (rank === 1 ? "line first" : "line") + tierPart);
    setText(this.#rank, String(rank));
    setText(this.#score, formatted(score));
    if (!showsTies || tie === undefined) this.#tie.remove();
    else if (!this.#tie.parentNode) this.#score.after(this.#tie);
    setText(this.#tie, tieText(tie));
    this.#bar.style.inlineSize = `${share * 100}%`;
  }

  /** Shows the picture at an address. Its place stays empty without one, and if it cannot be loaded. */
  #showPicture(source: string | null): void {
    if (source === this.#source) return;
    this.#source = source;
    this.#picture.replaceChildren();
    if (source === null) return;
    const image = document.createElement("img");
    image.addEventListener("error", () => image.remove());
    // Its name is beside it. The address comes last: what is set after it comes too late.
    Object.assign(image, { alt: "", loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", width: 32, height: 32 });
    image.src = source;
    this.#picture.append(image);
  }
}

/** An ordered list of lines. */
export class List {
  readonly list = element("ol", "list");
  #rows = new Map<string, Row>();

  constructor() {
    // Without markers Safari would not treat it as a list.
    this.list.setAttribute("role", "list");
  }

  /** Shows these lines. */
  show(lines: Line[], looks: Looks): void {
    const { list } = this;
    const isMoving = this.#rows.size > 0 && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = isMoving ? this.#tops() : new Map<Row, number>();
    const focused = (list.getRootNode() as ShadowRoot).activeElement;

    const most = Math.max(...lines.map(({ score }) => Math.abs(Number(score))));
    const rows = new Map<string, Row>();
    for (const [at, line] of lines.entries()) {
      const { subject } = line;
      // Lines without a subject are told apart by their places, behind what no subject has.
      const key = subject ?? `\0${at}`;
      const row = this.#rows.get(key) ?? new Row();
      const share = Math.max(0, Number(line.score) / most) || 0;
      row.show(line, share, looks);
      rows.set(key, row);
    }
    for (const [key, row] of this.#rows) if (!rows.has(key)) row.line.remove();
    this.#rows = rows;
    this.#place(focused?.closest("li") ?? null);
    if (focused && focused !== list && !focused.isConnected) this.#keepFocus();
    if (isMoving) this.#move(before);
  }

  /** Brings the elements into their order. The one that has the focus stays where it is, because moving it ends the focus. */
  #place(pinned: Element | null): void {
    const { list } = this;
    let next = list.firstElementChild;
    for (const { line } of this.#rows.values()) {
      if (line === pinned) {
        while (next !== line) {
          const after: Element | null = next?.nextElementSibling ?? null;
          if (next) list.append(next);
          next = after;
        }
      }
      if (line === next) next = line.nextElementSibling;
      else list.insertBefore(line, next);
    }
  }

  /** Gives the list the focus that a line had which is gone, so that it does not go to the beginning of the page. */
  #keepFocus(): void {
    this.list.tabIndex = -1;
    this.list.focus({ preventScroll: true });
    this.list.addEventListener("blur", () => this.list.removeAttribute("tabindex"), { once: true });
  }

  /** Returns how far each line is from the beginning of the list. */
  #tops(): Map<Row, number> {
    const { top } = this.list.getBoundingClientRect();
    return new Map([...this.#rows.values()].map((row) => [row, row.line.getBoundingClientRect().top - top]));
  }

  /** Lets each line move from where it was to where it is. */
  #move(before: Map<Row, number>): void {
    for (const { line } of this.#rows.values()) for (const running of line.getAnimations()) running.cancel();
    for (const [row, top] of this.#tops()) {
      const from = before.get(row);
      const frames = from === undefined ? { opacity: [0, 1] } : { transform: [`translateY(${from - top}px)`, "none"] };
      if (from === undefined || Math.abs(from - top) >= 1) row.line.animate(frames, { duration: MOVE, easing: "ease-out" });
    }
  }
}
