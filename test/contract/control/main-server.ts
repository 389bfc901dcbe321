/** A main server on any stores and any cloud, which can be killed at any call it makes. */
import { limitsFor } from '../../../shared/domain/limits.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { Compute } from '../../../orchestrator/cloud/compute.ts';
import type { LoadBalancer } from '../../../orchestrator/cloud/load-balancer.ts';
import { Callbacks } from '../../../orchestrator/control/callbacks.ts';
import { Dispatcher } from '../../../orchestrator/control/dispatch.ts';
import { ControlLoop } from '../../../orchestrator/control/loop.ts';
import { RobotsCache } from '../../../orchestrator/control/robots-cache.ts';
import type { NewRun } from '../../../orchestrator/control/stores.ts';
import type { FakeFleet } from './fake-fleet.ts';
import type { Mortality } from './mortal.ts';
import { mortal } from './mortal.ts';
import type { Stores } from './run-stage.ts';
import { createCore } from './run-stage.ts';

export interface MainServer {
  life: Mortality;
  alarms: string[];
  /** Why the loop ended; null while it runs or after a kill. */
  ended: { error: unknown } | null;
  kill(): void;
}

export interface MainServerOptions {
  run: NewRun;
  stores: Stores;
  fence: number;
  cloud: { compute: Compute; balancers: LoadBalancer; objects: ObjectStore };
  clock: Clock;
  fleet: FakeFleet;
  life: Mortality;
  /** The result of reading robots.txt. */
  readRobots: () => Promise<RobotsPolicy>;
  /** Overrides the usual instance types, in the order in which they are tried. */
  instanceTypes?: string[];
}

/** Starts the loop and connects the fleet to its callbacks. */
export function startMainServer(options: MainServerOptions): MainServer {
  const { run, fence, cloud, clock, fleet, life } = options;
  const death = new AbortController();
  const mortalCloud = {
    compute: mortal('compute', cloud.compute, life),
    balancers: mortal('balancers', cloud.balancers, life),
    objects: mortal('objects', cloud.objects, life),
  };
  const stores = wrapStores(options.stores, life);
  const core = createCore({ stores, fence }, run.id, mortalCloud, clock, mortal('offers', fleet, life));
  const launchKit = core.launchTemplate.bind(core);
  const { instanceTypes } = options;
  if (instanceTypes) core.launchTemplate = async () => ({ ...(await launchKit()), instanceTypes });
  const { settings } = run;
  const keeper = new RobotsCache({
    reader: settings.site.robots === 'ignore' ? null : { read: options.readRobots },
    clock,
    alarm: (detail) => core.alarm(detail),
    deadlineMs: settings.run.deadlineMs,
    heartbeatMs: limitsFor(settings.run.deadlineMs).heartbeatMs,
    intervalMs: settings.site.intervalMs,
  });
  core.robots = keeper;
  void keeper.run(death.signal);
  const dispatcher = new Dispatcher(core);
  const loop = new ControlLoop(core, dispatcher, () => undefined);
  const callbacks = new Callbacks(core, dispatcher, loop, run.privateKey);
  const server: MainServer = {
    life,
    alarms: core.alarms,
    ended: null,
    kill() {
      life.dead = true;
      death.abort();
    },
  };
  life.onDeath = () => server.kill();
  fleet.connect(callbacks, death.signal);
  const end = (error: unknown): void => {
    if (life.dead) return;
    server.ended = { error };
    death.abort();
  };
  loop.run(death.signal).then(() => end(null), end);
  return server;
}

export function wrapStores(stores: Stores, life: Mortality): Stores {
  return {
    runs: mortal('runs', stores.runs, life),
    fleet: mortal('fleet', stores.fleet, life),
    work: mortal('work', stores.work, life),
    results: mortal('results', stores.results, life),
  };
}
