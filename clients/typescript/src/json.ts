// JSON with exact decimals, where they are asked for.

const DECIMALS = /(^|_)(score|value)$|^(sum|count|amount|worst|standard_error)$/;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const parseWith = (text: string, reviver: Reviver): unknown =>
  JSON.parse(text, reviver as (key: string, value: unknown) => unknown);

/** Returns whether JSON.parse tells the text of a number. */
export const knowsSources = (): boolean => parseWith("1", (_, __, context) => context?.source) === "1";

/** Parses a response; with `exact` amounts and scores are the texts that the service sent. */
export function parse(text: string, exact: boolean): unknown {
  if (!exact) return JSON.parse(text);
  return parseWith(text, (key, value, context) =>
    typeof value === "number" && DECIMALS.test(key) ? context?.source : value,
  );
}

/** The digits after the point that the service keeps at most. */
const DIGITS = 9;

/** Returns a decimal as a whole number of 10^-9, or undefined if it is written with an exponent or more digits. */
export function units(amount: number | string): bigint | undefined {
  const [, sign, whole, fraction = ""] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(String(amount)) ?? [];
  return whole === undefined ? undefined : BigInt(sign + whole + fraction.padEnd(DIGITS, "0"));
}

/** Returns the text of a whole number of 10^-9 as a decimal. */
export function decimal(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(DIGITS + 1, "0");
  const fraction = digits.slice(-DIGITS).replace(/0+$/, "");
  return (amount < 0n ? "-" : "") + digits.slice(0, -DIGITS) + (fraction && `.${fraction}`);
}
