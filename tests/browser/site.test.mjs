// The example site: what a visitor sees and does.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { atEnd, checkAccessibility, inBrowser, program, ROOT, startService, startSite, until } from "./harness.mjs";

const PROGRAM = join(dirname(program()), "examples/site");
// A program from elsewhere has no examples beside it.
const skip = existsSync(PROGRAM) || process.env.CI || !process.env.ROLLTOP_TEST_PROGRAM ? false : `${PROGRAM} does not exist`;

/** The secret of the site's signing key in these tests, and a file with it. */
const SECRET = randomBytes(32).toString("hex");
const FOLDER = mkdtempSync(join(tmpdir(), "rolltop-site-"));
const SECRET_FILE = join(FOLDER, "secret");
writeFileSync(SECRET_FILE, `${SECRET}\n`);
atEnd(() => rmSync(FOLDER, { recursive: true }));

/** Starts the example on free ports, or with other arguments. Returns the addresses of the site and of Rolltop. */
async function startExample(args = ["--listen", "127.0.0.1:0", "--rolltop-listen", "127.0.0.1:0"]) {
  assert.ok(existsSync(PROGRAM), `${PROGRAM} does not exist: run "cargo build --example site"`);
  const child = spawn(PROGRAM, ["--secret-file", SECRET_FILE, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, RUST_LOG: "warn" },
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // It removes its temporary directory then.
  atEnd(() => (child.kill("SIGINT"), ended));
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
  const addresses = await until(() => {
    assert.equal(child.exitCode, null);
    const found = printed.match(/http:\/\/[\d.:]+/g);
    return found?.length === 2 && found;
  }, "the addresses");
  return { site: addresses[0], rolltop: addresses[1] };
}

/** Starts the example with arguments with which it ends. Returns what it says. */
async function failExample(args) {
  const child = spawn(PROGRAM, args, { stdio: ["ignore", "ignore", "pipe"] });
  atEnd(() => child.kill("SIGKILL"));
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  await until(() => child.exitCode !== null, "the end");
  assert.notEqual(child.exitCode, 0);
  return said;
}

/** Lets a page have the widget where the program does not serve it. */
async function withWidget(context, rolltop) {
  const url = `${rolltop}/rolltop-board.js`;
  if ((await fetch(url)).ok) return;
  const body = readFileSync(join(ROOT, "web/built/rolltop-board.js"), "utf8");
  const headers = { "access-control-allow-origin": "*" };
  await context.route(url, (route) => route.fulfill({ contentType: "text/javascript", headers, body }));
}

const top = (page) => page.locator("rolltop-board").first().locator("[part~=line]").allInnerTexts();
const isTop = (page, ...expected) =>
  until(async () => JSON.stringify((await top(page)).map((line) => line.split(/\s*\n\s*/))) === JSON.stringify(expected), `the top is ${expected}`);

/** Returns the ranking as a stranger reads it: `{ post: likes }`. */
async function likes(rolltop) {
  const response = await fetch(`${rolltop}/v1/boards/example-posts/rankings`);
  const { items } = await response.json();
  return Object.fromEntries(items.map(({ subject, score }) => [subject, score]));
}

/**
 * Sends a request from a page, as its scripts can. Returns the status with the members of the response, or the status 0 if
 * the browser did not let the page send it or read the response.
 */
const send = (page, url, { token, body = {}, method = "POST", ...more } = {}) =>
  page.evaluate(async ({ url, token, body, method, more }) => {
    const headers = { "content-type": "application/json", ...more.headers };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const sent = method === "GET" ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(url, { ...more, method, headers, body: sent }).catch(() => null);
    const text = (await response?.text()) ?? "";
    return { status: response?.status ?? 0, ...(text.startsWith("{") ? JSON.parse(text) : { text }) };
  }, { url, token, body, method, more });

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const decoded = (part) => JSON.parse(Buffer.from(part, "base64url").toString());

/** Signs a token with HS256. */
function sign(header, claims, secret = SECRET) {
  const text = `${encoded(header)}.${encoded(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

for (const device of ["desktop", "phone"]) {
  for (const scheme of ["light", "dark"]) {
    test(`a like counts once, on a ${scheme} ${device}`, { skip }, inBrowser({ device, scheme }, async ({ page, context }) => {
      const { site, rolltop } = await startExample();
      await withWidget(context, rolltop);
      await page.goto(site);
      await page.getByText("No likes in ten minutes.").waitFor();
      await page.getByRole("button", { name: "Like: Moss is winning" }).click();
      await isTop(page, ["1", "Moss is winning", "1"]);
      assert.ok(await page.getByRole("button", { name: "Liked: Moss is winning" }).isDisabled());
      const [{ name, httpOnly, sameSite }] = await context.cookies();
      assert.deepEqual([name, httpOnly, sameSite], ["person", true, "Lax"]);
      await page.getByRole("button", { name: "Like: The night trains are back" }).click();
      await isTop(page, ["1", "The night trains are back", "1"], ["1", "Moss is winning", "1"]);
      await page.reload();
      assert.ok(await page.getByRole("button", { name: "Liked: Moss is winning" }).isDisabled());
      await isTop(page, ["1", "The night trains are back", "1"], ["1", "Moss is winning", "1"]);
      await page.getByRole("link", { name: "Moss is winning" }).first().click();
      await page.waitForURL(`${site}/#moss`);
      await checkAccessibility(page);
      await page.screenshot({ path: join(ROOT, `target/browser/site-${device}-${scheme}.png`) });
    }));
  }
}

