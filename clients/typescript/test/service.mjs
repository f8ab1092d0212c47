// Starts the service, and a Redis, for tests.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const program = process.env.ROLLTOP_TEST_PROGRAM;
if (!program) throw new Error("ROLLTOP_TEST_PROGRAM must name the program of the service");

/** The first server that runs: those of the environment are what `tests/run` has found. */
const server = [process.env.ROLLTOP_TEST_REDIS, "redis-server", process.env.ROLLTOP_TEST_VALKEY, "valkey-server"].find(
  (name) => name && spawnSync(name, ["--version"]).status === 0,
);

/** Whether there is a server. In a CI run nothing may be left out. */
export const hasRedis = server !== undefined;
if (!hasRedis && process.env.CI) throw new Error("CI is set, and there is neither redis-server nor valkey-server");

const folder = () => mkdtempSync(join(tmpdir(), "rolltop-client-"));

/** Returns a port that is free now. */
export const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

const isOpen = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => (socket.destroy(), resolve(true)));
    socket.on("error", () => resolve(false));
  });

/** Waits until a condition holds. */
export async function until(condition, what, time = 20_000) {
  for (const end = Date.now() + time; ;) {
    if (await condition()) return;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts a Redis. Returns its address and what stops it. */
export async function startRedis() {
  const port = await freePort();
  const directory = folder();
  const process = spawn(server, ["--port", port, "--save", "", "--bind", "127.0.0.1", "--dir", directory], {
    stdio: "ignore",
  });
  const stop = () => {
    process.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  await until(() => isOpen(port), "Redis");
  return { url: `redis://127.0.0.1:${port}`, stop };
}

/** A service on a store, which can be killed and started again on the same port and data. */
export class Running {
  constructor(config, options) {
    this.options = options;
    this.directory = folder();
    // The built-in configuration has boards that also count the events of tests.
    writeFileSync(join(this.directory, "rolltop.toml"), config);
  }

  static start(...options) {
    return Running.startWith("", ...options);
  }

  /** Starts a service with the text of a configuration. */
  static async startWith(config, ...options) {
    const running = new Running(config, options);
    running.port = await freePort();
    await running.start();
    return running;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async start() {
    const config = join(this.directory, "rolltop.toml");
    const data = join(this.directory, "data");
    const fixed = [
      "serve",
      "--config",
      config,
      "--listen",
      `127.0.0.1:${this.port}`,
      "--data-dir",
      data,
      "--workers",
      "2",
    ];
    this.process = spawn(program, [...fixed, ...this.options], {
      stdio: ["ignore", "ignore", "pipe"],
      cwd: this.directory,
    });
    let log = "";
    this.process.stderr.on("data", (data) => (log = (log + data).slice(-4000)));
    await until(async () => {
      if (this.process.exitCode !== null) throw new Error(`the service has ended: ${log}`);
      return (await fetch(`${this.url}/readyz`).catch(() => undefined))?.ok;
    }, "the service");
  }

  /** Ends the service at once, as a crash does. */
  async kill() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
  }

  async stop() {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
