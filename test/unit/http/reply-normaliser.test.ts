/**
 * The normaliser between socket and HTTP parser: what browsers read becomes what the parser reads, and nothing else
 * changes.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_HEAD_BYTES, ReplyFault } from '../../../shared/adapters/http/reply-head.ts';
import { ReplyNormaliser } from '../../../shared/adapters/http/reply-normaliser.ts';
import { cpuMs } from '../../support/cpu-ms.ts';

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

/** What the parser gets for a reply that arrives in these pieces. */
function passAll(pieces: readonly Buffer[]): string {
  const replies = new ReplyNormaliser();
  return Buffer.concat(pieces.map((piece) => replies.push(piece))).toString('latin1');
}

const pass = (reply: string): string => passAll([bytesOf(reply)]);

/** The same, or that there was a fault. */
function outcomeOf(pieces: readonly Buffer[]): string {
  try {
    return passAll(pieces);
  } catch (error) {
    if (!(error instanceof ReplyFault)) throw error;
    return error.name;
  }
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

const OK = 'HTTP/1.1 200 OK\r\n';

describe('an ordinary reply', () => {
  it.each([
    `${OK}Content-Length: 2\r\n\r\nhi`,
    `${OK}\r\nto the end of the connection`,
    'HTTP/1.1 404\r\ncontent-length:0\r\n\r\n',
    'HTTP/1.0 200 OK\r\nX-Cafe: \xe9\t\r\nContent-Length: 1 \r\n\r\nx',
    `${OK}transfer-encoding: Chunked\r\n\r\n2\r\nhi\r\n0aF\r\n${'y'.repeat(175)}\r\n0\r\n\r\n`,
    `HTTP/1.1 301 Moved\r\nLocation: /a\r\nVary: a\r\nVary: b\r\nContent-Length: 0\r\n\r\n`,
    `${OK}Content-Security-Policy: ${'a'.repeat(200_000)}\r\n\r\n`,
    `${OK}${'X-A: b\r\n'.repeat(5_000)}\r\n`,
  ])('passes as the same bytes, %#', (reply) => {
    const bytes = bytesOf(reply);
    expect(new ReplyNormaliser().push(bytes)).toBe(bytes);
  });

  const token = fc.stringMatching(/^[!#$%&'*+.^_`|~\dA-Za-z-]{1,20}$/);
  const value = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,40}$/);
  const field = fc
    .tuple(token, value)
    .filter(([name]) => !/^(?:content-length|transfer-encoding|location)$/i.test(name))
    .map(([name, text]) => `${name}:${text}\r\n`);
  const chunked = fc
    .array(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 300 }))
    .map((chunks) => [...chunks, ''].map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join(''));
  const framed = fc.oneof(
    fc.string({ unit: 'binary-ascii' }).map((body) => [`Content-Length: ${body.length}\r\n`, body] as const),
    chunked.map((body) => ['Transfer-Encoding: chunked\r\n', body] as const),
    fc.string({ unit: 'binary-ascii' }).map((body) => ['', body] as const),
  );

  it('passes unchanged, in whatever pieces it arrives, also after another one', () => {
    const reply = fc
      .tuple(fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 404'), fc.array(field), framed)
      .map(([status, fields, [framing, body]]) => `${status}\r\n${fields.join('')}${framing}\r\n${body}`);
    fc.assert(
      fc.property(reply, fc.array(fc.nat()), reply, (first, cuts, second) => {
        const replies = new ReplyNormaliser();
        for (const one of [first, second]) {
          replies.expectHead();
          const pieces = split(bytesOf(one), cuts).map((piece) => replies.push(piece));
          expect(Buffer.concat(pieces).toString('latin1')).toBe(one);
        }
      }),
    );
  });
});

