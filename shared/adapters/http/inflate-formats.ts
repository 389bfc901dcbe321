/** gzip and deflate, read from their compressed data alone: browsers ignore a checksum, and what follows the end. */
import zlib from 'node:zlib';
import type { Format } from './decoder-layer.ts';

/** Each costs some memory; the largest files in use have hundreds. */
const MAX_MEMBERS = 10_000;
const TRAILER_BYTES = 8;
/** The longest header, with the name and the comment in it. */
const MAX_HEADER_BYTES = 65_536;

/** Some servers flush the last of their data, but do not end it: an empty last block does. */
const FLUSHED = Buffer.from([0, 0, 0xff, 0xff]);
const LAST_BLOCK = Buffer.from([3, 0]);
const completionOf = (tail: Buffer): Buffer | null => (tail.equals(FLUSHED) ? LAST_BLOCK : null);

export const gunzipFormat: Format = {
  isRepeated: true,
  completionOf,
  open(head, members) {
    const member = head.subarray(members === 0 ? 0 : TRAILER_BYTES);
    const [magic0 = 0x1f, magic1 = 0x8b, method = 8] = member;
    if (magic0 !== 0x1f || magic1 !== 0x8b) return members === 0 ? 'plain' : 'over';
    if (method !== 8) throw new Error('unknown compression method');
    if (members > MAX_MEMBERS) throw new Error(`more than ${MAX_MEMBERS} members`);
    const headerBytes = headerBytesOf(member);
    if (headerBytes <= member.length)
      return { stream: zlib.createInflateRaw(), skip: head.length - member.length + headerBytes };
    if (member.length > MAX_HEADER_BYTES) throw new Error('the header does not end');
    return 'more';
  },
};

/** Some servers send the raw deflate stream, without the zlib header that the name implies. */
export const inflateFormat: Format = {
  completionOf,
  open([first = 0, second = 0]) {
    const hasHeader = (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0;
    if (first === LESS_THAN && /[!?/a-z]/i.test(String.fromCharCode(second))) return 'plain';
    return { stream: zlib.createInflateRaw(), skip: hasHeader ? 2 : 0 };
  },
};

const LESS_THAN = 0x3c;

/** RFC 1952, 2.3; Infinity when it is longer than these bytes. */
function headerBytesOf(member: Buffer): number {
  if (member.length < 10) return Infinity;
  const flags = member[3]!;
  let at = 10;
  if (flags & 4) at += 2 + (member[at] ?? 0) + 256 * (member[at + 1] ?? Infinity);
  for (const text of [8, 16]) if (flags & text) at = (at < member.length && member.indexOf(0, at) + 1) || Infinity;
  return flags & 2 ? at + 2 : at;
}