test("others move the list", { skip }, inBrowser({}, async ({ page, context }) => {
  const { site, rolltop } = await startExample();
  await withWidget(context, rolltop);
  await page.goto(site);
  await page.getByRole("button", { name: "Let others like too" }).click();
  await until(async () => (await top(page)).length >= 5, "five posts with likes", 60_000);
  const total = async () => (await top(page)).reduce((sum, line) => sum + Number(line.split("\n").at(-1)), 0);
  await page.getByRole("button", { name: "Stop the others" }).click();
  await page.getByRole("button", { name: "Let others like too" }).waitFor();
  await checkAccessibility(page);
  assert.ok((await total()) >= 5);
}));

test("a like is one request of the page, and sending it again changes nothing", { skip }, inBrowser({}, async ({ page, context }) => {
  const { site, rolltop } = await startExample();
  await withWidget(context, rolltop);
  await page.goto(site);
  const second = await context.newPage();
  await second.goto(site);
  // A token comes with the click, so a page may be open for longer than a token is valid.
  assert.ok(!(await page.content()).includes("eyJ"));

  const sending = page.waitForRequest((request) => request.url() === `${rolltop}/v1/events` && request.method() === "POST");
  await page.getByRole("button", { name: "Like: Moss is winning" }).click();
  const request = await sending;
  await page.getByRole("button", { name: "Liked: Moss is winning" }).waitFor();
  assert.deepEqual(await likes(rolltop), { moss: 1 });
  const headers = await request.allHeaders();
  assert.deepEqual([headers.cookie, request.postData()], [undefined, "{}"]);
  const token = headers.authorization.replace(/^Bearer /, "");
  const [, claims] = token.split(".").slice(0, 2).map(decoded);
  const pinned = { scopes: ["write"], event: { type: "like", fields: { post_id: "moss" } }, once: true };
  assert.deepEqual(claims.rolltop, pinned);
  const life = claims.exp - Date.now() / 1000;
  assert.ok(life > 540 && life <= 600, `the token is valid for ${life} s`);
  const [{ value: person }] = await context.cookies();
  assert.ok(!JSON.stringify(claims).includes(person), "the cookie is not for scripts");

  const counts = async (answer) => (({ status, accepted, duplicates }) => [status, accepted, duplicates])(await answer);
  for (const times of [1, 2, 3]) {
    assert.deepEqual(await counts(send(page, request.url(), { token })), [200, 0, 1], `replay ${times}`);
  }
  // The same person in another page, whose button knows nothing of it yet.
  await second.getByRole("button", { name: "Like: Moss is winning" }).click();
  await second.getByRole("button", { name: "Liked: Moss is winning" }).waitFor();
  // After a reload, and with a browser that has forgotten what the buttons showed.
  await page.reload();
  assert.ok(await page.getByRole("button", { name: "Liked: Moss is winning" }).isDisabled());
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  const answering = page.waitForResponse((response) => response.url() === `${rolltop}/v1/events` && response.status() === 200);
  await page.getByRole("button", { name: "Like: Moss is winning" }).click();
  assert.equal((await (await answering).json()).duplicates, 1);
  // Many at once, with tokens that are not the same.
  const tokens = await Promise.all(Array.from({ length: 10 }, () => send(page, "/token/radio").then(({ text }) => text)));
  const all = await Promise.all(tokens.map((token) => send(page, request.url(), { token })));
  assert.equal(all.reduce((sum, { accepted }) => sum + accepted, 0), 1);
  assert.deepEqual(await likes(rolltop), { moss: 1, radio: 1 });

  // Another person.
  await context.clearCookies();
  await page.evaluate(() => localStorage.clear());
  await page.goto(site);
  await page.getByRole("button", { name: "Like: Moss is winning" }).click();
  await isTop(page, ["1", "Moss is winning", "2"], ["2", "Building a radio without a kit", "1"]);
}));

