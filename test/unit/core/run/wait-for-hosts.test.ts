import { expect, it } from 'vitest';
import { waitForHosts } from '../../../../orchestrator/core/run/wait-for-hosts.ts';
import type { HostInUse, RunStore } from '../../../../orchestrator/core/model/stores.ts';

const NOW = Date.UTC(2026, 10, 21, 2);
const ASKED: HostInUse = {
  host: 'shop.example',
  runId: 'r1',
  untilMs: NOW + 3_600_000,
  isResting: false,
  restMs: 20_000,
};
const RESTING = { ...ASKED, untilMs: NOW + 5_000, isResting: true };

/** A store that answers these, the last one for ever, and a clock that stands but for sleeping. */
function place(...answers: HostInUse[][]) {
  const lines: string[] = [];
  const asked: (readonly string[])[] = [];
  const leave = new AbortController();
  let nowMs = NOW;
  const runs: Pick<RunStore, 'hostsInUse'> = {
    hostsInUse(hosts) {
      asked.push(hosts);
      return Promise.resolve(answers[Math.min(asked.length, answers.length) - 1]!);
    },
  };
  const waiting = {
    runs,
    lock: {
      names: ['host:m.shop.example', 'host:shop.example', 'table:products'],
      lost: new AbortController().signal,
    },
    output: { line: (text = '') => void lines.push(text), document: () => undefined },
    interrupts: { leave: leave.signal, onFirst: () => undefined },
    clock: { now: () => nowMs, monotonic: () => nowMs, sleep: (ms: number) => Promise.resolve(void (nowMs += ms)) },
  };
  const wait = (): Promise<void> => waitForHosts(waiting, { runId: null, intervalMs: 15_000 });
  return { wait, waiting, lines, asked, leave, passedMs: () => nowMs - NOW };
}

it('begins at once where no run of many hosts has a host of the lock', async () => {
  const { wait, lines, asked } = place([]);
  await wait();
  expect(asked).toEqual([['shop.example']]);
  expect(lines).toEqual([]);
});

it('waits until a host has rested, and says so once', async () => {
  const { wait, lines, passedMs } = place([RESTING], [RESTING], [RESTING], []);
  await wait();
  expect(passedMs()).toBe(3_000);
  expect(lines).toEqual([
    'shop.example rests until 2026-11-21T02:00:05.000Z, because run r1 has asked it. This run waits for it, 20s at most.',
  ]);
});

it('gives up when a run still asks the host after a lease and a gap', async () => {
  const { wait, lines, passedMs } = place([ASKED]);
  await expect(wait()).rejects.toMatchObject({
    code: 'lock-held',
    exitCode: 20,
    message: expect.stringContaining('Run r1 asks shop.example, until 2026-11-21T03:00:00.000Z at most') as string,
    hint: 'Wait for that run, or end it with: orchestrator stop r1',
  });
  expect(passedMs()).toBe(20_000);
  expect(lines).toHaveLength(1);
});

it('ends at once when it is interrupted', async () => {
  const { wait, leave, passedMs } = place([ASKED]);
  leave.abort();
  await expect(wait()).rejects.toMatchObject({ code: 'interrupted' });
  expect(passedMs()).toBe(1_000);
});

it('asks nothing for a run that has locked no host, and where no run can compete', async () => {
  const { waiting, asked } = place([ASKED]);
  const asker = { runId: null, intervalMs: 15_000 };
  await waitForHosts({ ...waiting, lock: { ...waiting.lock, names: ['table:products'] } }, asker);
  await waitForHosts({ ...waiting, runs: {} }, asker);
  expect(asked).toEqual([]);
});
