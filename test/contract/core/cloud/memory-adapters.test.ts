import { MemoryCompute } from '../../../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import { MemoryObjectStore } from '../../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { describeComputeContract } from './describe-compute-contract.ts';
import { describeLoadBalancerContract } from './describe-load-balancer-contract.ts';
import { describeObjectStoreContract } from './describe-object-store-contract.ts';

const type = { instanceType: 't4g.nano', architecture: 'arm64' as const };
const stop = () => Promise.resolve();

describeComputeContract('in memory', async () => ({
  compute: new MemoryCompute({ clock: systemClock }),
  ...type,
  userData: '#!/bin/sh\n',
  stop,
}));

describeLoadBalancerContract('in memory', async () => {
  const compute = new MemoryCompute({ clock: systemClock });
  const balancers = new MemoryLoadBalancer({ clock: systemClock, isRunning: (id) => compute.isRunning(id) });
  return { balancers, compute, ...type, listenPort: () => 80, stop };
});

describeObjectStoreContract('in memory', async () => {
  const store = new MemoryObjectStore();
  const fetchUrl = async (url: string) => (await store.get(url.slice('memory://'.length)))!;
  return { store, fetchUrl, stop };
});
