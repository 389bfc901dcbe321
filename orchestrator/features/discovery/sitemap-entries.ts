/** The entries of a sitemap from its text, which comes in pieces: the XML forms, and one URL a line. */
import { Parser } from 'htmlparser2';

/** A page (`url`), or a further sitemap, as an index lists them. */
export interface SitemapEntry {
  kind: 'url' | 'sitemap';
  /** An absolute http or https URL, as it is written; one that begins with `/` is resolved. */
  loc: string;
  lastModMs: number | null;
}

export interface EntryReader {
  /** Why the rest must not be read; null: nothing is wrong so far. */
  readonly fault: string | null;
  /** Entries without an http or https URL of at most 2,048 characters. */
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

/** The reader for a text that begins with `start`. @param base as in `readSitemap` */
export function entryReaderFor(start: string, base: string | undefined): EntryReader {
  return start.trimStart().startsWith('<') ? new XmlEntries(base) : new LineEntries(base);
}

/**
 * A W3C date and time, or its beginning from the year on; without a zone it is UTC. Or the date of an RSS feed (RFC
 * 822). Null for anything else.
 */
function parseLastMod(text: string): number | null {
  if (/^(?:[a-z]{3}, *)?\d{1,2} [a-z]{3} \d{4} \d\d:\d\d(?::\d\d)? (?:[a-z]{1,3}|[+-]\d{4})$/i.test(text.trim()))
    return toMs(text.trim());
  const match =
    /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?:(Z)|([+-]\d\d):?(\d\d))?)?)?)?$/i.exec(
      text.trim(),
    );
  if (!match) return null;
  const [, year, month = '01', day = '01', time = '00:00', , hours, minutes] = match;
  return toMs(`${year}-${month}-${day}T${time}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`);
}

function toMs(date: string): number | null {
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? null : ms;
}

