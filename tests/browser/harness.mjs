// Helpers of the browser tests: the built program on a free port, pages in a browser that fail a test when something
// goes wrong in them, a server for pages of another origin, and seeded random numbers.
//
//   test("what it does", inBrowser({ device: "phone" }, async ({ page, allow }) => {
//     const service = await startService({ clock: "2026-01-02T10:07:00Z" });
//     await page.goto(`${service.base}/`);
//     await until(async () => (await page.title()) === "Rolltop", "the title");
//     await checkAccessibility(page);
//   }));
//
// A test fails on a request to another host than this one, on an error in the console (which includes violations of a
// content security policy and failed requests) and on an uncaught error, unless it has called `allow` with a pattern.
// Tests wait for conditions, never for a time. What is started is stopped at the end of the file.
//
// Environment:
//   ROLLTOP_TEST_PROGRAM    the program under test [default: debug/rolltop in CARGO_TARGET_DIR, or in target]
//   ROLLTOP_TEST_CHROMIUM   the browser [default: the first of CHROMIUMS on PATH]
//   ROLLTOP_TEST_SEED       the seed of random tests, to repeat one [default: another one each time]

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CHROMIUMS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/** The time that a condition may take to become true. */
const PATIENCE = 20_000;

const require = createRequire(join(ROOT, "web/package.json"));

const started = [];

/** Calls a function at the end of the file, to stop what was started. */
export const atEnd = (stop) => started.push(stop);
after(async () => {
  const stopped = await Promise.allSettled(started.map(async (stop) => stop()));
  for (const { reason } of stopped) if (reason) throw reason;
});

/** Waits until a condition returns something true, and returns that. Errors of the condition count as false. */
export async function until(condition, what, patience = PATIENCE) {
  const deadline = performance.now() + patience;
  for (let last; ; ) {
    try {
      const value = await condition();
      if (value) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) assert.fail(`not within ${patience} ms: ${what}; at last ${last}`);
    await pause(20);
  }
}

// --- The service ---------------------------------------------------------------------------------------------------

/** Returns the path of the program under test. */
export function program() {
  const folder = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  const path = process.env.ROLLTOP_TEST_PROGRAM ?? join(folder, "debug/rolltop");
  assert.ok(existsSync(path), `${path} does not exist: run "cargo build" first, or set ROLLTOP_TEST_PROGRAM`);
  return path;
}

/**
 * Starts `rolltop serve` on a free port with its data in a temporary directory and the built-in boards.
 *
 * - `clock`: the time of a simulated clock, which `setClock` moves
 * - `origins`: the origins whose pages may use it (`--cors-origins`)
 * - `config`: the text of a configuration file
 * - `key`: the key with which the test itself makes calls
 * - `args`: further arguments
 */
