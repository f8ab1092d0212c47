// The pages of the site: which files they are made from, at which address each stands, and where its links lead.

import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The address of the repository, such as `https://example.org/rolltop`. Without it, links to files that are no pages are plain text. */
export const REPOSITORY = (process.env.ROLLTOP_SITE_REPOSITORY ?? "").replace(/\/$/, "");
/** The branch or tag whose files such links show. */
const REVISION = process.env.ROLLTOP_SITE_REVISION || "HEAD";

// Pages from outside of docs/, which is all pages.
const FURTHER = {
  "README.md": "start.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
  "CHANGELOG.md": "changelog.md",
  "benches/peers/README.md": "comparison.md",
  "clients/python/README.md": "clients/python.md",
  "clients/rust/README.md": "clients/rust.md",
  "clients/typescript/README.md": "clients/typescript.md",
  "examples/site/README.md": "example-site.md",
};

/** Returns the path in the site of a file of the repository, and undefined of a file that is no page. */
export function address(file) {
  if (file === "site/reference/index.md" || file === "openapi/openapi.json") return "reference/index.md";
  if (file.startsWith("site/reference/")) return file.slice("site/".length);
  if (/^docs\/.*\.md$/.test(file)) return file.slice("docs/".length).replace(/README\.md$/, "index.md");
  return FURTHER[file];
}

/** Returns where a link of a file leads to: a page of the site, the repository, or nowhere (null). */
export function resolve(file, target) {
  if (/^([a-z]+:|#|\/)/.test(target)) return target;
  const [path, anchor] = target.split("#");
  const wanted = posix.normalize(posix.join(posix.dirname(file), path)).replace(/\/$/, "");
  const hash = anchor === undefined ? "" : `#${anchor}`;
  const page = address(wanted) ?? address(`${wanted}/README.md`);
  // Addresses begin at the root of the site, which VitePress adds.
  if (page) return `/${page}${hash}`;
  if (!existsSync(ROOT + wanted)) throw new Error(`${file}: there is no ${target}`);
  return REPOSITORY && `${REPOSITORY}/blob/${REVISION}/${wanted}${hash}` || null;
}

/** Makes the anchor of a heading as GitHub does, so that a link works in the repository and here. */
export const slug = (title) => title.toLowerCase().replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, "").replaceAll(" ", "-");

/** Returns what is at the side of each page: the lists of the front page, with the pages of the API's reference. */
export function sidebar(reference) {
  const groups = [];
  let group;
  for (const line of readFileSync(`${ROOT}docs/README.md`, "utf8").split("\n")) {
    const [, marks, text] = /^(##+) (.*)/.exec(line) ?? [];
    if (marks) group = { text, items: [] };
    if (marks === "##") groups.push(group);
    else if (marks) groups.at(-1).items.push(group);
    const item = /^- \[([^\]]+)\]\(([^)]+)\)/.exec(line);
    if (!item || !group) continue;
    const link = resolve("docs/README.md", item[2]);
    group.items.push({ text: item[1], link, ...(link === "/reference/index.md" && reference.length > 0 && { collapsed: true, items: reference }) });
  }
  return groups.filter(({ items }) => items.length > 0);
}
