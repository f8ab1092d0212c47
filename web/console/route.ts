// The page that is shown: the part of the address after `#`.

import { signal } from "@preact/signals";

/** What the address names. */
export interface Route {
  /** The parts of the path, decoded: `#/boards/a%2Fb` is `["boards", "a/b"]`. */
  path: string[];
  query: URLSearchParams;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter((part) => part !== "").map(decoded), query: new URLSearchParams(query) };
}

history.scrollRestoration = "manual";

export const route = signal(read());

/** How far each page was scrolled when it was left, by its address; of the last pages only. */
const scrolled = new Map<string, number>();
let shown = location.hash;
let isForward = false;
/** How far to scroll the page that is opened: to its start, or, on the way back, to where it was left. */
export let scrollTo = 0;

addEventListener("hashchange", () => {
  scrolled.set(shown, scrollY);
  if (scrolled.size > 100) scrolled.clear();
  shown = location.hash;
  scrollTo = isForward ? 0 : (scrolled.get(shown) ?? 0);
  isForward = false;
  route.value = read();
});
addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (link && !isElsewhere && link.hash.startsWith("#/") && link.hash !== location.hash) isForward = true;
}, { capture: true });

/** Returns a text without halves of characters, which cannot be part of an address. */
function whole(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Returns the address of a page. */
export function href(path: string[], query: Record<string, string | null | undefined> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] != null && pair[1] !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${path.map((part) => encodeURIComponent(whole(part))).join("/")}${text ? `?${text}` : ""}`;
}

/** Goes to a page. */
export function go(path: string[], query: Record<string, string | null | undefined> = {}): void {
  const next = href(path, query);
  if (next === location.hash) return;
  isForward = true;
  location.hash = next;
}

/** Changes the query of the page that is shown, without a step in the history. */
export function replaceQuery(query: Record<string, string | null>): void {
  const next = href(route.value.path, query);
  history.replaceState(null, "", next);
  shown = next;
  route.value = read();
}
