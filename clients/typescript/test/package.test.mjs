// The package itself: its size in a page, and the example of its description.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Running } from "./service.mjs";

const root = new URL("../", import.meta.url);

test("the client is less than 6.5 KB in a page", async (t) => {
  const { default: esbuild } = await import(process.env.ROLLTOP_TEST_ESBUILD);
  const { outputFiles } = await esbuild.build({
    stdin: {
      contents: 'import { rolltop } from "rolltop"; globalThis.rolltop = rolltop;',
      resolveDir: root.pathname,
    },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false,
  });
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  t.diagnostic(`${size} bytes with gzip, ${outputFiles[0].contents.length} without`);
  assert.ok(size < 6.5 * 1024, `${size}`);
  const unused = await esbuild.build({
    stdin: { contents: 'import { rolltop } from "rolltop";', resolveDir: root.pathname },
    bundle: true,
    minify: true,
    write: false,
  });
  assert.ok(unused.outputFiles[0].contents.length < 30, "what a page does not use is left out");
});

test("the example of the description", async (t) => {
  const running = await Running.start();
  t.after(() => running.stop());
  const [, example] = /```js\n(.*?)```/s.exec(readFileSync(new URL("README.md", root), "utf8"));
  assert.ok(example.trim().split("\n").length <= 12);
  writeFileSync(new URL("example.mjs", root), example.replace("http://localhost:8080", running.url));
  const output = execFileSync(process.execPath, [new URL("example.mjs", root).pathname], { encoding: "utf8" });
  assert.equal(output, "1 post-2 5\n2 post-1 1\n");
});

test("each entry of the package has its types, and the package nothing of the sources", async () => {
  const folder = new URL("node_modules/rolltop/", root);
  const { exports, dependencies, version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  for (const [entry, { types, default: file }] of Object.entries(exports)) {
    const names = Object.keys(await import(new URL(file, folder).href));
    const text = readFileSync(new URL(types, folder), "utf8");
    assert.ok(names.length > 0 && names.every((name) => text.includes(name)), entry);
  }
  assert.deepEqual(readdirSync(folder).sort(), ["README.md", "dist", "package.json"]);
  assert.equal(dependencies, undefined);
  assert.match(version, /^\d+\.\d+\.\d+$/);
});
