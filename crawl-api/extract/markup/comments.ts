/** Finds the end of comments: browsers and htmlparser2 accept more than `-->`. */

/** `at` is the end of the comment's text, `next` the start of what follows; null when the comment does not end. */
export function findCommentEnd(text: string, start: number): { at: number; next: number } | null {
  for (const empty of ['>', '->']) if (text.startsWith(empty, start)) return { at: start, next: start + empty.length };
  for (let at = text.indexOf('--', start); at !== -1; at = text.indexOf('--', at + 1)) {
    for (const end of ['-->', '--!>']) if (text.startsWith(end, at)) return { at, next: at + end.length };
  }
  return null;
}

/** Number of characters at the end of the page that belong to the end of an unfinished comment. */
export function trailingDashes(text: string, start: number): number {
  const tail = text.slice(Math.max(start, text.length - 3));
  return ['--!', '--', '-'].find((end) => tail.endsWith(end))?.length ?? 0;
}
