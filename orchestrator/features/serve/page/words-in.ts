/** Finds the words of a glossary in a text. Pure. */

interface Part {
  text: string;
  /** The word of the glossary that it is; null for text between them. */
  word: string | null;
}

/** The text in parts, each word of the glossary marked at its first place, also in the plural. */
export function wordsIn(text: string, glossary: Readonly<Record<string, string>>): Part[] {
  const parts: Part[] = [];
  const found = new Set<string>();
  let end = 0;
  for (const match of text.matchAll(pattern(glossary))) {
    const word = (match[1] ?? match[0]).toLowerCase();
    if (found.has(word)) continue;
    found.add(word);
    if (match.index > end) parts.push({ text: text.slice(end, match.index), word: null });
    parts.push({ text: match[0], word });
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), word: null });
  return parts;
}

const patterns = new WeakMap<object, RegExp>();

function pattern(glossary: Readonly<Record<string, string>>): RegExp {
  const known = patterns.get(glossary);
  if (known) return known;
  // The longest first: `canary page` before `page`.
  const words = Object.keys(glossary).sort((a, b) => b.length - a.length);
  // Not within a name such as `chunk-limits`, `run.deadline` or a host.
  const made = new RegExp(String.raw`(?<![\w.@/-])(${words.join('|')})(?:e?s)?(?![\w@/-]|\.\w)`, 'gi');
  patterns.set(glossary, made);
  return made;
}
