// Signs tokens, with which end users may do one thing: see docs/tokens.md. For backends, because the key is secret.

/** What a token allows: the claim `rolltop`. */
export interface Grant {
  /** `write` needs `event` or `increment`. */
  scopes: readonly ("view" | "write")[];
  /** Names, and beginnings of names with `*` after them; by default those of the signing key. */
  boards?: readonly string[];
  /** The event that may be posted. */
  event?: { type: string; fields?: Record<string, unknown> };
  /** The increment that may be posted, to the boards of the token. */
  increment?: { subject?: string; by?: string; amount?: number | string; value?: number | string | boolean };
  /** The fields of the event, or `amount` or `value`, that are free: the smallest and the largest number of each. */
  range?: Record<string, readonly [smallest: number, largest: number]>;
  /** Whether the item counts once for each `jti`. */
  once?: boolean;
  /** Whether the event may be taken back, too: for a like button, on boards of COUNT_DISTINCT. Not with `once`. */
  retract?: boolean;
}

export interface SigningKey {
  /** The id of the signing key. */
  kid: string;
  /** The private key (PEM, PKCS #8): Ed25519, P-256 or RSA. */
  privateKey?: string;
  /** In place of it, the secret of a signing key of the configuration. */
  secret?: string;
}

export interface TokenOptions {
  /** The milliseconds for which the token is valid: 600,000. */
  expiresIn?: number;
  /** What tells the item from others, where it counts once; by default random. */
  jti?: string;
  /** The setting `token_audience` of the service: `rolltop`. */
  audience?: string;
}

/** The algorithms of private keys. A key is read as one of one kind only. */
const ALGORITHMS = {
  EdDSA: { name: "Ed25519" },
  ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
};
const HS256 = { name: "HMAC", hash: "SHA-256" };

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes)).replace(/[+/=]/g, (character) => ({ "+": "-", "/": "_" })[character] ?? "");

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** Returns a function that signs tokens. Throws an error if the key is none of those above. */
export async function tokenSigner({
  kid,
  privateKey,
  secret,
}: SigningKey): Promise<(grant: Grant, options?: TokenOptions) => Promise<string>> {
  const { subtle } = crypto;
  let signs: [alg: string, parameters: { name: string; hash?: string }, key: CryptoKey] | undefined;
  if (secret) signs = ["HS256", HS256, await subtle.importKey("raw", bytesOf(secret), HS256, false, ["sign"])];
  const pem = /-----BEGIN PRIVATE KEY-----([^-]*)-----END/.exec(privateKey ?? "")?.[1] ?? "";
  const der = Uint8Array.from(atob(pem.replace(/\s/g, "")), (character) => character.charCodeAt(0));
  for (const [alg, parameters] of signs ? [] : Object.entries(ALGORITHMS)) {
    const key = await subtle.importKey("pkcs8", der, parameters, false, ["sign"]).catch(() => undefined);
    if (key) signs = [alg, parameters, key];
  }
  if (!signs) throw new TypeError("privateKey must be the PEM of an Ed25519, P-256 or RSA key (PKCS #8)");
  const [alg, parameters, key] = signs;
  return async (grant, { expiresIn = 600_000, jti = crypto.randomUUID(), audience = "rolltop" } = {}) => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { aud: audience, iat: now, exp: now + Math.floor(expiresIn / 1000), jti, rolltop: grant };
    const parts = [{ alg, kid, typ: "JWT" }, claims].map((part) => base64url(bytesOf(JSON.stringify(part))));
    const signature = await subtle.sign(parameters, key, bytesOf(parts.join(".")));
    return [...parts, base64url(new Uint8Array(signature))].join(".");
  };
}
