const PLAIN = /^[\w./:@%+=,-]+$/;

/** The text as one word for a shell, in quotes where it needs them. */
export const shellWord = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
