import { afterEach, describe, expect, it, vi } from 'vitest';
import { watchInterrupts } from '../../../orchestrator/cli/interrupts.ts';

afterEach(() => vi.unstubAllEnvs());

describe('a terminal that closes', () => {
  it.each([
    [undefined, true],
    ['1', false],
  ])('interrupts the command, unless it runs under nohup (%s)', (nohup, leaves) => {
    vi.stubEnv('CRAWLFLEET_NOHUP', nohup);
    const interrupts = watchInterrupts();
    process.emit('SIGHUP');
    expect(interrupts.leave.aborted).toBe(leaves);
    interrupts[Symbol.dispose]();
  });
});