export async function startService({ clock, origins = [], config, key, args = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "rolltop-browser-"));
  const fixed = ["--data-dir", join(folder, "data"), ...args];
  if (clock) fixed.push("--clock", `simulated=${clock}`);
  if (origins.length > 0) fixed.push("--cors-origins", origins.join(","));
  if (config !== undefined) {
    writeFileSync(join(folder, "rolltop.toml"), config);
    fixed.push("--config", join(folder, "rolltop.toml"));
  }
  const service = new Service(folder, fixed, key);
  atEnd(async () => {
    await service.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await service.start("127.0.0.1:0");
  return service;
}

// The processes of services. None outlives the tests.
const running = new Set();
process.once("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** A process of the service, and a small client of it. `base` is its address, such as `http://127.0.0.1:4711`. */
class Service {
  #folder;
  #args;
  #key;
  #child;

  constructor(folder, args, key) {
    this.#folder = folder;
    this.#args = args;
    this.#key = key;
  }

  /** Replaces the text of the configuration file, whose keys the service reads again. */
  configure(config) {
    writeFileSync(join(this.#folder, "rolltop.toml"), config);
  }

  /** Starts the program on an address and waits until it says where it listens. */
  async start(listen) {
    // Settings of the developer do not apply.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLTOP_")));
    const child = spawn(program(), ["serve", "--listen", listen, ...this.#args], {
      cwd: this.#folder,
      env: { ...env, RUST_LOG: "warn" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
    await until(() => /http:\/\/[^/\s]+\/v1/.test(printed) || child.exitCode !== null, "the program says where it listens");
    this.base = /http:\/\/[^/\s]+/.exec(printed)?.[0];
    assert.ok(this.base, `the program ended with status ${child.exitCode}`);
  }

  /** Ends the process at once, as `kill -9` does, and waits for its end. Does nothing if it has ended. */
  async kill() {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** Starts the program again on the same port with the same data. */
  async restart() {
    await this.kill();
    await this.start(new URL(this.base).host);
  }

  /** Makes a call that must succeed. Returns the JSON of the response. */
  async call(method, path, body) {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    if (this.#key) headers.authorization = `Bearer ${this.#key}`;
    const response = await fetch(this.base + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** Counts amounts by subject, such as `{ "post-1": 3 }`, on a board. */
  async count(board, amounts) {
    const increments = Object.entries(amounts).map(([subject, amount]) => ({ subject, amount }));
    const { rejected } = await this.call("POST", `/v1/boards/${board}/increments`, { increments });
    assert.deepEqual(rejected, []);
  }

  /** Moves the simulated clock forward to a time. */
  async setClock(now) {
    await this.call("PUT", "/v1/clock", { now });
  }
}

/** Makes a key, and returns `{ id, text, table }`. `table` is the table of a configuration, which has a hash of the key. */
export function makeKey({ kind = "secret", ...grant }) {
  const [id, bits] = [randomBytes(8).toString("hex"), randomBytes(32)];
  const hash = createHash("sha256").update(bits).digest("hex");
  const members = Object.entries({ id, hash, kind, name: `key ${id}`, ...grant });
  const table = ["[[keys]]", ...members.map(([name, value]) => `${name} = ${JSON.stringify(value)}`)].join("\n") + "\n";
  return { id, text: `${kind === "secret" ? "rt" : "rtp"}_${id}_${bits.toString("hex")}`, table };
}

// --- Pages of another origin ---------------------------------------------------------------------------------------

/**
 * Starts an HTTP server on a free port and returns `{ base, requests, close }`. `pages` has, by path, a text (HTML), an
 * object `{ type, body, headers }` or a function `(request, response)`; the key `*` is for all other paths.
 * `requests` lists the method and the path of each request.
 */
export async function startSite(pages) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const { pathname } = new URL(request.url, "http://site");
    // Browsers request it automatically.
    if (pathname === "/favicon.ico") return response.writeHead(204).end();
    const page = pages[pathname] ?? pages["*"];
    if (page === undefined) return response.writeHead(404, { "content-type": "text/plain" }).end("not found");
    if (typeof page === "function") return page(request, response);
    const { type = "text/html; charset=utf-8", body = page, headers = {} } = typeof page === "string" ? {} : page;
    response.writeHead(200, { "content-type": type, "cache-control": "no-store", ...headers }).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  atEnd(close);
  return { base: `http://127.0.0.1:${server.address().port}`, requests, close };
}

// --- The browser ---------------------------------------------------------------------------------------------------

function chromiumPath() {
  if (process.env.ROLLTOP_TEST_CHROMIUM) return process.env.ROLLTOP_TEST_CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  const isProgram = (path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  const found = CHROMIUMS.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
  assert.ok(found, `there is no browser: install one of ${CHROMIUMS.join(", ")}, or set ROLLTOP_TEST_CHROMIUM`);
  return found;
}

let launched;

/** Returns the browser, which all tests of a file share. */
function browser() {
  launched ??= (async () => {
    const { chromium } = require("playwright-core");
    const instance = await chromium.launch({
      executablePath: chromiumPath(),
      args: [
        ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
        ...["--disable-component-update", "--disable-sync", "--no-proxy-server"],
        // Nothing outside of this machine can be reached, whatever a page asks for.
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
      ],
    });
    atEnd(() => instance.close());
    return instance;
  })();
  return launched;
}

const DEVICES = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true },
};

/**
 * Returns the function of a test that runs `body` with a page of its own. Options:
 *
 * - `device`: `desktop` (1280 by 800, the default) or `phone` (390 by 844, with touch)
 * - `scheme`: `light` (the default) or `dark`
 * - `reducedMotion`: whether the user asks for less motion
 * - `context`: further options of Playwright's `newContext`
 *
 * `body` gets `page`, `context`, `allow(pattern)`, which makes errors that match expected, and `problems`, the list of
 * those that were not.
 */
export function inBrowser(options, body) {
  const { device = "desktop", scheme = "light", reducedMotion = false, context: further } = options;
  return async (t) => {
    const context = await (await browser()).newContext({
      ...DEVICES[device],
      colorScheme: scheme,
      reducedMotion: reducedMotion ? "reduce" : "no-preference",
      ...further,
    });
    context.setDefaultTimeout(PATIENCE);
    const allowed = [];
    const seen = [];
    const note = (text) => seen.push(text);
    context.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      const isHere = ["127.0.0.1", "localhost"].includes(hostname) || ["data:", "blob:"].includes(protocol);
      if (!isHere) note(`a request to another host: ${request.url()}`);
    });
    context.on("console", (message) => {
      if (message.type() === "error") note(`console: ${message.text()} (${message.location().url})`);
    });
    context.on("weberror", (webError) => note(`uncaught: ${webError.error().stack}`));
    const problems = () => seen.filter((text) => !allowed.some((pattern) => pattern.test(text)));
    const page = await context.newPage();
    try {
      await body({ t, page, context, allow: (pattern) => allowed.push(pattern), problems });
      assert.deepEqual(problems(), [], "nothing unexpected happens in the page");
    } catch (error) {
      for (const text of problems()) t.diagnostic(text);
      const picture = join(ROOT, "target/browser", `${t.name.replace(/[^\w]+/g, "-")}.png`);
      if (await page.screenshot({ path: picture }).catch(() => null)) t.diagnostic(`a picture of the page: ${picture}`);
      throw error;
    } finally {
      await context.close();
    }
  };
}

const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Checks a page with axe: it finds nothing that WCAG 2.2 (A, AA) or its best practices forbid. */
export async function checkAccessibility(page, { options = {} } = {}) {
  // Evaluated by the debugger, so a content security policy does not matter.
  await page.evaluate(`${axeSource}; undefined`);
  const violations = await page.evaluate(async (given) => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"], ...given });
    return violations.map(({ id, help, nodes }) => ({
      id,
      help,
      nodes: nodes.map(({ target, failureSummary }) => `${target.flat().join(" ")}: ${failureSummary}`),
    }));
  }, options);
  assert.deepEqual(violations, []);
}

/** Pretends that a page is hidden, or visible again, as if the user had changed to another tab. */
export async function setHidden(page, hidden) {
  await page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    Object.defineProperty(document, "hidden", { value: state === "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  }, hidden ? "hidden" : "visible");
}

// --- Random numbers ------------------------------------------------------------------------------------------------

/** Returns the function of a test that gets a source of random numbers, whose seed an error names. */
export function withRandom(body) {
  return async (t) => {
    const seed = Number(process.env.ROLLTOP_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));
    try {
      await body({ t, random: new Random(seed) });
    } catch (error) {
      error.message += `\nrepeat it with ROLLTOP_TEST_SEED=${seed}`;
      throw error;
    }
  };
}

/** A source of random numbers (mulberry32). */
export class Random {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0 up to, but not including, 1. */
  number() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns a whole number from 0 up to, but not including, `end`. */
  below(end) {
    return Math.floor(this.number() * end);
  }

  /** Returns one of the values. */
  pick(values) {
    return values[this.below(values.length)];
  }
}
