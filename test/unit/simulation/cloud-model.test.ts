import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { planRun } from '../../../orchestrator/plan/plan-run.ts';
import { Chance } from '../../../orchestrator/simulation/chance.ts';
import { CloudModel } from '../../../orchestrator/simulation/cloud-model.ts';
import { Machine } from '../../../orchestrator/simulation/machine.ts';
import { scenarioOf } from '../../../orchestrator/simulation/scenario.ts';
import { anInstance } from '../control/builders.ts';
import { planInput } from '../plan/plan-input.ts';

const input = planInput({});
const scenario = scenarioOf(input, planRun(input, seededRandom(1)));

function add(cloud: CloudModel, slot: number, visibleAtMs: number): Machine {
  const record = anInstance(slot);
  const fate = new Chance(scenario, seededRandom(1)).fate();
  const owner = { slot, epoch: 1, chunks: 0, products: 0 };
  const machine = new Machine(record, owner, fate, cloud.start(record.request, 0), visibleAtMs);
  cloud.machines.set(machine.cloud.id, machine);
  return machine;
}

describe('CloudModel', () => {
  it('shows a machine from the moment on at which EC2 does', () => {
    const cloud = new CloudModel(scenario, 0);
    const early = add(cloud, 0, 1_000);
    const late = add(cloud, 1, 2_000);
    expect(cloud.list(999)).toEqual([]);
    expect(cloud.list(1_000)).toEqual([early.cloud]);
    expect(cloud.list(1_999)).toEqual([early.cloud]);
    expect(cloud.list(2_000)).toEqual([early.cloud, late.cloud]);
  });

  it('gives the very list again until something has changed, and leaves an earlier look as it was', () => {
    const cloud = new CloudModel(scenario, 0);
    const machine = add(cloud, 0, 0);
    const before = cloud.list(1_000);
    expect(cloud.list(9_000)).toBe(before);
    cloud.change(machine, 'running', 10_000);
    const after = cloud.list(10_000);
    expect(after.map((i) => i.state)).toEqual(['running']);
    expect(before.map((i) => i.state)).toEqual(['pending']);
    add(cloud, 1, 0);
    expect(cloud.list(10_000)).toHaveLength(2);
  });
});
