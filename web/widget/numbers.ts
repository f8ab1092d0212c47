// How numbers are written, in the console and the widget.

/** A number of a response: the text of those that a binary floating-point number cannot hold exactly. */
export type Num = number | string;

/** Writes a number with separators of thousands; a dash where there is none. */
export function formatted(value: Num | null): string {
  if (value === null) return "–";
  const [whole = "", fraction] = String(value).split(".");
  // Numbers with an exponent are shown as they are.
  if (!/^-?\d+$/.test(whole) || (fraction !== undefined && !/^\d+$/.test(fraction))) return String(value);
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f").replace(/^-/, "\u2212");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}