function readLoc(text: string, base: string | undefined): string | null {
  const loc = text.trim();
  if (loc.length > MAX_LOC_CHARS) return null;
  if (loc.startsWith('/')) return URL.parse(loc, base)?.href ?? null;
  return /^https?:\/\//i.test(loc) && URL.canParse(loc) ? loc : null;
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

/** Where a form of XML has its entries. */
interface Form {
  /** How deep they are; the root is 1. */
  level: number;
  entries: ReadonlyMap<string, SitemapEntry['kind']>;
  /** Names of the child with the URL, and of the one with the last change. */
  loc: readonly string[];
  lastMod: readonly string[];
  /** An entry without a URL is right. */
  mayLackUrl: boolean;
}

const SITEMAP: Form = {
  level: 2,
  entries: new Map([
    ['url', 'url'],
    ['sitemap', 'sitemap'],
  ]),
  loc: ['loc'],
  lastMod: ['lastmod'],
  mayLackUrl: false,
};

const RSS: Form = {
  level: 3,
  entries: new Map([['item', 'url']]),
  loc: ['link', 'guid'],
  lastMod: ['pubdate'],
  mayLackUrl: true,
};

/** By the name of the root, in lower case: sitemaps.org, RSS 0.9 to 2.0, Atom 0.3 and 1.0. */
const FORMS = new Map<string, Form>([
  ['urlset', SITEMAP],
  ['sitemapindex', SITEMAP],
  ['rss', RSS],
  ['rdf', { ...RSS, level: 2 }],
  ['feed', { ...RSS, level: 2, entries: new Map([['entry', 'url']]), lastMod: ['updated', 'modified'] }],
]);

/**
 * The entries of a sitemap, an index or a feed: the URL and the last change of each. Elements of other namespaces
 * (`image:loc`) do not count; bare ampersands are accepted, as many sitemaps have them. So is whatever follows the root
 * element, unless it is one more root.
 */
class XmlEntries implements EntryReader {
  fault: string | null = null;
  skipped = 0;
  readonly #base: string | undefined;
  /** Null once nothing more is to be read. */
  #parser: Parser | null = new Parser(
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
  #form: Form | null = null;
  /** The root element has ended. */
  #isOver = false;
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

  constructor(base: string | undefined) {
    this.#base = base;
  }

  write(text: string): SitemapEntry[] {
    this.#entries = [];
    if (this.#parser === null) return [];
    this.#written += text.length;
    this.#parser.write(text);
    if (this.#written - this.#parser.endIndex > MAX_TOKEN_CHARS) {
      if (this.#isOver) this.#parser = null;
      else this.fault ??= `broken XML: a tag, comment or section does not end within ${MAX_TOKEN_CHARS} characters`;
    }
    return this.#entries;
  }

  end(): SitemapEntry[] {
    const open = this.#path.at(-1);
    if (this.#form === null) this.fault ??= 'broken XML: it has no element';
    else if (open !== undefined) this.fault ??= `broken XML: it ends inside <${shorten(open)}>`;
    return [];
  }

  #open(name: string, attributes: Record<string, string>): void {
    if (this.fault !== null) return;
    const { prefix, local } = splitName(name);
    if (this.#isOver) {
      if (FORMS.has(local)) this.fault = 'broken XML: it has a second root element';
      return;
    }
    this.#openEnd = this.#parser?.endIndex ?? -1;
    this.#path.push(name);
    const level = this.#path.length;
    if (level > MAX_DEPTH) this.fault = `broken XML: elements nested deeper than ${MAX_DEPTH}`;
    this.#field = null;
    if (this.#form === null) {
      this.#openRoot(name, attributes);
    } else if (!this.#isOurs(prefix, attributes)) {
      return;
    } else if (level === this.#form.level) {
      this.#kind = this.#form.entries.get(local) ?? null;
      this.#loc.clear();
      this.#lastMod.clear();
    } else if (level === this.#form.level + 1 && this.#kind !== null) {
      this.#field = this.#form.lastMod.includes(local) ? this.#lastMod : this.#locField(local, attributes);
      this.#field?.clear();
    }
  }

  /** Where the text of this element goes if it is the entry's URL. */
  #locField(local: string, { href, rel = 'alternate', ispermalink }: Record<string, string>): BoundedText | null {
    if (!this.#form?.loc.includes(local)) return null;
    // The URL of an item that has no other one.
    if (local === 'guid') return this.#loc.isBlank && ispermalink?.toLowerCase() !== 'false' ? this.#loc : null;
    if (href === undefined) return this.#loc;
    // Atom: further links lead to replies, media, or the entry's own feed.
    if (rel.toLowerCase() === 'alternate' && this.#loc.isBlank) this.#loc.append(href);
    return null;
  }

  #openRoot(name: string, attributes: Record<string, string>): void {
    const { prefix, local } = splitName(name);
    const form = FORMS.get(local);
    if (form === undefined) this.fault = `not a sitemap: it is <${shorten(name)}>`;
    this.#form = form ?? SITEMAP;
    // The elements of RSS 1.0 are in another namespace than their root.
    this.#prefix = local === 'rdf' ? '' : prefix;
    this.#namespace = attributes[namespaceAttribute(this.#prefix)];
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
    if (this.fault !== null || this.#isOver) return;
    // The parser also calls the end of `<a/>` implied.
    if (isImplied && this.#parser?.endIndex !== this.#openEnd) {
      this.fault = `broken XML: <${shorten(name)}> is not closed`;
      return;
    }
    this.#field = null;
    if (this.#path.length === this.#form?.level) {
      if (this.#kind !== null) this.#complete(this.#kind, this.#form);
      this.#kind = null;
    }
    this.#path.pop();
    this.#isOver = this.#path.length === 0;
  }

  #complete(kind: SitemapEntry['kind'], { mayLackUrl }: Form): void {
    const loc = readLoc(this.#loc.value, this.#base);
    if (loc !== null) this.#entries.push({ kind, loc, lastModMs: parseLastMod(this.#lastMod.value) });
    else if (!mayLackUrl || !this.#loc.isBlank) this.skipped++;
  }
}

class LineEntries implements EntryReader {
  readonly fault = null;
  skipped = 0;
  readonly #base: string | undefined;
  readonly #line = new BoundedText();

  constructor(base: string | undefined) {
    this.#base = base;
  }

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
    const loc = readLoc(this.#line.value, this.#base);
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
