/** Which lost boots are attributed to a slow machine, and which are not. */
import { describe, expect, it } from 'vitest';
import type { RunReport } from '../../../orchestrator/core/model/report.ts';
import { countSlowBoots, withoutSlowBoots } from '../../support/slow-boots.ts';

const lost = (reason: string, console?: string): string =>
  `slot 1 epoch 1 (i-0abc) was given up: ${reason}${console ? `; its console ends: boot: i-0abc | ${console}` : ''}`;

const reportWith = (...notes: string[]): RunReport => {
  const instances = { planned: 3, launched: 4, replaced: 1, terminated: 4 };
  const shards = [0, 1].map((slot) => ({ slot, epoch: 1 }));
  return { notes, instances, shards: [...shards, { slot: 1, epoch: 2 }] } as unknown as RunReport;
};

describe('slow boots', () => {
  it.each([
    ['without console output', lost('no-hello')],
    ['while the program was starting', lost('no-hello', 'cloud-init: installed the bundle 00 (9 bytes)')],
  ])('are those that ran out of time %s', (_, note) => {
    const report = reportWith('the clock is off', note);
    expect(countSlowBoots(report)).toBe(1);
    const { instances, shards } = withoutSlowBoots(report);
    expect(instances).toEqual({ planned: 3, launched: 3, replaced: 0, terminated: 3 });
    expect(shards.map(({ slot, epoch }) => `${slot}.${epoch}`)).toEqual(['0.1', '1.2']);
  });

  it.each([
    lost('heartbeat-lost'),
    lost('no-hello', '{"level":30,"msg":"listening"}'),
    lost('no-hello', 'crawl-api.service: the program ended with code 1.'),
    lost('no-hello', 'boot: failed: the bundle is not one this sandbox was allowed to run'),
    lost('no-hello', 'cloud-init: fault silent-boot: the user data was not carried out'),
  ])('are not: %s', (note) => {
    const report = reportWith(note);
    expect(withoutSlowBoots(report)).toBe(report);
  });

  it('are not searched for in a refused run', () => {
    const refused = { error: {} } as unknown as RunReport;
    expect(withoutSlowBoots(refused)).toBe(refused);
  });
});