test("edits, guesses and what a token is not for are refused", { skip }, inBrowser({}, async ({ page, context, allow }) => {
  const { site, rolltop } = await startExample();
  await withWidget(context, rolltop);
  await page.goto(site);
  allow(/status of (400|401|403|404)/);
  const { text: token } = await send(page, "/token/moss");
  const [events, board] = [`${rolltop}/v1/events`, `${rolltop}/v1/boards/example-posts`];
  const at = new Date(Date.now() - 60_000).toISOString();
  const like = (post_id) => ({ type: "like", fields: { post_id } });

  // Another body than the one that the token is for.
  for (const body of [
    like("letters"),
    { ...like("moss"), type: "visit" },
    { ...like("moss"), at },
    { ...like("moss"), at, retract: true },
    { ...like("moss"), id: "another" },
    { type: "like", fields: { post_id: "moss", more: 1 } },
    { type: "like", fields: { post_id: ["moss", "letters"] } },
    '{"fields":{"post_id":"moss","post_id":"letters"}}',
    { events: [like("moss"), like("letters")] },
    { events: [like("moss")] },
    [like("moss")],
    "moss",
  ]) {
    const { status, code } = await send(page, events, { token, body });
    assert.deepEqual([status, code], [403, "forbidden"], JSON.stringify(body));
  }
  // Another request.
  for (const [url, options] of [
    [events, { body: "{}\n{}\n", headers: { "content-type": "application/x-ndjson" } }],
    [events, { headers: { "idempotency-key": "another" } }],
    [`${events}?return=score`],
    [`${board}/increments`, { body: { subject: "moss", amount: 1000 } }],
    [`${board}/samples`, { method: "PUT", body: { subject: "moss", amount: 1000, at } }],
    [`${board}/audit`],
    [`${board}/subjects/moss`, { method: "DELETE" }],
    [board, { method: "DELETE" }],
    [`${rolltop}/v1/boards/mine`, { method: "PUT", body: { metric: "COUNT(24h, like, post_id)", slot: "1h" } }],
    [`${rolltop}/v1/query`, { body: { metric: "COUNT(24h, like, post_id)", fields: { post_id: "moss" } } }],
    [`${rolltop}/v1/keys`, { method: "GET" }],
  ]) {
    assert.equal((await send(page, url, { token, ...options })).status, 403, `${options?.method ?? "POST"} ${url}`);
  }
  // No token, in a page and elsewhere.
  const { status, code } = await send(page, events, { body: like("moss") });
  assert.deepEqual([status, code], [401, "key_required"]);
  for (const [method, url, body] of [
    ["POST", events, like("moss")],
    ["POST", events, { events: [like("moss")] }],
    ["POST", `${board}/increments`, { subject: "moss", amount: 1000 }],
    ["DELETE", board],
    ["GET", `${rolltop}/v1/keys`],
    ["GET", `${rolltop}/v1/boards/another/rankings`],
  ]) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
    assert.deepEqual([response.status, (await response.json()).code], [401, "key_required"], `${method} ${url}`);
  }

  // Another token.
  const [header, claims] = token.split(".").slice(0, 2).map(decoded);
  const [head, middle, signature] = token.split(".");
  const now = Math.floor(Date.now() / 1000);
  const own = { ...claims.rolltop, event: like("letters") };
  const tokens = {
    "another post, with the signature of this one": [head, encoded({ ...claims, rolltop: own }), signature].join("."),
    "another jti, with the signature of this one": [head, encoded({ ...claims, jti: "another" }), signature].join("."),
    "a guessed secret": sign(header, { ...claims, jti: "another" }, "secret".repeat(6)),
    "the id of the key as the secret": sign(header, { ...claims, jti: "another" }, header.kid),
    "no signature": `${head}.${middle}.`,
    "alg none": `${encoded({ ...header, alg: "none" })}.${middle}.`,
    "alg none and a signature": `${encoded({ ...header, alg: "none" })}.${middle}.${signature}`,
    "another algorithm": sign({ ...header, alg: "HS512" }, claims),
    "another key": sign({ ...header, kid: "51fe000000000002" }, claims),
    "no text of a token": "moss",
    "a key that is made up": `rt_51fe000000000001_${"0".repeat(64)}`,
    // What even the site cannot sign.
    "expired": sign(header, { ...claims, exp: now - 31 }),
    "valid for too long": sign(header, { ...claims, exp: now + 90_000 }),
    "another audience": sign(header, { ...claims, aud: "another" }),
    "more than the signing key": sign(header, { ...claims, rolltop: { ...claims.rolltop, scopes: ["view", "write"] } }),
    "other boards than the signing key": sign(header, { ...claims, rolltop: { ...claims.rolltop, boards: ["*"] } }),
    "any event": sign(header, { ...claims, rolltop: { scopes: ["write"] } }),
    "once without jti": sign(header, { ...claims, jti: undefined }),
  };
  for (let at = 0; at < token.length; at += 11) {
    const other = token[at] === "A" ? "B" : "A";
    tokens[`another character at ${at}`] = token.slice(0, at) + other + token.slice(at + 1);
  }
  for (const [what, token] of Object.entries(tokens)) {
    const { status, code } = await send(page, events, { token });
    const expected = { expired: "token_expired" }[what] ?? (token.includes(".") ? "invalid_token" : "invalid_key");
    assert.deepEqual([status, code], [401, expected], what);
  }

  // The site signs for its own posts and visitors only.
  assert.equal((await send(page, "/token/another")).status, 400);
  assert.equal((await send(page, "/token/moss", { credentials: "omit" })).status, 400);
  assert.equal((await send(page, "/token/moss", { method: "GET" })).status, 404);

  assert.deepEqual(await likes(rolltop), {});
  const once = [await send(page, events, { token, body: like("moss") }), await send(page, events, { token, body: {} })];
  assert.deepEqual(once.map(({ status, accepted }) => [status, accepted]), [[200, 1], [200, 0]]);
  assert.deepEqual(await likes(rolltop), { moss: 1 });
}));

