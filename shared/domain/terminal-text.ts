/** Makes text from outside safe to print: it may hold terminal control sequences. */

/** As JSON, with every control and invisible formatting character escaped. */
export function quote(value: unknown, maxChars = 120): string {
  const text = JSON.stringify(value) ?? 'null';
  const shown =
    text.length > maxChars ? `${text.slice(0, maxChars).toWellFormed()}… (${text.length} characters)` : text;
  return oneLine(shown);
}

/** The text itself, likewise, on one line. */
export function plain(text: string, maxChars = 300): string {
  return oneLine(text.length > maxChars ? `${text.slice(0, maxChars).toWellFormed()}…` : text);
}

/** The text with its lines and tabs; every other control and invisible formatting character escaped. */
export function printable(text: string): string {
  return text.replaceAll(/[^\n\t]+/g, oneLine);
}

/** The text on one line, uncut: a line break in text from outside must not fake a line of ours. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`);
}
