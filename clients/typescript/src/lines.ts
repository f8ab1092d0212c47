// Reads bodies that arrive in parts.

import type { Deadline } from "./http.ts";

/**
 * Returns the blocks of a body as they arrive, those of each part as a list. Blocks end with `end`; what is left after
 * the last one is left out. The deadline is set again before each part, but not while the caller works.
 */
export async function* blocks(
  response: Response,
  end: string,
  deadline: Deadline,
  silence: number,
): AsyncGenerator<string[], void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  // Not TextDecoderStream, which not every engine has. Not lines by a regular expression: those also end at U+2028,
  // which subjects may have.
  const decoder = new TextDecoder();
  for (let text = ""; ;) {
    deadline.set(silence);
    const { done, value } = await reader.read();
    deadline.set(0);
    if (done) return;
    const parts = (text + decoder.decode(value, { stream: true })).split(end);
    text = parts.pop() ?? "";
    if (parts.length > 0) yield parts;
  }
}
