import { expect, it } from 'vitest';
import { acrossRegions } from '../../../../orchestrator/features/exec/open-command-runner.ts';
import type { CommandResult, CommandRunner } from '../../../../orchestrator/features/exec/command-runner.ts';

const REQUEST = { instanceIds: ['i-1', 'i-2', 'i-3'], command: 'id', timeoutMs: 1_000 };
const resultOf = (instanceId: string, status: CommandResult['status']): CommandResult => {
  return { instanceId, status, exitCode: null, stdout: '', stderr: '', truncated: false };
};

/** Knows only its own instances. */
const regionWith = (...own: string[]): CommandRunner => ({
  run: ({ instanceIds }) =>
    Promise.resolve(instanceIds.map((id) => resultOf(id, own.includes(id) ? 'ended' : 'unreachable'))),
  [Symbol.dispose]: () => undefined,
});
const silent: CommandRunner = { run: () => Promise.reject(new Error('no answer')), [Symbol.dispose]: () => undefined };

const statuses = async (...runners: CommandRunner[]): Promise<string[]> =>
  (await acrossRegions(runners).run(REQUEST, AbortSignal.timeout(1_000))).map((r) => `${r.instanceId} ${r.status}`);

it('takes the result of the region in which the instance is', async () => {
  expect(await statuses(regionWith('i-1'), regionWith('i-3'))).toEqual(['i-1 ended', 'i-2 unreachable', 'i-3 ended']);
});

it('reaches the instances of the other regions while one does not answer, and fails when none does', async () => {
  expect(await statuses(silent, regionWith('i-2'))).toEqual(['i-1 unreachable', 'i-2 ended', 'i-3 unreachable']);
  await expect(statuses(silent, silent)).rejects.toThrow('no answer');
});
