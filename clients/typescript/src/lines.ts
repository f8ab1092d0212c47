// Reads bodies that arrive in parts.

/**
 * Returns the blocks of a body as they arrive: of each part a list, which may be empty. Blocks end with `end`; what is
 * left after the last one is left out.
 */
export async function* blocks(response: Response, end: string): AsyncGenerator<string[], void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  // Not TextDecoderStream, which not every engine has. Not lines by a regular expression: those also end at U+2028,
  // which subjects may have.
  const decoder = new TextDecoder();
  for (let text = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + decoder.decode(value, { stream: true })).split(end);
    text = parts.pop() ?? "";
    yield parts;
  }
}
