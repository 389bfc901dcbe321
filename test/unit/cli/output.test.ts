/** Text from a site, an instance or AWS cannot control the terminal or imitate our own lines. */
import { globSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createOutput, errorDocument, printError } from '../../../orchestrator/cli/output.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { findingsOf } from '../../../orchestrator/core/prepare/site-robots.ts';
import { AppError } from '../../../shared/domain/errors.ts';

const ROOT = new URL('../../../', import.meta.url);

/** Clears the screen, sets the title (also with a C1 control), reverses text, returns to the start of the line. */
const HOSTILE = '\u001b[2J\u009d0;owned\u0007\u202eabc\r! all is well';
const WRITTEN_OUT = '\\u001b[2J\\u009d0;owned\\u0007\\u202eabc\\u000d! all is well';

/** What a terminal acts on, what reorders or hides text, and what is no character. */
const UNPRINTABLE = [
  ['\0', '\b', '\v', '\f', '\r', '\u001b]8;;https://evil.example\u001b\\', '\u001b[31m', '\u007f'],
  ['\u0084', '\u009b31m', '\u009d0;title\u009c', '\u2028', '\u2029', '\ud800', '\udc00', '\ufeff'],
  ['\u202a', '\u202b', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069', '\u2060', '\u{1d173}'],
].flat();

/** Each has formatting characters, marks or characters beyond the first plane that belong to it. */
const ORDINARY = [
  'Åtvidaberg – smörgåsbord, 1 299,00 kr',
  '日本語のタイトル「限定」 ＝１，２００円',
  '汉语拼音 北京烤鸭 𠮷野家',
  'قميص قطني أزرق ٣٬٥٠٠ د.إ',
  'می\u200cخواهم',
  'שלום\u200f! iPhone 15 \u200e(128GB)',
  'क्\u200dष \u0600\u0661',
  'សួស្តី\u200bពិភពលោក',
  'Wasch\u00admaschine',
  '👨\u200d👩\u200d👧 👩🏽\u200d🚀 ❤️\u200d🔥 🇸🇪 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} ☎️ 1️⃣',
  'a\\u001b is text, and so are ^[ and \\x1b[0m',
  'two lines\nand a\ttab',
];

describe('text on the terminal', () => {
  afterEach(() => vi.restoreAllMocks());

  function written(work: () => unknown): string {
    let text = '';
    for (const stream of [process.stdout, process.stderr])
      vi.spyOn(stream, 'write').mockImplementation((piece) => {
        text += String(piece);
        return true;
      });
    work();
    vi.restoreAllMocks();
    return text;
  }

  it('has its control characters escaped, whatever is printed', () => {
    expect(written(() => createOutput(false).line(`! ${HOSTILE}\nnext`))).toBe(`! ${WRITTEN_OUT}\nnext\n`);
    expect(written(() => createOutput(true).line(HOSTILE))).toBe(`${WRITTEN_OUT}\n`);
    const error = new AppError('internal', HOSTILE, { hint: HOSTILE });
    expect(written(() => printError(error, false))).toBe(`orchestrator: ${WRITTEN_OUT}\n  ${WRITTEN_OUT}\n`);
  });

  it('has every control and formatting character as an escape of JSON', () => {
    for (const text of UNPRINTABLE) {
      const shown = written(() => createOutput(false).line(`a${text}b`));
      expect(shown, JSON.stringify(text)).toMatch(/^[\x20-\x7e]+\n$/);
      expect(JSON.parse(`"${shown.trimEnd().replaceAll(/\\(?!u)/g, '\\\\')}"`)).toBe(`a${text}b`);
    }
  });

  it('is written by one file', () => {
    const writers = globSync('orchestrator/**/*.ts', { cwd: ROOT }).filter((file) =>
      /\bprocess\.std(out|err)\.write\b|\bconsole\.(log|info|warn|error)\b|\bstream\.write\b/.test(
        readFileSync(new URL(file, ROOT), 'utf8'),
      ),
    );
    expect(writers).toEqual([]);
    expect(readFileSync(new URL('orchestrator/cli/terminal.ts', ROOT), 'utf8')).toContain('to.write(');
  });

  it.each(ORDINARY)('leaves ordinary text as it is: %s', (text) => {
    expect(written(() => createOutput(false).line(text))).toBe(`${text}\n`);
  });

  it('cannot forge a line of a table, or of the robots.txt output', () => {
    expect(renderTable(['url'], [['a\nb']]).split('\n')).toEqual(['url', 'a\\u000ab']);
    const none = { version: '1', access: 'none' as const, rules: [], crawlDelayMs: null, source: 'x\nOK' };
    const { warnings } = findingsOf(none, { productUrl: 'https://s.example/{id}', intervalMs: 1 }, { ids: ['1'] });
    expect(warnings.join()).toContain('x\\u000aOK');
  });
});

describe('the error in a document', () => {
  it('has code, message and hint, and the exit code beside it', () => {
    expect(errorDocument(new AppError('aws-denied', 'no', { hint: 'attach it' }))).toEqual({
      error: { code: 'aws-denied', message: 'no', hint: 'attach it' },
      exitCode: 4,
    });
    expect(errorDocument(new Error('odd'))).toEqual({
      error: { code: 'internal', message: 'odd', hint: null },
      exitCode: 1,
    });
  });
});
