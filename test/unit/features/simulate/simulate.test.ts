/** The command without a configuration: its output, exit codes and refusals. */
import { describe, expect, it } from 'vitest';
import { expectFault } from '../../../support/expect-fault.ts';
import { features } from '../../../support/features.ts';
import { simulateCommand, type SimulateOptions } from '../../../../orchestrator/features/simulate/command.ts';

const OPTIONS: SimulateOptions = {
  configPath: undefined,
  flags: [],
  deadlineMs: 3_600_000,
  maxCost: undefined,
  products: 200,
  intervalMs: 10_000,
  instances: undefined,
  chances: {},
  runs: 2,
  seed: 1,
  dryRun: true,
  environment: {},
  features,
};

async function run(change: Partial<SimulateOptions>) {
  const lines: string[] = [];
  const documents: Record<string, unknown>[] = [];
  const exitCode = await simulateCommand(
    { ...OPTIONS, ...change },
    {
      json: false,
      line: (text = '') => void lines.push(text),
      document: (value) => void documents.push(value as Record<string, unknown>),
    },
  );
  return { exitCode, text: lines.join('\n'), document: documents[0]! };
}

describe('orchestrator simulate', () => {
  it('summarizes the runs', async () => {
    const { exitCode, text, document } = await run({});
    expect(exitCode).toBe(0);
    expect(text).toMatch(/^runs +2; all end with exit code 0$/m);
    expect(text).toMatch(/^products +200 planned: 198 stored, 2 gone, 0 failed on average$/m);
    expect(document).toMatchObject({ seed: 1, runs: 2, exitCode: 0, onTimeShare: 1, exitCodes: { 0: 2 } });
    expect(document).not.toHaveProperty('timeline');
  });

  it('prints the timeline of a single run', async () => {
    const { text, document } = await run({ runs: 1, chances: { loss: 1 } });
    expect(text).toMatch(/^0:00:00 {2}launching begins$/m);
    expect(text).toMatch(/fell silent|ec2-terminated/);
    const timeline = document.timeline as { atMs: number }[];
    expect(timeline.map((t) => t.atMs)).toEqual(timeline.map((t) => t.atMs).sort((a, b) => a - b));
  });

  it('names what goes wrong beside the share on time, which the plan does not count', async () => {
    const { text, document } = await run({ products: 60, chances: { loss: 0.05, bootFailure: 0.1 } });
    expect(text).toMatch(
      /^on time .* of runs with 5 % lost, 10 % never ready \(the plan says .* % if no instance is lost\)$/m,
    );
    expect(document).toMatchObject({ chances: { loss: 0.05, ban: 0, slow: 0, bootFailure: 0.1 } });
  });

  it('gives the same output for the same seed', async () => {
    const change = { products: 60, chances: { loss: 0.3, slow: 0.3, bootFailure: 0.1 } };
    const first = await run(change);
    expect((await run(change)).document).toEqual(first.document);
    expect((await run({ ...change, seed: 2 })).document).not.toEqual(first.document);
  });

  it('refuses more products than it can keep in memory', async () => {
    await expect(run({ products: 1_000_001 })).rejects.toMatchObject({ code: 'usage' });
  });

  it('refuses what the plan refuses, with the same reasons', async () => {
    const { exitCode, text } = await run({ products: 10, intervalMs: 3_600_000, deadlineMs: 60_000, dryRun: false });
    expect(exitCode).toBe(16);
    expect(text).toContain('This cannot be done');
  });

  it('simulates too few instances on request, and exits as that run would', async () => {
    const { exitCode, document } = await run({ products: 300, instances: 1, runs: 1 });
    expect(document).toMatchObject({ instances: { planned: 1 } });
    expect([0, 15]).toContain(exitCode);
  });

  it('simulates records at many hosts: what the night can do, why not more, and what the hosts saw', async () => {
    const { exitCode, text, document } = await run({
      hosts: 50,
      zipf: 2,
      dead: 0.1,
      products: 2_000,
      intervalMs: 15_000,
    });
    expect(exitCode).toBe(0);
    expect(text).toMatch(/^[\d,]+ records on 1 x \S+, seed 1$/m);
    expect(text).toMatch(
      /^\d+ of 2,000 tonight; hosts: 50, 10 % of them without an answer; \d+ have more than a night/m,
    );
    expect(text).toMatch(
      /^hosts +50, [\d,]+ requests; smallest gap at one 15.2s; asked by two instances at once: 0 times$/m,
    );
    expect(document).toMatchObject({ hosts: { listed: 50, twoOwners: 0 } });
  });

  it('refuses what is about hosts without any, and a pace that leaves no record to ask for', async () => {
    await expectFault(run({ dead: 0.1 }), 'usage', /--zipf and --dead are about the hosts of --hosts/);
    const slow = run({ hosts: 50, products: 100, intervalMs: 3_600_000 });
    await expectFault(slow, 'infeasible', /no record can be asked for within 1h at one request per 1h and host/);
  });

  it('names a missing configuration file', async () => {
    await expect(run({ configPath: '/nonexistent/fleet.yaml' })).rejects.toMatchObject({ code: 'config-missing' });
  });
});