test("pages of another origin cannot like for a visitor, not even with the token", { skip }, inBrowser({}, async ({ page, context, allow }) => {
  const { site, rolltop } = await startExample();
  await withWidget(context, rolltop);
  await page.goto(site);
  const { text: token } = await send(page, "/token/moss");
  const events = `${rolltop}/v1/events`;
  // Another port is another origin, but the same site: the browser sends the cookie along.
  const other = await startSite({ "/": "<!doctype html><html lang=en><title>Other</title><p>Other</p></html>" });
  await page.goto(other.base);
  allow(/blocked by CORS policy|net::ERR_FAILED|status of (401|403)/);
  for (const headers of [{}, { "content-type": "text/plain" }]) {
    const answer = await send(page, `${site}/token/moss`, { credentials: "include", headers });
    assert.deepEqual(answer, { status: 0, text: "" });
  }
  assert.equal((await send(page, events, { token })).status, 0);
  // Without asking first, a browser sends no token.
  assert.equal((await send(page, events, { token, mode: "no-cors" })).status, 0);
  assert.equal((await send(page, events, { body: '{"type":"like"}', mode: "no-cors" })).status, 0);
  // What a program sends that says where its page is from.
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", origin: other.base };
  const refused = await fetch(events, { method: "POST", headers, body: "{}" });
  assert.deepEqual([refused.status, (await refused.json()).code], [403, "foreign_origin"]);
  assert.deepEqual(await likes(rolltop), {});

  await page.goto(site);
  assert.equal((await send(page, events, { token })).accepted, 1);
  assert.deepEqual(await likes(rolltop), { moss: 1 });
}));

