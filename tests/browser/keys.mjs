// What the tests of keys have in common: services with keys, and a watch on where a key must not be.

import assert from "node:assert/strict";
import { BOARDS, CLOCK } from "./console.mjs";
import { makeKey, startService } from "./harness.mjs";

/** The error in the console of a page for a request that was refused. */
export const REFUSED = /status of (401|403)/;

/** The key of the tests themselves. */
export const ADMIN = makeKey({ name: "the tests", scopes: ["admin"] });

/** Returns the text of a configuration with the boards and these keys. */
export const configWith = (keys) => [BOARDS, ...[ADMIN, ...keys].map(({ table }) => table)].join("\n");

/** Starts a service with these keys. `settings` are lines at the beginning of its configuration. */
export const startWithKeys = (keys, settings = "") =>
  startService({ clock: CLOCK, key: ADMIN.text, config: `${settings}\n${configWith(keys)}` });

/** Collects what must not have a key, addresses and messages in the console, in `texts`; and requests to the API in `calls`. */
export function watch(page) {
  const seen = { texts: [], calls: [] };
  page.context().on("request", (request) => {
    seen.texts.push(request.url(), request.postData() ?? "");
    if (new URL(request.url()).pathname.startsWith("/v1/")) seen.calls.push(request);
  });
  page.context().on("console", (message) => seen.texts.push(message.text()));
  return seen;
}

/** Returns the header `Authorization` of a request. */
export const authorizationOf = async (request) => (await request.allHeaders()).authorization;

/** Checks that the secret of a key is in none of these texts. */
export function isAbsent(key, texts) {
  const secret = key.text.split("_")[2];
  for (const text of texts) assert.ok(!text.includes(secret), `the key is in ${text.replaceAll(secret, "…")}`);
}
