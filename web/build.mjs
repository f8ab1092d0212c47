// Bundles the console and the widget into built/, which is committed, so that building Rolltop does not need Node.
//
//   node build.mjs            writes built/
//   node build.mjs --check    fails if built/ is not what the sources make
//
// built/sources.sha256 has the hash of the sources. `cargo test` computes it again, so a change of a source without a
// build is noticed where there is no Node.

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const LICENSES = "/*! Contains Preact (MIT, (c) Jason Miller) and Preact Signals (MIT, (c) Preact Team). */";

/** Returns the bundle of an entry point. */
async function bundle(entry, banner) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    jsx: "automatic",
    jsxImportSource: "preact",
    banner: banner ? { js: banner } : {},
  });
  return result.outputFiles[0].text;
}

/** The sources of the client, of which the bundles have parts. */
const CLIENT = "../clients/typescript/src";

/**
 * Returns the hash of all sources: of their paths and texts, each with its length before it, in the order of paths. What
 * is generated from the API's description has only types, which are no part of a bundle.
 */
async function hashOfSources() {
  const hash = createHash("sha256");
  const paths = ["build.mjs", "package.json", "package-lock.json"];
  for (const folder of ["console", "widget", CLIENT]) {
    for (const entry of await readdir(join(here, folder), { recursive: true, withFileTypes: true })) {
      const path = relative(here, join(entry.parentPath, entry.name)).replaceAll("\\", "/");
      if (entry.isFile() && path !== `${CLIENT}/schema.ts`) paths.push(path);
    }
  }
  for (const path of paths.sort()) {
    const text = await readFile(join(here, path));
    hash.update(`${path} ${text.length}\n`).update(text);
  }
  return `${hash.digest("hex")}\n`;
}

const style = await readFile(join(here, "console/console.css"), "utf8");
const files = {
  "index.html": await readFile(join(here, "console/index.html"), "utf8"),
  "icon.svg": await readFile(join(here, "console/icon.svg"), "utf8"),
  "console.js": await bundle("console/main.tsx", LICENSES),
  "console.css": (await transform(style, { loader: "css", minify: true, charset: "utf8" })).code,
  "rolltop-board.js": await bundle("widget/rolltop-board.ts"),
  "sources.sha256": await hashOfSources(),
};

const check = process.argv.includes("--check");
await mkdir(join(here, "built"), { recursive: true });
let stale = false;
for (const [name, text] of Object.entries(files)) {
  const path = join(here, "built", name);
  if (check) {
    const built = await readFile(path, "utf8").catch(() => "");
    if (built !== text) {
      console.error(`web/built/${name} is not what the sources make: run "npm ci && npm run build" in web/`);
      stale = true;
    }
  } else {
    await writeFile(path, text);
  }
}
process.exitCode = stale ? 1 : 0;
