// Tokens that a backend signs: what the service does with them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { rolltop } from "rolltop";
import { tokenSigner } from "rolltop/tokens";
import { program, Running } from "./service.mjs";

const SECRET = "a secret of the tests, which has 32 bytes and more";
const KINDS = {
  "00000000000000a1": { name: "Ed25519" },
  "00000000000000a2": { name: "ECDSA", namedCurve: "P-256" },
  "00000000000000a3": {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: "SHA-256",
  },
  "00000000000000a4": undefined,
};

/** Returns what signs with a new key of a kind, and the line of the configuration with its public key. */
async function newKey(kid, kind) {
  if (!kind) return [{ kid, secret: SECRET }, `secret = "${SECRET}"`];
  const { privateKey, publicKey } = await crypto.subtle.generateKey(kind, true, ["sign", "verify"]);
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", privateKey)).toString("base64");
  const { kty, crv, x, y, n, e } = await crypto.subtle.exportKey("jwk", publicKey);
  const members = Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => value !== undefined);
  const jwk = members.map(([name, value]) => `${name} = "${value}"`).join(", ");
  const pem = `-----BEGIN PRIVATE KEY-----\n${der.replace(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----\n`;
  return [{ kid, privateKey: pem }, `public_key = { ${jwk} }`];
}

describe("tokens", () => {
  let running, admin;
  const signers = new Map();

  before(async () => {
    const key = `rt_bc2a06dbe1f0b537_${"5".repeat(64)}`;
    let config = execFileSync(program, ["keys", "hash", "--stdin"], { input: key, encoding: "utf8" });
    for (const [kid, kind] of Object.entries(KINDS)) {
      const [options, line] = await newKey(kid, kind);
      signers.set(kid, await tokenSigner(options));
      config += `\n[[keys]]\nid = "${kid}"\nname = "k"\nkind = "signing"\n${line}\nscopes = ["view", "write"]\nboards = ["likes", "films", "distinct"]\n`;
    }
    running = await Running.startWith(config);
    admin = rolltop({ url: running.url, key });
    await admin.board("likes").define({ metric: "COUNT(24h, like, post_id)", slot: "1h" });
    await admin.board("others").define({ metric: "COUNT(24h, like, post_id)", slot: "1h" });
    await admin.board("films").define({ metric: "AVG(24h, rating, stars, film)", slot: "1h" });
  });

  after(async () => {
    await admin?.close();
    await running?.stop();
  });

  const holder = (token) => rolltop({ url: running.url, token });
  const like = (post) => ({ scopes: ["write"], event: { type: "like", fields: { post_id: post } }, once: true });

  test("a like is given and taken back", async () => {
    await admin.board("distinct").define({ metric: "COUNT_DISTINCT(24h, liked, post_id, user_id)", slot: "1h" });
    const sign = signers.get("00000000000000a4");
    const fields = (user) => ({ type: "liked", fields: { post_id: "p", user_id: user } });
    const tokenOf = (user) => sign({ scopes: ["write"], boards: ["distinct"], event: fields(user), retract: true });
    const service = rolltop({ url: running.url });
    const [ann, bob] = [await tokenOf("ann"), await tokenOf("bob")];
    const score = async () => (await admin.board("distinct").subject("p")).score;
    for (const [press, expected] of [
      [() => service.like(ann), 1],
      [() => service.like(ann), 1],
      [() => service.like(bob), 2],
      [() => service.unlike(ann), 1],
      [() => service.unlike(ann), 1],
      [() => service.like(ann), 2],
      [() => service.unlike(bob), 1],
    ]) {
      // In the same millisecond the one that takes back decides.
      await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal((await press()).accepted, 1);
      assert.equal(await score(), expected);
    }
    await assert.rejects(service.unlike(await sign(like("p"))), { status: 403, code: "forbidden" });
    await assert.rejects(service.like("nonsense"), { status: 401 });
  });

  for (const [kid, kind] of Object.entries(KINDS)) {
    test(`with a key of ${kind?.name ?? "HS256"}`, async () => {
      const sign = signers.get(kid);
      const post = `é-${kid}`;
      const token = await sign(like(post), { jti: `user-7/${post}` });
      const receipt = await holder(token).call("POST", "/v1/events", {});
      assert.deepEqual([receipt.accepted, receipt.duplicates], [1, 0]);
      // Another token for the same thing counts nothing.
      const again = await holder(await sign(like(post), { jti: `user-7/${post}` })).call("POST", "/v1/events", {});
      assert.deepEqual([again.accepted, again.duplicates], [0, 1]);
      assert.equal((await admin.board("likes").subject(post)).score, 1);

      const other = holder(await sign(like(post))).call("POST", "/v1/events", { fields: { post_id: "another" } });
      await assert.rejects(other, { status: 403, code: "forbidden" });
      await assert.rejects(holder(token).board("likes").top(), { status: 403, code: "forbidden" });
      const [head, , signature] = token.split(".");
      const forged = [head, (await sign(like("mine"))).split(".")[1], signature].join(".");
      await assert.rejects(holder(forged).call("POST", "/v1/events", {}), { status: 401, code: "invalid_token" });
    });
  }

  test("what a token leaves free, where it is for, and when it ends", async () => {
    const sign = signers.get("00000000000000a1");
    const grant = {
      scopes: ["view", "write"],
      boards: ["films"],
      increment: { subject: "film-9" },
      range: { value: [1, 5] },
    };
    const films = holder(await sign(grant));
    const path = "/v1/boards/films/increments";
    assert.equal((await films.call("POST", path, { value: 4 })).accepted, 1);
    await assert.rejects(films.call("POST", path, { value: 6 }), { code: "forbidden" });
    await assert.rejects(films.call("POST", path, { subject: "film-8", value: 4 }), { code: "forbidden" });
    await assert.rejects(films.call("POST", "/v1/boards/others/increments", { value: 4 }), { status: 403 });
    assert.equal((await films.board("films").top()).items[0].score, 4);
    await assert.rejects(films.board("likes").top(), { status: 403 });

    const expired = holder(await sign(grant, { expiresIn: -60_000 }));
    await assert.rejects(expired.board("films").top(), { status: 401, code: "token_expired" });
    const elsewhere = holder(await sign(grant, { audience: "another service" }));
    await assert.rejects(elsewhere.board("films").top(), { status: 401, code: "invalid_token" });
  });

  test("a key that cannot sign is refused", async () => {
    for (const privateKey of [undefined, "", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"]) {
      await assert.rejects(tokenSigner({ kid: "00000000000000a1", privateKey }), /^TypeError: privateKey must be/);
    }
  });
});
