/**
 * A main server at work on one run: the core that its parts share, the loop, and the callbacks that share what the loop
 * has seen.
 */
import { isNonEmpty, mapAll } from '../../shared/domain/non-empty.ts';
import { limitsFor } from '../../shared/domain/limits.ts';
import { createQueueOfOne } from '../../shared/domain/queue-of-one.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { Callbacks } from './callbacks/callbacks.ts';
import { readPart } from './act/results/load-parts.ts';
import { LAUNCH_BUNDLE, withUpdatedBundle } from './act/launches/updated-bundle.ts';
import { TokenBucket } from './model/token-bucket.ts';
import { ControlLoop } from './loop.ts';
import type { Core, RegionPorts } from './model/core.ts';
import { ProcessState } from './model/process-state.ts';
import type { World } from './model/world.ts';
import { RobotsCache, type RobotsCacheOptions } from './observe/robots-cache.ts';
import { Dispatcher } from './act/shares/dispatch.ts';
import { setStallCause, stallKind } from './model/stall-causes.ts';

/** RunInstances calls that AWS accepts at once, and then per second; each region counts its own. */
const LAUNCH_BURST = 5;
const LAUNCHES_PER_SECOND = 2;

/** What differs between a main server on AWS and a modelled one. */
export interface MainServerParts extends Omit<Core, 'readPart' | 'robots' | 'regions' | 'oneAtATime' | 'processState'> {
  regions: readonly Omit<RegionPorts, 'launchTurn'>[];
  /** The run's own, as stored. */
  privateKey: string;
  /** Reads and re-reads the site's robots.txt. */
  robots: Pick<RobotsCacheOptions, 'reader' | 'deadlineMs'>;
  /** The same store; reports when its bucket is lost, in words, and null when it is there again. */
  watchBucket: (objects: ObjectStore, onChange: (detail: string | null) => void) => ObjectStore;
  /** Left out: parts are bytes that another machine wrote. */
  readPart?: Core['readPart'];
  onWorld: (world: World) => void;
}

export interface MainServer {
  core: Core;
  callbacks: Callbacks;
  loop: ControlLoop;
  /** Runs until the run has ended and nothing of it is left, or the signal aborts. Throws what no retry can mend. */
  run(signal: AbortSignal): Promise<void>;
}

export function createMainServer(parts: MainServerParts): MainServer {
  const { privateKey, watchBucket, onWorld, launchTemplate, regions, ...given } = parts;
  if (!isNonEmpty(regions)) throw new Error('a main server needs a region');
  const { clock, alarm } = given;
  const processState = new ProcessState();
  const { heartbeatMs } = limitsFor(parts.robots.deadlineMs);
  const robots = new RobotsCache({ ...parts.robots, clock, alarm, heartbeatMs });
  const template = remembered(launchTemplate);
  const core: Core = {
    readPart,
    ...given,
    objects: watchBucket(given.objects, bucketWatcher({ processState, clock, alarm })),
    robots,
    regions: mapAll(regions, (region) => ({
      ...region,
      launchTurn: new TokenBucket(clock, LAUNCH_BURST, LAUNCHES_PER_SECOND),
    })),
    launchTemplate: async () => withUpdatedBundle(await template(), await given.run.events(1, LAUNCH_BUNDLE)),
    oneAtATime: createQueueOfOne(),
    processState,
  };
  const dispatcher = new Dispatcher(core);
  const loop = new ControlLoop(core, dispatcher, onWorld);
  const callbacks = new Callbacks(core, dispatcher, loop, privateKey);
  return {
    core,
    callbacks,
    loop,
    async run(signal) {
      const over = new AbortController();
      void robots.run(AbortSignal.any([signal, over.signal]));
      try {
        await loop.run(signal);
      } finally {
        over.abort();
      }
    },
  };
}

/** Prepared once; a preparation that failed is tried again by the next call. */
export function remembered<T>(prepare: () => Promise<T>): () => Promise<T> {
  let prepared: Promise<T> | null = null;
  return () => {
    prepared ??= prepare().catch((error: unknown) => {
      prepared = null;
      throw error;
    });
    return prepared;
  };
}

/** A listener for `watchStore`: it records the stall cause for the watchdog and raises an alarm. */
export function bucketWatcher(core: Pick<Core, 'processState' | 'clock' | 'alarm'>): (detail: string | null) => void {
  return (detail) => {
    setStallCause(core.processState.stallCauses, 'lost-bucket', detail, core.clock.now());
    const text =
      detail === null
        ? 'the bucket can be used again; instances upload the results they have kept'
        : `the bucket cannot be used, so results stay on the instances: ${detail}. ${stallKind('lost-bucket').remedy}`;
    // An alarm that cannot be stored is in the log.
    core.alarm(text).catch(() => undefined);
  };
}
