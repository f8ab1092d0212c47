// What the tests of the console have in common: boards, and how its pages are read.

import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { inBrowser, until } from "./harness.mjs";

export const CLOCK = "2026-03-04T10:20:00Z";

/** A board of each kind. */
export const BOARDS = `
[boards.hot-posts]
metric = "COUNT(24h, like, post_id)"
slot = "1h"

[boards.device-logins]
metric = "COUNT(30m, login, device_id)"
slot = "1m"

[boards.trending]
metric = "COUNT(24h, like, post_id)"
slot = "1h"
windows = ["1h/1m", "7d/6h", "all"]

[boards.users-per-device]
metric = "COUNT_DISTINCT(30d, login, device_id, user_id)"
slot = "1d"
ranked = false

[boards.ever]
metric = "COUNT(all, like, post_id)"

[boards.kept]
metric = "COUNT(all, view, page_id)"
slot = "1h"
keep = "24h"

[boards.transfers]
metric = "SUM(1h, transfer, amount, customer_id)"
decimals = 2
ranked = false
mode = "from_first"
`;

/** A test in a browser whose local time is UTC. */
export const inUtc = (options, body) => inBrowser({ ...options, context: { timezoneId: "UTC", ...options.context } }, body);

/** Opens a page of the console, such as `boards/hot-posts`. */
export async function visit(page, service, path = "") {
  await page.goto(`${service.base}/#/${path}`);
  await page.locator("main h1").waitFor();
}

/** Counts `[subject, amount, at]` on a board. */
export async function countAt(service, board, items) {
  const increments = items.map(([subject, amount, at]) => ({ subject, amount, at }));
  const { rejected } = await service.call("POST", `/v1/boards/${board}/increments`, { increments });
  assert.deepEqual(rejected, []);
}

/** Waits until a function of the page returns this value. */
export async function becomes(read, expected, what) {
  let value;
  const isEqual = async () => JSON.stringify((value = await read())) === JSON.stringify(expected);
  await until(isEqual, what ?? "the value").catch((error) => {
    assert.deepEqual(value, expected, what);
    throw error;
  });
}

/** Returns the lines of the ranking as one sees them, without what a score has just lost, such as `1 post-3 5`. */
export const lines = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll(".ranking li")].map((line) =>
      ["rank", "subject", "score"].map((part) => {
        const cell = line.querySelector(`.ranking-${part}`).cloneNode(true);
        cell.querySelectorAll(".hidden, .ranking-loss").forEach((one) => one.remove());
        return cell.textContent;
      }).join(" ")));

/** Waits until the ranking has these lines. */
export const ranks = (page, expected) => becomes(() => lines(page), expected, "the ranking");

/** Returns the slots of the strip, oldest first: the height of each bar in percent of the highest. */
export const heights = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll(".strip .slot:not(.is-leaving)")]
      .map((slot) => [new DOMMatrix(getComputedStyle(slot).transform).e, Number(slot.querySelector(".slot-bar").getAttribute("height"))])
      .sort(([a], [b]) => a - b)
      .map(([, height]) => Math.round((height / 112) * 100)));

/** Returns the heights of a strip of this many slots. Only some of them have a bar. */
export const bars = (slots, some) => Array.from({ length: slots }, (_, index) => some[index] ?? 0);

/** Returns the labels below the strip, from left to right: the text and the place of the slot at which it begins. */
export const ticks = (page) =>
  page.evaluate(() => {
    const x = (one) => new DOMMatrix(one.style.transform).e;
    const slots = [...document.querySelectorAll(".strip .slot:not(.is-leaving)")].map(x).sort((a, b) => a - b);
    return [...document.querySelectorAll(".strip .tick")]
      .sort((a, b) => x(a) - x(b))
      .map((tick) => [tick.textContent, slots.findIndex((slot) => Math.abs(slot - x(tick)) < 0.01)]);
  });

/** Returns the text of the element that has the focus, with its kind: `h1 Boards`. */
export const focused = (page) =>
  page.evaluate(() => `${document.activeElement.localName} ${document.activeElement.ariaLabel ?? document.activeElement.textContent}`);

/** Returns the text below the strip. */
export const said = async (page) => (await page.locator(".strip-says").textContent()).trim();

/** Moves the pointer over a slot of the strip, counted from the oldest. */
export async function hover(page, index) {
  const box = await page.locator(".strip-slots").boundingBox();
  const slots = await page.locator(".strip .slot:not(.is-leaving)").count();
  // The frame of the window begins 5 pixels before the first slot; on the right of the last one are 8 pixels.
  const left = 5 + Number(await page.locator(".strip-window").getAttribute("x"));
  const x = box.x + left + ((index + 0.4) * (box.width - left - 8)) / slots;
  await page.mouse.move(x, box.y + 80);
}

/** Returns a figure of a page by its name, such as `Score`. */
export const figure = (page, name) => page.locator(".figure", { has: page.getByText(name, { exact: true }) }).locator("dd");

/** Returns the requests of a page whose path matches, as a list that grows. */
export function requestsOf(page, pattern) {
  const found = [];
  page.on("request", (request) => pattern.test(new URL(request.url()).pathname) && found.push(request));
  return found;
}

/** Returns the streams that a page has open, as a set that changes. */
export function streamsOf(page) {
  const open = new Set();
  page.on("request", (request) => /\/stream$/.test(new URL(request.url()).pathname) && open.add(request));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => open.delete(request));
  return open;
}

/** Returns a handler that forwards requests below a prefix of the path to a service. */
export function proxy(service, prefix) {
  return (request, response) => {
    const { hostname, port } = new URL(service.base);
    const path = request.url.slice(prefix.length);
    const onward = httpRequest({ hostname, port, path, method: request.method, headers: request.headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  };
}
