/** The text before the first `mark`; all of it without one. */
export function textBefore(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at === -1 ? text : text.slice(0, at);
}
