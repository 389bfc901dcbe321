/** The entries of a sitemap from its text, which comes in pieces: the XML form, and one URL a line. */
import { Parser } from 'htmlparser2';

/** A page (`url`), or a further sitemap, as an index lists them. */
export interface SitemapEntry {
  kind: 'url' | 'sitemap';
  /** An absolute http or https URL, as it is written. */
  loc: string;
  lastModMs: number | null;
}

export interface EntryReader {
  /** Why the rest must not be read; null: nothing is wrong so far. */
  readonly fault: string | null;
  /** Entries without an absolute http or https URL of at most 2,048 characters. */
  readonly skipped: number;
  /** Reads a piece, and returns the entries that it completes. */
  write(text: string): SitemapEntry[];
  /** Ends the reading after the last piece of a complete file, and returns the entries that are left. */
  end(): SitemapEntry[];
}

/** sitemaps.org: below 2,048 characters. */
const MAX_LOC_CHARS = 2_048;
/** The longest text of an element, with the white space around it. */
const MAX_TEXT_CHARS = 4_096;
/** A sitemap has four levels; its extensions have a few more. */
const MAX_DEPTH = 64;
/** Longest comment, CDATA section, declaration or tag: the parser keeps it until it ends. */
const MAX_TOKEN_CHARS = 262_144;

/** The reader for a text that begins with `start`. */
export function entryReaderFor(start: string): EntryReader {
  return start.trimStart().startsWith('<') ? new XmlEntries() : new LineEntries();
}

/** A W3C date and time, or its beginning from the year on; without a zone it is UTC. Null for anything else. */
function parseLastMod(text: string): number | null {
  const match =
    /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?:(Z)|([+-]\d\d):?(\d\d))?)?)?)?$/i.exec(
      text.trim(),
    );
  if (!match) return null;
  const [, year, month = '01', day = '01', time = '00:00', , hours, minutes] = match;
  const ms = Date.parse(`${year}-${month}-${day}T${time}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`);
  return Number.isNaN(ms) ? null : ms;
}