test("without JavaScript the posts can be read, and the page says what needs it", { skip }, inBrowser({ context: { javaScriptEnabled: false } }, async ({ page }) => {
  const { site } = await startExample();
  await page.goto(site);
  assert.equal(await page.getByRole("article").count(), 12);
  assert.ok((await page.locator("header").innerText()).includes("Likes and the lists need JavaScript."));
  assert.equal(await page.locator("article button:disabled").count(), 12);
}));

/** Returns a port that is free. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("it uses a Rolltop that runs elsewhere, and a like can be tried again", { skip }, inBrowser({}, async ({ page, context, allow }) => {
  const port = await freePort();
  const template = readFileSync(join(ROOT, "examples/site/rolltop.toml"), "utf8");
  const service = await startService({ config: template.replaceAll("{port}", port).replaceAll("{secret}", SECRET) });
  const { site, rolltop } = await startExample(["--listen", `127.0.0.1:${port}`, "--rolltop", `${service.base}/`]);
  assert.equal(rolltop, service.base);
  await withWidget(context, rolltop);
  await page.goto(site.replace("127.0.0.1", "localhost"));
  await service.kill();
  allow(/net::ERR_/);
  await page.getByRole("button", { name: "Like: Moss is winning" }).click();
  const again = page.getByRole("button", { name: "Try again: Moss is winning" });
  await again.waitFor();
  await service.restart();
  await again.click();
  await page.getByRole("button", { name: "Liked: Moss is winning" }).waitFor();
  assert.deepEqual(await likes(rolltop), { moss: 1 });

  // What is wrong is said at the start.
  const wrong = join(FOLDER, "wrong");
  writeFileSync(wrong, SECRET.toUpperCase());
  const failing = (file, more = []) => failExample(["--listen", "127.0.0.1:0", "--rolltop", rolltop, "--secret-file", file, ...more]);
  assert.match(await failing(wrong), /takes no likes of this site[^]*the signature is not one of the signing key/);
  assert.match(await failing(SECRET_FILE), /takes no likes of this site[^]*foreign_origin/);
  assert.match(await failing(join(FOLDER, "missing")), /cannot read [^]*missing/);
  assert.match(await failExample(["--rolltop", rolltop]), /--secret-file/);
}));

test("a port that is taken is named", { skip }, async () => {
  const { site, rolltop } = await startExample();
  for (const [flag, other, url] of [["--listen", "--rolltop-listen", site], ["--rolltop-listen", "--listen", rolltop]]) {
    const said = await failExample([flag, new URL(url).host, other, "127.0.0.1:0"]);
    assert.ok(said.includes(flag) && said.includes(new URL(url).host), said);
  }
});
