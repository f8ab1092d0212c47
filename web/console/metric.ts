// Parts of the text of a metric in its canonical form.

/** Splits the arguments of a metric at the commas that are not within parentheses. */
export function argumentsOf(metric: string): string[] {
  const text = metric.slice(metric.indexOf("(") + 1, metric.lastIndexOf(")"));
  const found: string[] = [];
  let depth = 0;
  let current = "";
  for (const character of text) {
    depth += character === "(" ? 1 : character === ")" ? -1 : 0;
    if (character === "," && depth === 0) {
      found.push(current.trim());
      current = "";
    } else current += character;
  }
  return [...found, current.trim()];
}

/** Returns what is after `BY`: `community`, `(country, genre)` or `prefix(ip, 16)`; null if there is no `BY`. */
export function keyOf(metric: string): string | null {
  // The filter comes last, and its texts may have such a word too.
  const [counted = "", filter] = metric.split(" WHERE ");
  const before = filter === undefined ? counted : `${counted})`;
  const keys = argumentsOf(before).map((argument) => argument.split(" BY ")[1]);
  return keys.find((key) => key !== undefined) ?? null;
}

/** Returns the key of a metric in words: `community`, or `country and genre`. */
export function keyInWords(metric: string): string {
  const [, fields] = /^\((.*)\)$/.exec(keyOf(metric) ?? "") ?? [];
  return fields?.replaceAll(", ", " and ") ?? keyOf(metric) ?? "";
}
