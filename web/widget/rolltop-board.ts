// The element `<rolltop-board>`: the first lines of a ranking, live. See docs/widget.md.

import { follow } from "../../clients/typescript/src/feeds.ts";
import type { Page, State, View } from "../../clients/typescript/src/feeds.ts";
import { element, List, setText } from "./list.ts";
import type { Line, Looks, NameOf } from "./list.ts";
import { styleSheet } from "./style.ts";

/** The limits that streams have. */
const LIMITS = [10, 25, 50, 100] as const;

/** What is shown about how up to date the lines are. The names are those of slots, with which a page says it otherwise. */
const STATUS: Partial<Record<State, string>> = { live: "live", polling: "every 5 s", reconnecting: "reconnecting" };

/** The HTML attributes that name an attribute of subjects. */
const FROM = ["name-from", "picture-from", "link-from"] as const;

/** The ranking of a board. */
export class RolltopBoard extends HTMLElement {
  static readonly observedAttributes = ["src", "board", "by", "key", "limit", "window", "period", "label", "href", "tiers", "tie", "removed", ...FROM];

  readonly #list = new List();
  readonly #label = element("span", "label");
  readonly #statusText = document.createElement("slot");
  readonly #status = element("span", "status", element("span", "dot"), this.#statusText);
  readonly #messageText = document.createElement("slot");
  readonly #message = element("div", "message", this.#messageText);
  #isQueued = false;
  #followed: { view: View; stop: () => void } | undefined;
  /** What is followed: the service, the board, the window, the period and the key of the ranking, and the key with which it is read. */
  #ranking = "";
  #key = "";
  /** The number of lines to show, and the number to ask for. */
  #limit = 0;
  #asked = 0;
  /** The attributes of subjects to ask for. */
  #attributes = "";
  #lines: Line[] = [];
  #nameOf: NameOf | null = null;
  /** The page that the last event reported. */
  #told: Page | undefined;
  #error = "";

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styleSheet()];
    root.append(element("div", "header", this.#label, this.#status), this.#list.list, this.#message);
  }

  /** How up to date the lines are. The attribute `data-state` says the same. */
  get state(): State {
    return (this.dataset["state"] ?? "loading") as State;
  }

  /** The key with which the ranking is read. The attribute `key` says the same. */
  get key(): string {
    return this.getAttribute("key") ?? "";
  }

  set key(key: string | null) {
    if (key) this.setAttribute("key", key);
    else this.removeAttribute("key");
  }

  /** The page that is shown, with as many lines as are shown; null if there is none. */
  get page(): Page | null {
    const page = this.#followed?.view.page;
    return page ? { ...page, items: page.items.slice(0, this.#limit) } : null;
  }

  /** The function that returns the text to show for a subject, in place of the subject. */
  get nameOf(): NameOf | null {
    return this.#nameOf;
  }

  set nameOf(nameOf: NameOf | null) {
    this.#nameOf = nameOf;
    this.#queue();
  }

  connectedCallback(): void {
    // A value from before the script was loaded hides the accessor.
    for (const name of ["nameOf", "key"] as const) {
      const own = Object.getOwnPropertyDescriptor(this, name);
      if (!own) continue;
      Reflect.deleteProperty(this, name);
      Object.assign(this, { [name]: own.value as unknown });
    }
    this.#queue();
  }

  disconnectedCallback(): void {
    this.#queue();
  }

  attributeChangedCallback(): void {
    this.#queue();
  }

  /** Updates after the present script, so that several changes, or a move within the page, are one. */
  #queue(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    queueMicrotask(() => {
      this.#isQueued = false;
      this.#update();
    });
  }

  /** Follows what the attributes say. */
  #update(): void {
    const text = (name: string): string => this.getAttribute(name)?.trim() ?? "";
    const [board, window, period] = [text("board"), text("window"), text("period")];
    // Spaces at its ends are part of it.
    const by = this.getAttribute("by") ?? "";
    setText(this.#label, text("label"));
    this.#label.hidden = text("label") === "";
    this.#list.list.setAttribute("aria-label", text("label") || [board, by].filter(Boolean).join(", "));

    const limit = Math.min(Math.max(Number.parseInt(text("limit"), 10) || 10, 1), 100);
    const asked = LIMITS.find((allowed) => allowed >= limit) ?? 100;
    const base = serviceAt(this.getAttribute("src"));
    const key = text("key");
    const isKey = /^[\x21-\x7e]*$/.test(key);
    const attributes = [...new Set(FROM.map(text))].filter(Boolean).join();
    const ranking = this.isConnected && board && base && isKey ? JSON.stringify([base, board, window, period, by]) : "";
    if (limit !== this.#limit) this.#told = undefined;
    this.#limit = limit;
    if (ranking !== this.#ranking || asked !== this.#asked || attributes !== this.#attributes || key !== this.#key) {
      // Until the first page comes, lines of another limit or key are shown, but not those of another ranking.
      if (ranking !== this.#ranking) this.#lines = [];
      [this.#ranking, this.#asked, this.#attributes, this.#key, this.#told] = [ranking, asked, attributes, key, undefined];
      this.#followed?.stop();
      const wanted = { board, window, period, by, attributes, limit: asked };
      this.#followed = base && ranking ? follow(base, wanted, () => this.#show(), key) : undefined;
    }
    if (!this.isConnected) return;
    if (this.#followed) this.#show();
    else if (!board) this.#render("error", "the attribute 'board' is missing");
    else this.#render("error", `the attribute '${base ? "key" : "src"}' is not ${base ? "a key" : "an address"}`);
  }

  /** Shows the present lines of the view. */
  #show(): void {
    const { state, page, message, code } = this.#followed!.view;
    if (page) this.#lines = page.items;
    else if (state === "error") this.#lines = [];
    this.#render(state, code === "key_required" && !this.#key ? `the attribute 'key' is missing: ${message}` : message);
    if (!page || page === this.#told) return;
    this.#told = page;
    this.dispatchEvent(new CustomEvent("rolltop-change", { bubbles: true, composed: true, detail: this.page }));
  }

  #render(state: State, error: string): void {
    const lines = this.#lines.slice(0, this.#limit);
    const isEmpty = lines.length === 0 && state !== "error" && this.#followed?.view.page !== undefined;
    this.dataset["state"] = state;
    this.toggleAttribute("data-empty", isEmpty);
    this.#list.list.hidden = lines.length === 0;
    const [nameFrom, pictureFrom, linkFrom] = FROM.map((name) => this.getAttribute(name)?.trim() ?? "") as [string, string, string];
    const looks: Looks = {
      template: this.getAttribute("href"),
      nameOf: this.#nameOf,
      removed: this.getAttribute("removed")?.trim() || "removed",
      showsTiers: this.hasAttribute("tiers"),
      showsTies: this.hasAttribute("tie"),
      ...{ nameFrom, pictureFrom, linkFrom },
    };
    this.#list.list.toggleAttribute("data-pictures", pictureFrom !== "");
    this.#list.show(lines, looks);

    // What is final is up to date without being followed.
    const status = this.#followed?.view.page?.period?.final ? undefined : STATUS[state];
    this.#status.hidden = status === undefined;
    this.#statusText.name = status === undefined ? "none" : state;
    setText(this.#statusText, status ?? "");
    const [name, message] =
      state === "error"
        ? (["error", `This ranking cannot be shown: ${error}`] as const)
        : isEmpty
          ? (["empty", "Nothing counted yet."] as const)
          : (["loading", "Loading…"] as const);
    this.#message.hidden = lines.length > 0;
    this.#messageText.name = name;
    setText(this.#messageText, message);
    if (error && error !== this.#error) console.warn(`<rolltop-board>: ${error}`);
    this.#error = error;
  }
}

/** Returns the address of a service without a slash at the end: by default the directory of this script. */
function serviceAt(src: string | null): string | null {
  try {
    const url = src === null ? new URL(".", import.meta.url) : new URL(src, document.baseURI);
    return /^https?:$/.test(url.protocol) ? (url.origin + url.pathname).replace(/\/+$/, "") : null;
  } catch {
    return null;
  }
}

// The script may be included more than once.
if (!customElements.get("rolltop-board")) customElements.define("rolltop-board", RolltopBoard);
