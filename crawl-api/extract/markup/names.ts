/** Compares names in place in the page: cutting each one out first would cost more than everything else. */

/** Whether the text from `start` to `end` is exactly `name`. */
export function isAt(text: string, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (text.charCodeAt(start + i) !== name.charCodeAt(i)) return false;
  return true;
}

/** The same, ignoring case; `name` is in lower case. */
export function isNameAt(text: string, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) {
    const code = text.charCodeAt(start + i);
    const wanted = name.charCodeAt(i);
    if (code === wanted || (code + 32 === wanted && code >= 65 && code <= 90)) continue;
    return code > 127 && text.slice(start, end).toLowerCase() === name;
  }
  return true;
}
