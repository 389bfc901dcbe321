/** Percent-encoding. */

/** The decoded text; the text itself where it is not well encoded. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
