/** docs/what-happens-when.md against the code: every message is on the page, and the page quotes only real messages. */
import { FEATURES } from '../../../orchestrator/features.ts';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../../orchestrator/cli/program/program.ts';
import { LOSS_REASON } from '../../../orchestrator/core/model/loss-reason.ts';
import { ERROR_KINDS } from '../../../shared/domain/errors.ts';
import { FAILURE_REASONS } from '../../../shared/domain/outcome.ts';
import { Sources } from './source-texts.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const page = readFileSync(`${ROOT}docs/what-happens-when.md`, 'utf8');
const sources = new Sources(ROOT);
const mainServer = sources.files('orchestrator').filter((file) => !file.startsWith('orchestrator/core/simulation/'));
const instance = sources.files('crawl-api');

/** Lines of the code blocks, and inline code: a message may be part of a sentence. */
const boxed = [...page.matchAll(/```text\n([^]*?)```/g)].flatMap((m) => m[1]!.trim().split('\n'));
const inline = [...page.replaceAll(/```[^]*?```/g, '').matchAll(/`([^`]+)`/g)].map((m) => m[1]!);

/** A quote that is too short would match everything. */
const isQuoted = (text: string): boolean =>
  [...boxed, ...inline].some((quote) => text.includes(quote) && quote.length >= Math.min(12, text.length));

describe('docs/what-happens-when.md', () => {
  it.each(sources.messagesTo(['alarm', 'alarmOnce', '#reject', 'onAlarm'], mainServer))(
    'has the alarm of $file: $text',
    ({ text }) => {
      expect(isQuoted(text)).toBe(true);
    },
  );

  it.each(sources.messagesOf('notes', 'orchestrator/core/act/results/finish.ts'))('has the note of a report: %s', (text) => {
    expect(isQuoted(text)).toBe(true);
  });

  it.each([
    ...sources.messagesIn('orchestrator/core/decide/end/exit-code.ts', 2),
    ...sources.messagesIn('orchestrator/core/decide/end/guard.ts', 3),
  ])('has the end reason of a run: %s', (text) => {
    expect(isQuoted(text)).toBe(true);
  });

  it.each(
    mainServer.flatMap((file) => [...sources.messagesOfKind('hold', file), ...sources.messagesOfKind('note', file), ...sources.messagesOfKind('claim', file)]),
  )('has the note of the control loop: %s', (text) => {
    expect(isQuoted(text)).toBe(true);
  });

  it.each(sources.messagesSetAs('problem', instance))('has the problem reported by an instance: %s', (text) => {
    expect(isQuoted(text)).toBe(true);
  });

  it.each(Object.values(LOSS_REASON))('explains the loss reason %s', (reason) => {
    expect(inline).toContain(reason);
  });

  it.each(FAILURE_REASONS)('explains failed(%s)', (reason) => {
    expect(inline).toContain(reason);
  });

  it.each(Object.keys(ERROR_KINDS))('says what to do about the error %s', (code) => {
    expect(inline).toContain(code);
  });

  it('mentions every fault (F1 to F60)', () => {
    const named = new Set([...page.matchAll(/\bF(\d+)\b/g)].map((m) => Number(m[1])));
    expect(Array.from({ length: 60 }, (_, i) => i + 1).filter((n) => !named.has(n))).toEqual([]);
  });

  describe('quotes only real messages', () => {
    const said = sources.allTexts([...mainServer, ...instance, ...sources.files('shared')]);
    it.each(boxed)('%s', (quote) => {
      expect(said.some((text) => text.includes(quote))).toBe(true);
    });
  });

  it('names only existing commands', () => {
    const commands = new Set(createProgram(FEATURES).commands.map((command) => command.name()));
    const named = [...page.matchAll(/orchestrator ([a-z]+)\b/g)].map((m) => m[1]!);
    expect(named.filter((name) => !commands.has(name))).toEqual([]);
  });
});
