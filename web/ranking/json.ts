// JSON with exact numbers.

/** A number of a response: the text of those that a binary floating-point number cannot hold exactly. */
export type Num = number | string;

/** Parses JSON. Numbers that JavaScript would round stay texts, where the browser tells their source. */
export function parse(text: string): unknown {
  const reviver = (_: string, value: unknown, context?: { source?: string }): unknown => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined && String(value) !== source && isRounded(value, source)
      ? source
      : value;
  };
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

/** Returns whether a number differs from its source text. 15 significant digits are always kept. */
function isRounded(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return true;
  return source.replace(/^-?0*\.?0*|[eE].*$|\./g, "").length > 15;
}

/** Writes a number with separators of thousands. */
export function formatted(value: Num): string {
  const [whole = "", fraction] = String(value).split(".");
  // Numbers with an exponent are shown as they are.
  if (!/^-?\d+$/.test(whole) || (fraction !== undefined && !/^\d+$/.test(fraction))) return String(value);
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f").replace(/^-/, "\u2212");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}
