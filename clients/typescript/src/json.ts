// JSON with exact decimals.

const DECIMALS = /(score|value|_error|^(sum|count|amount|worst|from|to))$/;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const parseWith = (text: string, reviver: Reviver): unknown =>
  JSON.parse(text, reviver as (key: string, value: unknown) => unknown);

/** Returns whether JSON.parse tells the text of a number. */
export const knowsSources = (): boolean => parseWith("1", (_, __, context) => context?.source) === "1";

/** Parses a response in which amounts and scores are to be the texts that the service sent. */
export const parseExact = (text: string): unknown =>
  parseWith(text, (key, value, context) =>
    typeof value === "number" && DECIMALS.test(key) ? context?.source : value,
  );

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
