/** Characters and names of markup. */
export const LESS_THAN = 0x3c;
export const GREATER_THAN = 0x3e;
export const SLASH = 0x2f;
export const EQUALS = 0x3d;
export const EXCLAMATION = 0x21;
export const QUESTION = 0x3f;
export const DOUBLE_QUOTE = 0x22;
export const SINGLE_QUOTE = 0x27;

/** HTML's white space: space, tab, line feed, form feed, carriage return. */
export function isSpace(code: number): boolean {
  return code <= 32 && (code === 32 || code === 10 || code === 9 || code === 13 || code === 12);
}

export function isLetter(code: number): boolean {
  const lower = code | 32;
  return lower >= 97 && lower <= 122;
}

/** What ends the name of a tag. */
export function endsName(code: number): boolean {
  // Letters come after all of these.
  return code <= GREATER_THAN && (code === GREATER_THAN || code === SLASH || isSpace(code));
}

/** Text of a page with its character codes: a code is read from an array in a third of the time. */
export interface Markup {
  text: string;
  codes: Uint16Array;
}

/** @param space for the codes, at least as long as the text */
export function toMarkup(text: string, space: Uint16Array = new Uint16Array(text.length)): Markup {
  Buffer.from(space.buffer).write(text, 'utf16le');
  return { text, codes: space.subarray(0, text.length) };
}

/** Whether the text there is the lower-case `name`, in any case. Cutting each name out would cost most. */
export function isNameAt({ text, codes }: Markup, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) {
    const code = codes[start + i]!;
    const wanted = name.charCodeAt(i);
    if (code === wanted || (code + 32 === wanted && code >= 65 && code <= 90)) continue;
    return code > 127 && text.slice(start, end).toLowerCase() === name;
  }
  return true;
}
