// JSON with exact decimals.

const DECIMALS = /(score|value|_error|^(sum|count|amount|worst|from|to))$/;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const parseWith = (text: string, reviver: Reviver): unknown =>
  JSON.parse(text, reviver as (key: string, value: unknown) => unknown);

/** Returns whether JSON.parse tells the text of a number. */
export const knowsSources = (): boolean => parseWith("1", (_, __, context) => context?.source) === "1";

/** Parses a response in which amounts and scores are to be the texts that the service sent. */
export function parseExact(text: string): unknown {
  const parsed = parseWith(text, (key, value, context) =>
    typeof value === "number" && DECIMALS.test(key) ? context?.source : value,
  );
  if (text.includes('"attributes"')) restoreAttributes(parsed, parseUnrounded(text));
  return parsed;
}

/** Takes attributes from another parse of the same text: they have names of their own, and `score` is none of ours there. */
function restoreAttributes(value: unknown, from: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const [members, others] = [value, from] as Record<string, unknown>[];
  for (const name of Object.keys(value)) {
    if (name === "attributes") members![name] = others![name];
    else restoreAttributes(members![name], others![name]);
  }
}

/** Parses a response in which numbers that JavaScript would round are to be texts, where the engine tells them. */
export const parseUnrounded = (text: string): unknown =>
  parseWith(text, (_, value, context) => {
    const source = context?.source;
    const isOther = typeof value === "number" && source !== undefined && String(value) !== source;
    return isOther && isRounded(value, source) ? source : value;
  });

/** Returns whether a number differs from its text. 15 significant digits are always kept. */
const isRounded = (value: number, source: string): boolean =>
  !Number.isFinite(value) || source.replace(/^-?0*\.?0*|[eE].*$|\./g, "").length > 15;

/**
 * Returns a decimal as a whole number of 10^-9, of which the service keeps no parts. Returns undefined if it is written
 * with an exponent or more digits.
 */
export function units(amount: number | string): bigint | undefined {
  const [, whole, fraction = ""] = /^(-?\d+)(?:\.(\d{1,9}))?$/.exec(String(amount)) ?? [];
  return whole === undefined ? whole : BigInt(whole + fraction.padEnd(9, "0"));
}

/**
 * Returns the JSON of attributes. Throws a TypeError, with the name of what is wrong, for what JSON does not have: JSON.stringify
 * would leave it out or write null, which removes an attribute.
 */
export function attributesText(attributes: unknown): string {
  const text = valueText("attributes", attributes);
  if (text[0] !== "{") throw new TypeError("attributes must be an object");
  return text;
}

function valueText(name: string, given: unknown): string {
  const { toJSON } = Object(given) as { toJSON?: () => unknown };
  // That of a Date which is none returns null.
  const value = toJSON && given !== null ? (toJSON.call(given) ?? undefined) : given;
  if (value === null || /^(st|bo)/.test(typeof value)) return JSON.stringify(value);
  if (typeof value === "bigint" || Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return `[${Array.from(value, (member, at) => valueText(`${name}[${at}]`, member)).join()}]`;
  if ({}.toString.call(value) !== "[object Object]") throw new TypeError(`${name}: ${String(given)} is not JSON; null removes an attribute`);
  const members = Object.entries(value as object).map(([own, member]) => `${JSON.stringify(own)}:${valueText(`${name}.${own}`, member)}`);
  return `{${members.join()}}`;
}