describe('an odd head', () => {
  it.each<[what: string, head: string, passed: string]>([
    ['a line without a colon', 'X-Broken\r\nContent-Length: 0', 'content-length: 0'],
    ['a name with a space', 'X Powered By: PHP\r\nContent-Length: 0', 'content-length: 0'],
    ['no name', ': x\r\nA: b', 'a: b'],
    ['white space before the colon', 'Content-Type\t : text/html', 'content-type: text/html'],
    ['folded lines', 'Content-Type: text/html;\r\n\t charset=utf-8\r\n  x', 'content-type: text/html; charset=utf-8 x'],
    ['a folded first line', ' folded: x\r\nA: b', 'a: b'],
    ['the fold of a line that is skipped', 'X Y: z\r\n Content-Length: 5\r\nA: b', 'a: b'],
    ['control characters', 'A: a\x01b\x7fc', 'a: a b c'],
    ['a CR that ends a line', 'A: a\rB: b', 'a: a\r\nb: b'],
  ])('is passed without its oddity: %s', (_what, head, passed) => {
    expect(pass(`${OK}${head}\r\n\r\nbody`)).toBe(`HTTP/1.1 200\r\n${passed}\r\n\r\nbody`);
  });

  it.each<[what: string, head: string, passed: string]>([
    ['equal Content-Lengths', 'Content-Length: 4\r\ncontent-length:4', 'content-length: 4'],
    ['a list of equal Content-Lengths', 'Content-Length: 4, 4', 'content-length: 4'],
    ['a Content-Length behind white space', 'Content-Length : 4', 'content-length: 4'],
    ['a Content-Length that is no number', 'Content-Length: +4', ''],
    ['a Content-Length beyond all numbers', 'Content-Length: 99999999999999999999', ''],
    [
      'a Transfer-Encoding that is not chunked',
      'Transfer-Encoding: identity\r\nContent-Length: 4',
      'content-length: 4',
    ],
    [
      'a Transfer-Encoding that only looks like chunked',
      'Transfer-Encoding: \x0bchunked\r\nContent-Length: 4',
      'content-length: 4',
    ],
  ])('ends its connection where its framing is odd: %s', (_what, head, passed) => {
    const fields = ['connection: close', ...(passed === '' ? [] : [passed])].join('\r\n');
    expect(pass(`${OK}Connection: keep-alive\r\n${head}\r\n\r\nbody`)).toBe(`HTTP/1.1 200\r\n${fields}\r\n\r\nbody`);
  });

  it.each([
    'Content-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 7',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, identity',
  ])('is read in chunks where it names them: %j', (head) => {
    expect(pass(`${OK}${head}\r\n\r\n4\nbody\n0\n\n`)).toBe(
      'HTTP/1.1 200\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n',
    );
  });

  it('of HTTP/1.0 has no chunks', () => {
    expect(pass('HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nbody')).toBe(
      'HTTP/1.0 200\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody',
    );
  });

  it('of status 205 has no body', () => {
    expect(pass('HTTP/1.1 205 Reset\r\n\r\n')).toBe('HTTP/1.1 205\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  });

  it.each<[line: string, passed: string]>([
    ['http/1.1 200 ok', 'HTTP/1.1 200'],
    ['HTTP/1.1  200', 'HTTP/1.1 200'],
    ['HTTP/1.1 404Not found', 'HTTP/1.1 404'],
    ['HTTP/1.1', 'HTTP/1.1 200'],
    ['HTTP/1.1 OK', 'HTTP/1.1 200'],
    ['HTTP/2.0 200 OK', 'HTTP/1.1 200'],
    ['HTTP/2 200 OK', 'HTTP/1.0 200'],
    ['HTTP 200 OK', 'HTTP/1.0 200'],
    ['HTTP/1.1 0200 OK', 'HTTP/1.1 200'],
    ['\r\nHTTP/1.1 200 OK', 'HTTP/1.1 200'],
    ['\xef\xbb\xbfHTTP/1.1 200 OK', 'HTTP/1.1 200'],
  ])('may begin with %j', (line, passed) => {
    expect(pass(`${line}\r\nA: b\r\nC D: e\r\n\r\nx`)).toBe(`${passed}\r\na: b\r\n\r\nx`);
  });

  it('may end its lines in LF alone', () => {
    for (const end of ['\n\n', '\n\r\n', '\r\n\n'])
      expect(pass(`HTTP/1.1 200 OK\nContent-Length: 4${end}\r\n\r\n`)).toBe(
        'HTTP/1.1 200\r\ncontent-length: 4\r\n\r\n\r\n\r\n',
      );
  });

  it('follows any number of informational ones', () => {
    const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
    const final = `${OK}Content-Length: 4\r\n\r\nbody`;
    expect(pass(`HTTP/1.1 100 Continue\n\n${early.repeat(2_000)}HTTP/1.1 101 x\r\n\r\n${final}`)).toBe(final);
  });

  it('may repeat its Location', () => {
    expect(pass('HTTP/1.1 302 Found\r\nLocation: /a\x01b\r\nlocation: /a\x01b \r\n\r\n')).toBe(
      'HTTP/1.1 302\r\nlocation: /a%01b\r\n\r\n',
    );
  });

  it.each<[what: string, reply: string, fault: RegExp]>([
    [
      'Content-Lengths differ',
      `${OK}Content-Length: 4\r\nContent-Length: 5\r\n\r\n`,
      /Content-Lengths that differ: 4 and 5/,
    ],
    [
      'Locations differ',
      'HTTP/1.1 302 x\r\nLocation: /a\r\nLocation: /b\r\n\r\n',
      /Locations that differ: \/a and \/b/,
    ],
    ['a NUL is in it', `${OK}A: \0\r\n\r\n`, /NUL/],
    ['the status does not exist', 'HTTP/1.1 20 x\r\n\r\n', /status 20,/],
    ['it is too long', `${OK}A: ${'a'.repeat(MAX_HEAD_BYTES)}\r\n\r\n`, /longer than 256 KB/],
    ['it does not end', `${OK}A: ${'a'.repeat(MAX_HEAD_BYTES)}`, /longer than 256 KB/],
    ['it is none', '220 mail.example ESMTP\r\n', /not HTTP: it begins with "220 mail\.example ESMTP/],
    ['it is HTTP/2', '\0\0\x12\x04\0\0\0\0\0', /only HTTP\/2/],
    ['it is TLS', '\x15\x03\x03\0\x02\x02\x28', /use https/],
  ])('is a fault where browsers refuse it: %s', (_what, reply, fault) => {
    expect(() => pass(reply)).toThrow(ReplyFault);
    expect(() => pass(reply)).toThrow(fault);
  });
});

describe('odd chunks', () => {
  it.each([
    ['LF alone', '4\nbody\n0\n\n'],
    ['white space behind the size', '4  \r\nbody\r\n0 \r\n\r\n'],
    ['extensions', '4;a="b";\x01\r\nbody\r\n0;x\r\n\r\n'],
    ['trailers', '4\r\nbody\r\n0\r\nX Y\0: z\r\nnothing\r\n\r\n'],
    ['many zeros', `${'0'.repeat(40)}4\r\nbody\r\n0\r\n\r\n`],
  ])('pass with plain framing: %s', (_what, body) => {
    const head = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
    expect(pass(head + body)).toBe(`${head}4\r\nbody\r\n0\r\n\r\n`);
  });

  it.each([
    '0x4\r\nbody\r\n0\r\n\r\n',
    '\r\n4\r\n',
    '4\r\nbody!0\r\n\r\n',
    `4;${'a'.repeat(20_000)}\r\nbody`,
    '4\r\nbody\r\n0\r\n\r\nHTTP',
  ])('are left to the parser where browsers refuse them, %#', (body) => {
    const reply = `${OK}Transfer-Encoding: chunked\r\n\r\n${body}`;
    expect(pass(reply)).toBe(reply);
  });

  it('keep their data, whatever it is and however it is framed', () => {
    const lineEnd = fc.constantFrom('\n', '\r\n');
    const chunk = fc.tuple(
      fc.string({ unit: 'binary-ascii', minLength: 1 }),
      fc.constantFrom('', ' ', ';a=b'),
      lineEnd,
      lineEnd,
    );
    fc.assert(
      fc.property(fc.array(chunk), lineEnd, fc.array(fc.nat()), (chunks, end, cuts) => {
        const frame = ([data, extra, first, second]: readonly [string, string, string, string]): string =>
          `${data.length.toString(16)}${extra}${first}${data}${second}`;
        const head = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
        const sent = `${head}${chunks.map(frame).join('')}0${end}A: b${end}${end}`;
        const plain = chunks.map(([data]) => frame([data, '', '\r\n', '\r\n'])).join('');
        expect(passAll(split(bytesOf(sent), cuts))).toBe(`${head}${plain}0\r\n\r\n`);
      }),
    );
  });
});

describe('blanks in the middle of a head of 256 KB', () => {
  const blanks = ' \t'.repeat(125_000);
  it.each([
    ['a length', `Content-Length: 5${blanks}x`],
    ['a value', `no colon\r\nX: a${blanks}b`],
    ['a name', `no colon\r\nX${blanks}Y: z`],
    ['a folded line', `no colon\r\nX: a\r\n b${blanks}c`],
  ])('take linear time: in %s', (_, lines) => {
    const bytes = bytesOf(`${OK}${lines}\r\n\r\n`);
    expect(cpuMs(() => outcomeOf([bytes]))).toBeLessThan(1_000);
  });
});

describe('any bytes', () => {
  const fragment = fc.constantFrom(
    'HTTP/1.1 200 OK',
    'HTTP/1.0 302',
    'HTTP/1.1 100',
    'http',
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    ' ',
    '\t',
    ':',
    '\0',
    '\x7f',
    ';',
    '0',
    '4',
    'ff',
    'Content-Length: 4',
    'Content-Length: 5',
    'Transfer-Encoding: chunked',
    'Location: /a',
    'body',
    'X Y: z',
    ', 4',
  );
  const reply = fc.array(fc.oneof({ weight: 9, arbitrary: fragment }, fc.string({ unit: 'binary-ascii' })), {
    maxLength: 40,
  });

  it('give bytes or a fault, the same in whatever pieces they arrive', () => {
    fc.assert(
      fc.property(reply, fc.array(fc.nat()), (fragments, cuts) => {
        const bytes = bytesOf(fragments.join(''));
        expect(outcomeOf(split(bytes, cuts))).toBe(outcomeOf([bytes]));
      }),
      { numRuns: 500 },
    );
  });
});
