/** Finds and ends the cloud resources of the canary's runs, by the run's own tag so that nothing else is touched. */
import { hostname } from 'node:os';
import { openCloud } from '../../orchestrator/core/cloud-access/cloud-access.ts';
import { TAG } from '../../orchestrator/core/cloud/compute.ts';
import type { RunRecord } from '../../orchestrator/core/model/stores.ts';

type Place = Pick<RunRecord, 'id' | 'settings' | 'dryRun'>;

/** An instance in these states no longer costs anything. */
const GONE = new Set(['terminated', 'shutting-down']);

/** One line for each resource that is left; with `end` it is ended. */
export async function findLeftovers(run: Place, end: boolean): Promise<string[]> {
  const { aws } = run.settings;
  const cloud = openCloud(aws, run.dryRun);
  try {
    const left: string[] = [];
    for (const { compute, balancers } of cloud.regions) {
      const instances = (await compute.list({ key: TAG.run, value: run.id })).filter((i) => !GONE.has(i.state));
      const owned = (await balancers.list(aws.owner ?? hostname())).filter((b) => b.tags[TAG.run] === run.id);
      if (end && instances.length > 0) await compute.terminate(instances.map((i) => i.id));
      if (end) for (const balancer of owned) await balancers.removeOwned(balancer);
      left.push(...instances.map((i) => `${i.id} is ${i.state}`), ...owned.map((b) => `balancer ${b.name}`));
    }
    return left;
  } finally {
    cloud[Symbol.dispose]();
  }
}
