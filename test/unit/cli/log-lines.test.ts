import { describe, expect, it } from 'vitest';
import { isWanted, parseLogLine, renderEntry } from '../../../orchestrator/cli/log-lines.ts';

const line = (level: number, fields: Record<string, unknown>, msg = 'an action failed') =>
  JSON.stringify({ level, time: Date.UTC(2026, 10, 21, 2, 15), run: 'r', ...fields, msg });

describe('a line of the log', () => {
  it('shows time, level, slot and message', () => {
    const entry = parseLogLine(line(40, { slot: 3, epoch: 1, error: 'no answer', count: 2 }))!;
    expect(renderEntry(entry)).toBe(
      '2026-11-21 02:15:00.000 warn  slot 3.1 an action failed  error="no answer"  count=2',
    );
  });

  it('cannot control the terminal', () => {
    expect(renderEntry(parseLogLine(line(30, {}, 'red \u001b[31m'))!)).not.toContain('\u001b');
  });

  it.each(['', '{"level":30,"ti', '[]', 'null', '{"msg":"x"}'])(
    'that is truncated or foreign is skipped: %s',
    (text) => {
      expect(parseLogLine(text)).toBeNull();
    },
  );

  it('is found by its level and its slot, including the slot of an action', () => {
    const entry = parseLogLine(line(40, { action: 'terminate 3.2' }))!;
    expect(isWanted(entry, { level: 'info', slot: 3 })).toBe(true);
    expect(isWanted(entry, { level: 'info', slot: 2 })).toBe(false);
    expect(isWanted(entry, { level: 'error', slot: null })).toBe(false);
    expect(isWanted(parseLogLine(line(30, {}))!, { level: 'info', slot: 0 })).toBe(false);
  });
});