function readLoc(text: string): string | null {
  const loc = text.trim();
  if (loc.length > MAX_LOC_CHARS || !/^https?:\/\//i.test(loc) || !URL.canParse(loc)) return null;
  return loc;
}

/** Text that is kept up to a length; longer, it is none. */
class BoundedText {
  #text = '';
  #isTooLong = false;

  clear(): void {
    this.#text = '';
    this.#isTooLong = false;
  }

  append(text: string): void {
    if (this.#text.length + text.length > MAX_TEXT_CHARS) this.#isTooLong = true;
    else this.#text += text;
  }

  get value(): string {
    return this.#isTooLong ? '' : this.#text;
  }

  get isBlank(): boolean {
    return !this.#isTooLong && this.#text.trim() === '';
  }
}

/**
 * `urlset` or `sitemapindex`, its children, and their `loc` and `lastmod`. Elements of other namespaces (`image:loc`)
 * do not count; bare ampersands are accepted, as many sitemaps have them.
 */
class XmlEntries implements EntryReader {
  fault: string | null = null;
  skipped = 0;
  readonly #parser = new Parser(
    {
      onopentag: (name, attributes) => this.#open(name, attributes),
      ontext: (text) => this.#field?.append(text),
      onclosetag: (name, isImplied) => this.#close(name, isImplied),
    },
    { xmlMode: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  );
  #written = 0;
  /** Names of the open elements. */
  readonly #path: string[] = [];
  #hasRoot = false;
  #prefix = '';
  #namespace: string | undefined;
  /** The last start tag ends here. */
  #openEnd = -1;
  #kind: SitemapEntry['kind'] | null = null;
  readonly #loc = new BoundedText();
  readonly #lastMod = new BoundedText();
  /** The one that is open. */
  #field: BoundedText | null = null;
  #entries: SitemapEntry[] = [];

  write(text: string): SitemapEntry[] {
    this.#entries = [];
    this.#written += text.length;
    this.#parser.write(text);
    if (this.#written - this.#parser.endIndex > MAX_TOKEN_CHARS)
      this.fault ??= `broken XML: a tag, comment or section does not end within ${MAX_TOKEN_CHARS} characters`;
    return this.#entries;
  }

  end(): SitemapEntry[] {
    const open = this.#path.at(-1);
    if (!this.#hasRoot) this.fault ??= 'broken XML: it has no element';
    else if (open !== undefined) this.fault ??= `broken XML: it ends inside <${shorten(open)}>`;
    return [];
  }

  #open(name: string, attributes: Record<string, string>): void {
    if (this.fault !== null) return;
    this.#openEnd = this.#parser.endIndex;
    this.#path.push(name);
    if (this.#path.length > MAX_DEPTH) this.fault = `broken XML: elements nested deeper than ${MAX_DEPTH}`;
    const { prefix, local } = splitName(name);
    if (this.#path.length === 1) {
      this.#openRoot(name, attributes);
    } else if (!this.#isOurs(prefix, attributes)) {
      this.#field = null;
    } else if (this.#path.length === 2) {
      this.#kind = local === 'url' || local === 'sitemap' ? local : null;
      this.#loc.clear();
      this.#lastMod.clear();
    } else if (this.#path.length === 3 && this.#kind !== null) {
      this.#field = local === 'loc' ? this.#loc : local === 'lastmod' ? this.#lastMod : null;
      this.#field?.clear();
    } else {
      this.#field = null;
    }
  }

  #openRoot(name: string, attributes: Record<string, string>): void {
    const { prefix, local } = splitName(name);
    if (this.#hasRoot) this.fault = 'broken XML: it has a second root element';
    else if (local !== 'urlset' && local !== 'sitemapindex') this.fault = `not a sitemap: it is <${shorten(name)}>`;
    this.#hasRoot = true;
    this.#prefix = prefix;
    this.#namespace = attributes[namespaceAttribute(prefix)];
  }

  /**
   * True for an element in the namespace of the root: by the same prefix, unless another is declared; some write `<url
   * xmlns="">`.
   */
  #isOurs(prefix: string, attributes: Record<string, string>): boolean {
    const declared = attributes[namespaceAttribute(prefix)];
    return prefix === this.#prefix && (!declared || !this.#namespace || declared === this.#namespace);
  }

  #close(name: string, isImplied: boolean): void {
    if (this.fault !== null) return;
    // The parser also calls the end of `<a/>` implied.
    if (isImplied && this.#parser.endIndex !== this.#openEnd) {
      this.fault = `broken XML: <${shorten(name)}> is not closed`;
      return;
    }
    this.#field = null;
    if (this.#path.length === 2) {
      if (this.#kind !== null) this.#complete(this.#kind);
      this.#kind = null;
    }
    this.#path.pop();
  }

  #complete(kind: SitemapEntry['kind']): void {
    const loc = readLoc(this.#loc.value);
    if (loc === null) this.skipped++;
    else this.#entries.push({ kind, loc, lastModMs: parseLastMod(this.#lastMod.value) });
  }
}

class LineEntries implements EntryReader {
  readonly fault = null;
  skipped = 0;
  readonly #line = new BoundedText();

  write(text: string): SitemapEntry[] {
    const [first = '', ...more] = text.split(/[\r\n]/);
    this.#line.append(first);
    const entries: SitemapEntry[] = [];
    for (const line of more) {
      entries.push(...this.end());
      this.#line.append(line);
    }
    return entries;
  }

  end(): SitemapEntry[] {
    const loc = readLoc(this.#line.value);
    if (loc === null && !this.#line.isBlank) this.skipped++;
    this.#line.clear();
    return loc === null ? [] : [{ kind: 'url', loc, lastModMs: null }];
  }
}

function splitName(name: string): { prefix: string; local: string } {
  const colon = name.indexOf(':');
  return colon === -1 ? { prefix: '', local: name } : { prefix: name.slice(0, colon), local: name.slice(colon + 1) };
}

const namespaceAttribute = (prefix: string): string => (prefix === '' ? 'xmlns' : `xmlns:${prefix}`);

const shorten = (name: string): string => (name.length > 40 ? `${name.slice(0, 40)}…` : name);
