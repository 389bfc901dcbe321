/**
 * Reads the head of a reply as browsers do, and rewrites an odd one for the HTTP parser, which accepts fewer: lines
 * without a colon or with an invalid name are skipped, folded lines are joined, equal Content-Lengths and Locations
 * count once, and chunks win over a Content-Length (docs/decisions/0012-fetching.md).
 */

/** The largest head; browsers have the same limit. */
export const MAX_HEAD_BYTES = 262_144;

/** The reply is no HTTP, or a browser refuses it, too. The message is a sentence for the user. */
export class ReplyFault extends Error {
  override readonly name = 'ReplyFault';
}

/** What the parser gets for a head, in latin1. */
export interface ReadHead {
  /** What the parser gets; null: the head as it came. */
  text: string | null;
  /** 1xx: another head follows. */
  isInformational: boolean;
  isChunked: boolean;
}

/**
 * Such a head means the same to the parser and to browsers, unless its framing is odd. 205 is left out: browsers read
 * no body.
 */
const PLAIN =
  /^HTTP\/1\.[01] (?!205)[2-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n$/;
const DECISIVE = /\n(?:(content-length)|(transfer-encoding)|location):[\t ]*([^\r]*)/gi;

/** @param text up to and including the empty line; throws a ReplyFault */
export function readHead(text: string): ReadHead {
  return readPlain(text) ?? repair(text);
}

/** Reads a head that is passed on as it came; null for one that may have to be rewritten. */
export function readPlain(text: string): ReadHead | null {
  if (!PLAIN.test(text)) return null;
  let hasLength = false;
  let isChunked = false;
  let hasLocation = false;
  DECISIVE.lastIndex = 0;
  for (let found; (found = DECISIVE.exec(text)) !== null;) {
    const [, length, coding, value = ''] = found;
    if (length !== undefined) {
      if (hasLength || !/^\d{1,15}[\t ]*$/.test(value)) return null;
      hasLength = true;
    } else if (coding !== undefined) {
      if (isChunked || !/^chunked[\t ]*$/i.test(value)) return null;
      isChunked = true;
    } else {
      if (hasLocation) return null;
      hasLocation = true;
    }
  }
  // HTTP/1.0 has no chunks.
  if (isChunked && (hasLength || text.startsWith('HTTP/1.0'))) return null;
  return { text: null, isInformational: false, isChunked };
}

type Field = [name: string, value: string];

function repair(text: string): ReadHead {
  if (text.includes('\0')) throw new ReplyFault('the head of the reply contains a NUL, which browsers refuse, too');
  const [statusLine = '', ...segments] = text.split(/[\r\n]+/).filter((line) => line !== '');
  const isOld = !/^http\/(?:1\.[1-9]|[2-9]\.\d)/i.test(statusLine);
  // Like browsers, which take a missing status for 200.
  const status = Number(/^[^ ]* +(\d+)/.exec(statusLine)?.[1] ?? 200);
  if (status < 100 || status > 999) throw new ReplyFault(`the reply has the status ${status}, which does not exist`);
  if (status < 200) return { text: '', isInformational: true, isChunked: false };
  const lines = unfold(segments);
  const fields = lines.flatMap(readField);
  const valuesOf = (wanted: string): string[] => fields.flatMap(([name, value]) => (name === wanted ? [value] : []));

  const codings = valuesOf('transfer-encoding').flatMap(splitList);
  const isChunked = !isOld && codings.some((coding) => coding.toLowerCase() === 'chunked');
  const lengths = new Set(valuesOf('content-length').flatMap(splitList));
  if (!isChunked && lengths.size > 1)
    throw new ReplyFault(`the reply has Content-Lengths that differ: ${[...lengths].join(' and ').slice(0, 100)}`);
  const [length = ''] = lengths;
  const locations = new Set(valuesOf('location'));
  if (status < 400 && status >= 300 && locations.size > 1)
    throw new ReplyFault(`the reply has Locations that differ: ${[...locations].join(' and ').slice(0, 300)}`);

  // Where browsers and others may disagree about the end of the body, no second reply is read from the connection.
  const framing = lines.filter((line) => /^[^:]*(?:content-length|transfer-encoding)/i.test(line));
  const isSound = framing.length < 2 && framing.every((line) => isPlainFraming(line, isOld));
  const isReused = isSound && status !== 205;
  const kept = fields.filter(([name]) => !REPLACED.has(name) && (isReused || !HOP_BY_HOP.has(name)));
  const [location] = locations;
  if (location !== undefined) kept.push(['location', location]);
  if (!isReused) kept.push(['connection', 'close']);
  if (status === 205) kept.push(['content-length', '0']);
  else if (isChunked) kept.push(['transfer-encoding', 'chunked']);
  // Browsers read to the end of the connection when the length is no number.
  else if (/^\d+$/.test(length) && Number.isSafeInteger(Number(length))) kept.push(['content-length', length]);
  const head = [
    `HTTP/1.${isOld ? 0 : 1} ${status}`,
    ...kept.map(([name, value]) => `${name}: ${withoutControls(name, value)}`),
  ];
  return { text: `${head.join('\r\n')}\r\n\r\n`, isInformational: false, isChunked: isChunked && status !== 205 };
}

const REPLACED = new Set(['content-length', 'transfer-encoding', 'location']);
const HOP_BY_HOP = new Set(['connection', 'keep-alive']);

function isPlainFraming(line: string, isOld: boolean): boolean {
  return (
    /^content-length:[\t ]*\d{1,15}[\t ]*$/i.test(line) ||
    (!isOld && /^transfer-encoding:[\t ]*chunked[\t ]*$/i.test(line))
  );
}

/** Joins the lines that white space marks as continued. */
function unfold(segments: readonly string[]): string[] {
  const lines: string[] = [];
  let isOpen = false;
  for (const segment of segments) {
    if (isOpen && /^[\t ]/.test(segment)) lines.push(`${lines.splice(-1).join('')} ${trim(segment)}`);
    else {
      lines.push(segment);
      isOpen = /^[^\t :][^:]*:/.test(segment);
    }
  }
  return lines;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;

/** Nothing for a line that is no header. */
function readField(line: string): Field[] {
  const colon = line.indexOf(':');
  // White space before the colon is accepted, white space before the name is not.
  const name = trimEnd(line.slice(0, Math.max(colon, 0)));
  return TOKEN.test(name) ? [[name.toLowerCase(), trim(line.slice(colon + 1))]] : [];
}

/** The parser accepts no control characters. In a URL their percent-encoding means the same. */
function withoutControls(name: string, value: string): string {
  return value.replace(/[^\t\x20-\x7e\x80-\xff]/g, (char) => (name === 'location' ? encodeURIComponent(char) : ' '));
}

const splitList = (value: string): string[] => value.split(',').map(trim);

const trim = (text: string): string => trimEnd(text.replace(/^[\t ]+/, ''));

/** The text without blanks at its end. Not by a pattern: `[\t ]+$` takes quadratic time for blanks in the middle. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--;
  return text.slice(0, end);
}
