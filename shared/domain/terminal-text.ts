/** Makes text from outside safe to print: it may hold terminal control sequences. */

/** The value as JSON, with every control and invisible formatting character escaped. */
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
  return text.replaceAll(/(?:(?!\r?\n)[^\t])+/g, oneLine);
}

/** The text on one line, uncut: a line break in text from outside must not fake a line of ours. */
export function oneLine(text: string): string {
  return text.replaceAll(UNPRINTABLE, (one) => one.replaceAll(/[^]/g, escapeUnit));
}

/** A code unit escaped as in JSON, so a document stays one with the same values. */
const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/**
 * What a terminal acts on, and what reorders the text around it or hides: control and formatting characters, line and
 * paragraph separators, halves of surrogate pairs. Not the formatting characters that ordinary text is written with:
 * breaks and hyphens within words, joiners (Persian, Hindi, emoji), marks of direction, signs of Arabic and Kaithi, and
 * the tags of flags.
 */
const UNPRINTABLE =
  /(?![\u00ad\u0600-\u0605\u061c\u06dd\u0890\u0891\u08e2\u200b-\u200f\u{110bd}\u{110cd}\u{e0020}-\u{e007f}])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
