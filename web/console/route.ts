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

export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});

/** Returns the address of a page. */
export function href(path: string[], query: Record<string, string | null | undefined> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] != null && pair[1] !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Goes to a page. */
export function go(path: string[], query: Record<string, string | null | undefined> = {}): void {
  location.hash = href(path, query);
}
