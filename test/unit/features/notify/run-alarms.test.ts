import { describe, expect, it } from 'vitest';
import { type RaisedAlarm, RunAlarms } from '../../../../orchestrator/features/notify/run-alarms.ts';
import type { World } from '../../../../orchestrator/core/model/world.ts';
import { NO_PROGRESS } from '../../../../shared/wire/callbacks.ts';
import { START_MS, aRun, aWorld, anInstance } from '../../core/builders.ts';

const MINUTE = 60_000;
const incident = {
  verdict: 'banned',
  rule: 'status-429',
  atMs: 0,
  untilMs: null,
  returnedAtMs: null,
  overAtMs: null,
} as const;
const run = aRun({ phase: 'crawling', deadlineAtMs: START_MS + 4 * 60 * MINUTE });

function stage() {
  const sent: RaisedAlarm[][] = [];
  const alarms = new RunAlarms((raised) => sent.push(raised));
  const at = (minutes: number, more: Partial<World> = {}): void =>
    alarms.note({
      ...aWorld({ run, instances: [anInstance(0, { phase: 'crawling' })] }),
      nowMs: START_MS + minutes * MINUTE,
      ...more,
    });
  const banned = aWorld({ run, instances: [anInstance(0, { phase: 'crawling', incident })] });
  return { sent, at, banned: { fleet: banned.fleet } };
}

describe('alarms of a run at work', () => {
  it('are none on a calm one', () => {
    const { sent, at } = stage();
    for (let minute = 0; minute < 230; minute++) at(minute);
    expect(sent).toEqual([]);
  });

  it('are sent at once the first time, and what comes again in one notice', () => {
    const { sent, at, banned } = stage();
    at(1, banned);
    expect(sent).toEqual([[{ kind: 'banned', text: 'the site bans 1 of 1 addresses (status-429)' }]]);
    for (let minute = 2; minute < 20; minute++) at(minute, minute % 4 < 2 ? banned : {});
    expect(sent).toHaveLength(1);
    at(32, banned);
    expect(sent).toHaveLength(2);
    expect(sent[1]![0]!.text).toMatch(/ \(\d+ times\)$/);
    for (let minute = 33; minute < 200; minute++) at(minute, banned);
    expect(sent).toHaveLength(2);
  });

  it('say of a stall what the products came to', () => {
    const { sent, at } = stage();
    const misses = [{ reason: 'timeout', detail: 'no reply', products: 0, waiting: 7, url: null } as const];
    const { fleet } = aWorld({ run, instances: [anInstance(0, { progress: { ...NO_PROGRESS, misses } })] });
    at(30, { fleet, stall: { ms: 20 * MINUTE, sinceMs: START_MS + 10 * MINUTE } });
    expect(sent.flat()[0]!.text).toMatch(/^no progress for 20m \(7 timeout; no reply: set site\.timeout/);
  });

  it('name each kind in words', () => {
    const { sent, at } = stage();
    at(30, {
      site: { slowdown: 2, detail: '30 of the last 50 requests got HTTP 500', suspicion: null },
      stall: { ms: 20 * MINUTE, sinceMs: START_MS + 10 * MINUTE },
      forecast: {
        ...aWorld({ run }).forecast!,
        end: { p50Ms: run.deadlineAtMs + 30 * MINUTE, p95Ms: null, workers: [] },
      },
    });
    expect(sent.flat().map(({ kind }) => kind)).toEqual(['site-down', 'no-progress', 'late']);
    expect(
      sent
        .flat()
        .map(({ text }) => text)
        .join(),
    ).toMatch(/HTTP 500.*no progress for 20m.*late by/s);
  });
});
