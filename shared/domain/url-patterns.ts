/**
 * Chooses the section of a mapping for a URL, by its URL patterns. A pattern is evaluated only if the URL has the
 * literal text that the pattern requires, such as a host or a folder; and the sections are found by one word of that
 * text. A mapping may have thousands of them.
 */

/** A pattern that can be searched for anywhere in a text. */
interface Searched {
  isIn(text: string): boolean;
}

interface Section<T> {
  value: T;
  /** RE2 patterns, one of which matches; none: every URL. */
  patterns: readonly string[];
}

/** One pattern of the section at the place `order`. */
interface Entry {
  order: number;
  fits: (url: string) => boolean;
}

/** A word of a URL: what stands between two of its signs. */
const WORD = /[A-Za-z0-9]+/g;
/** Longer words find no section: they are IDs. */
const MAX_WORD_CHARS = 40;

/** How a word anchors a pattern: a URL has it as a word, or one of its words begins or ends with it. */
type Anchor = 'whole' | 'begins' | 'ends';
interface Key {
  place: Anchor;
  word: string;
}

/** Gives the first section that fits a URL, or null. @param compile called once a pattern, at its first use */
export function indexSections<T>(
  sections: readonly Section<T>[],
  compile: (pattern: string) => Searched,
): (url: string) => T | null {
  const all = sections.flatMap(({ patterns }, order) =>
    patterns.length === 0
      ? [{ keys: [], entry: { order, fits: () => true } }]
      : patterns.map((pattern) => {
          const texts = requiredTexts(pattern);
          return { keys: texts.flatMap(keysOf), entry: { order, fits: compileTest(pattern, texts, compile) } };
        }),
  );
  const uses = new Map<string, number>();
  for (const { keys } of all) for (const { word } of keys) uses.set(word, (uses.get(word) ?? 0) + 1);
  const found = {
    whole: new Map<string, Entry[]>(),
    begins: new Map<string, Entry[]>(),
    ends: new Map<string, Entry[]>(),
  };
  /** Those that no word finds. */
  const others: Entry[] = [];
  const usesOf = (word: string): number => uses.get(word) ?? 0;
  for (const { keys, entry } of all) {
    const [rarest] = keys.sort((a, b) => usesOf(a.word) - usesOf(b.word));
    if (rarest === undefined) others.push(entry);
    else {
      const known = found[rarest.place].get(rarest.word);
      if (known) known.push(entry);
      else found[rarest.place].set(rarest.word, [entry]);
    }
  }
  return (url) => {
    let first = Infinity;
    const tryAll = (entries: readonly Entry[] = []): void => {
      for (const { order, fits } of entries) if (order < first && fits(url)) first = order;
    };
    for (const [word] of url.matchAll(WORD)) {
      tryAll(found.whole.get(word));
      const chars = Math.min(word.length, MAX_WORD_CHARS);
      if (found.begins.size > 0) for (let n = 1; n <= chars; n++) tryAll(found.begins.get(word.slice(0, n)));
      if (found.ends.size > 0) for (let n = 1; n <= chars; n++) tryAll(found.ends.get(word.slice(-n)));
    }
    tryAll(others);
    return sections[first]?.value ?? null;
  };
}

/** What finds a URL with this text in it; in the URL, the words at its ends may be parts of longer ones. */
function keysOf(text: string): Key[] {
  return [...text.matchAll(WORD)].flatMap(({ 0: word, index }): Key[] => {
    const [begins, ends] = [index > 0, index + word.length < text.length];
    if (word.length > MAX_WORD_CHARS || !(begins || ends)) return [];
    return [{ word, place: begins && ends ? 'whole' : begins ? 'begins' : 'ends' }];
  });
}

function compileTest(
  pattern: string,
  texts: readonly string[],
  compile: (pattern: string) => Searched,
): (url: string) => boolean {
  let compiled: Searched | null = null;
  return (url) => texts.every((text) => url.includes(text)) && (compiled ??= compile(pattern)).isIn(url);
}

/** Escapes of RE2 that stand for one character class or place, without anything after the letter. */
const CLASS_ESCAPE = /^[AbBdDsSwWz]$/;
const COUNT = /^\{\d+(?:,\d*)?\}/;

/**
 * The texts that every match of an RE2 pattern contains, in their order, as far as the pattern shows them outside of
 * groups: `^https?://shop\.example/(a|b)/x+` requires `http`, `://shop.example/` and `/x`. None where that is unclear.
 */
export function requiredTexts(pattern: string): string[] {
  const chars = Array.from(pattern);
  const texts: string[] = [];
  let text: string[] = [];
  const cut = (): void => {
    if (text.length > 0) texts.push(text.join(''));
    text = [];
  };
  for (let at = 0; at < chars.length;) {
    const char = chars[at]!;
    const next = chars[at + 1] ?? '';
    switch (char) {
      case '|':
        return [];
      case '\\':
        if (/^[!-/:-@[-`{-~]$/.test(next)) text.push(next);
        else if (CLASS_ESCAPE.test(next)) cut();
        else return [];
        at += 2;
        break;
      case '(': {
        // Flags hold for what comes after them.
        if (next === '?' && !':P<'.includes(chars[at + 2] ?? ' ')) return [];
        cut();
        at = endOfGroup(chars, at);
        break;
      }
      case '[':
        cut();
        at = endOfClass(chars, at);
        break;
      case '{':
      case '*':
      case '?': {
        const count = char === '{' ? COUNT.exec(chars.slice(at, at + 12).join('')) : [char];
        if (count === null) return [];
        text.pop();
        cut();
        at += count[0].length;
        break;
      }
      case '+':
      case '.':
      case '^':
      case '$':
        cut();
        at++;
        break;
      default:
        text.push(char);
        at++;
    }
  }
  cut();
  return texts;
}

/** The place after the group that opens at `at`. */
function endOfGroup(chars: readonly string[], at: number): number {
  let depth = 0;
  while (at < chars.length) {
    if (chars[at] === '\\') at += 2;
    else if (chars[at] === '[') at = endOfClass(chars, at);
    else {
      if (chars[at] === '(') depth++;
      if (chars[at] === ')') depth--;
      at++;
      if (depth === 0) break;
    }
  }
  return at;
}

/** The place after the character class that opens at `at`. */
function endOfClass(chars: readonly string[], at: number): number {
  at += chars[at + 1] === '^' ? 2 : 1;
  // As the first character, a bracket is one of the class.
  if (chars[at] === ']') at++;
  while (at < chars.length && chars[at] !== ']') {
    const name = chars[at] === '[' && chars[at + 1] === ':' ? chars.indexOf(']', at + 2) : -1;
    at = name > 0 && chars[name - 1] === ':' ? name + 1 : at + (chars[at] === '\\' ? 2 : 1);
  }
  return at + 1;
}
