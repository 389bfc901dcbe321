/** Text from a site, an instance or AWS cannot control the terminal or imitate our own lines. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createOutput, errorDocument, printError } from '../../../orchestrator/cli/output.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { findingsOf } from '../../../orchestrator/app/plan/site-robots.ts';
import { AppError } from '../../../shared/domain/errors.ts';

/** Clears the screen, sets the title (also with a C1 control), reverses text, returns to the start of the line. */
const HOSTILE = '\u001b[2J\u009d0;owned\u0007\u202eabc\r! all is well';
const WRITTEN_OUT = '\\u{1b}[2J\\u{9d}0;owned\\u{7}\\u{202e}abc\\u{d}! all is well';

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

  it('cannot forge a line of a table, or of the robots.txt output', () => {
    expect(renderTable(['url'], [['a\nb']]).split('\n')).toEqual(['url', 'a\\u{a}b']);
    const none = { version: '1', access: 'none' as const, rules: [], crawlDelayMs: null, source: 'x\nOK' };
    const { warnings } = findingsOf(none, { productUrl: 'https://s.example/{id}', intervalMs: 1 }, ['1']);
    expect(warnings.join()).toContain('x\\u{a}OK');
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
