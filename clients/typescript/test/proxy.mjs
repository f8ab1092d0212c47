// A proxy that does to requests what networks do: it cuts connections before, while and after a request was forwarded,
// keeps answers back, and sends requests twice, the second time perhaps much later.

import { connect, createServer } from "node:net";

/** Starts a proxy to a port. `random` returns numbers from 0 to 1. Returns its address and counts of the accidents. */
export async function startProxy(target, random) {
  const accidents = { before: 0, within: 0, after: 0, silent: 0, late: 0, twice: 0, none: 0, refused: 0 };
  const sockets = new Set();
  const timers = new Set();

  const later = (time, call) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      call();
    }, time);
    timers.add(timer);
  };

  /** Sends a request to the service, and what it answers to a socket, if there is one. */
  const forward = (request, client) => {
    const upstream = connect(target, "127.0.0.1", () => upstream.write(request));
    sockets.add(upstream);
    upstream.on("data", (data) => client?.write(data));
    upstream.on("error", () => {
      accidents.refused++;
      client?.destroy();
    });
    upstream.on("close", () => {
      sockets.delete(upstream);
      client?.end();
    });
    client?.on("close", () => upstream.destroy());
    return upstream;
  };

  const handle = (request, client) => {
    const dice = random();
    const kind =
      dice < 0.07
        ? "before"
        : dice < 0.11
          ? "within"
          : dice < 0.19
            ? "after"
            : dice < 0.21
              ? "silent"
              : dice < 0.29
                ? "late"
                : dice < 0.39
                  ? "twice"
                  : "none";
    accidents[kind]++;
    if (kind === "before") client.destroy();
    else if (kind === "within") {
      forward(request.subarray(0, Math.floor(request.length * random())), undefined);
      later(20, () => client.destroy());
    } else if (kind === "after") {
      // The service answers, and nobody hears it.
      forward(request, undefined).on("data", () => client.destroy());
      later(1000, () => client.destroy());
    } else if (kind === "silent") forward(request, undefined);
    else if (kind === "late") later(random() * 300, () => forward(request, client));
    else {
      if (kind === "twice") later(random() < 0.5 ? 0 : random() * 3000, () => forward(request, undefined));
      forward(request, client);
    }
  };

  const server = createServer((client) => {
    sockets.add(client);
    let received = Buffer.alloc(0);
    client.on("error", () => {});
    client.on("close", () => sockets.delete(client));
    client.on("data", (data) => {
      received = Buffer.concat([received, data]);
      const end = received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = received.subarray(0, end).toString("latin1");
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (received.length < end + 4 + length) return;
      // One request for each connection, so that the end of an answer is the end of the connection.
      const closing = head.replace(/^connection: .*$/im, "connection: close");
      const request = Buffer.concat([
        Buffer.from(`${closing}\r\n\r\n`, "latin1"),
        received.subarray(end + 4, end + 4 + length),
      ]);
      received = Buffer.alloc(0);
      handle(request, client);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    for (const timer of timers) clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, accidents, stop, pending: () => timers.size };
}

/** Returns a generator of the same numbers for the same seed (mulberry32). */
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
