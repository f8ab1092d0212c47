// How the site is built from Markdown; pages.mjs says from which files. Settings are environment variables:
//
//   ROLLTOP_SITE_REPOSITORY   the address of the repository, for links to files that are no pages [default: none]
//   ROLLTOP_SITE_REVISION     the branch or tag that such links show [default: HEAD]
//   ROLLTOP_SITE_BASE         the path at which the site is served [default: /]

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { defineConfig } from "vitepress";
import { REPOSITORY, ROOT, address, resolve, sidebar, slug } from "../pages.mjs";
import { pages } from "../reference/pages.mjs";

/** Leads the links of a page to pages of the site or to the repository, and adapts what is written for other readers. */
function adapt(md) {
  md.core.ruler.push("adapt", ({ tokens, env }) => {
    const file = relative(ROOT, env.realPath ?? env.path);
    for (const [at, token] of tokens.entries()) {
      // What follows the comma is for rustdoc.
      if (token.type === "fence") token.info = token.info.split(",")[0];
      // Vite takes a path without a dot for the name of a package.
      if (token.type === "html_block") token.content = token.content.replace(/ (src|srcset)="(?=\w[\w/.-]*")/g, ' $1="./');
      // A head without text is not one.
      if (token.type === "th_open" && tokens[at + 1].content === "") token.tag = tokens[at + 2].tag = "td";
    }
    for (const { children } of tokens) {
      const dead = [];
      for (const token of children ?? []) {
        if (token.type === "link_open") {
          const target = resolve(file, token.attrGet("href"));
          if (target) token.attrSet("href", target);
          else Object.assign(token, { type: "span_open", tag: "span", attrs: null });
          dead.push(!target);
        } else if (token.type === "link_close" && dead.pop()) Object.assign(token, { type: "span_close", tag: "span" });
      }
    }
  });
}

const reference = pages()
  .slice(1)
  .map(({ name, title }) => ({ text: title, link: `/reference/${name}.md` }));

const icon = readFileSync(`${ROOT}web/console/icon.svg`, "base64");

export default defineConfig({
  title: "Rolltop",
  description: "Leaderboards over sliding windows, on your own server",
  lang: "en",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `data:image/svg+xml;base64,${icon}` }]],
  base: process.env.ROLLTOP_SITE_BASE || "/",
  srcDir: "..",
  srcExclude: ["{target,data,deploy,web,tests,src,fuzz,examples/!(site)}/**", "site/dist/**"],
  rewrites: (file) => address(file) ?? file,
  outDir: "dist",
  cacheDir: "node_modules/.cache",
  // Only what a visitor opens is loaded.
  router: { prefetchLinks: false },
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    languageAlias: { console: "shellsession" },
    anchor: { slugify: slug },
    config: adapt,
  },
  themeConfig: {
    // The pages of the reference are many: they are only listed where one of them is shown.
    sidebar: { "/reference/": sidebar(reference), "/": sidebar([]) },
    outline: { level: [2, 3] },
    search: { provider: "local" },
    socialLinks: REPOSITORY ? [{ icon: "git", link: REPOSITORY, ariaLabel: "Repository" }] : [],
    docFooter: { prev: false, next: false },
  },
  vite: {
    // Pages are outside of this folder, where Vite finds no packages.
    resolve: { alias: { vue: `${ROOT}site/node_modules/vue` } },
    // The pages of the console are no entries of this site.
    optimizeDeps: { entries: [] },
    // Nothing here uses this part of Vue.
    define: { __VUE_OPTIONS_API__: "false" },
    server: { watch: { ignored: ["**/target/**"] } },
  },
});
