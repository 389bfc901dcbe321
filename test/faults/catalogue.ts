/** The faults: what each does to the world when its moment comes. Numbers are rows of the fault matrix. */
import { operatorPace, resetPace } from '../../orchestrator/core/decide/operator-pace.ts';
import { FleetSnapshot } from '../../orchestrator/core/model/fleet-snapshot.ts';
import type { RunRecord } from '../../orchestrator/core/model/stores.ts';
import type { OperatorPace } from '../../orchestrator/core/plan/host-pace.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import { AppError } from '../../shared/domain/errors.ts';
import type { LaunchResult } from '../../orchestrator/core/cloud/compute.ts';
import type { Delivery } from '../../orchestrator/core/simulation/fleet.ts';
import type { SimulatedInstance } from '../../orchestrator/core/simulation/instance.ts';
import { ALLOW_ALL } from '../unit/core/builders.ts';
import type { Dice } from './dice.ts';
import type { FaultWorld } from './fault-world.ts';
import type { Moment } from './faulty-cloud.ts';
import { intrude } from './intruder.ts';
import { forgePart, plantObjects } from './planter.ts';

export interface FaultKind {
  /** When it may strike. */
  moments: readonly Moment[];
  act: (world: FaultWorld, dice: Dice) => void;
}

const living = (world: FaultWorld): SimulatedInstance[] => world.fleet.instances.filter((i) => !i.dead && !i.fenced);

function refuse(world: FaultWorld, cause: 'pool' | 'quota' | 'throttled', ms: number, subnet: string | null): void {
  const result: Exclude<LaunchResult, { kind: 'launched' }> = { kind: 'refused', cause, message: `made up: ${cause}` };
  world.cloud.compute.refusal = { result, untilMs: world.clock.now() + ms, subnet };
}

/** An outage extends the time limits of the run. */
function away(world: FaultWorld, ms: number): number {
  world.outageMs += ms;
  return world.clock.now() + ms;
}

/** For how long, and how much of what passes. */
interface Disturbance {
  ms: number;
  share: number;
}

function network(world: FaultWorld, dice: Dice, { ms, share }: Disturbance, make: () => Delivery): void {
  const untilMs = away(world, ms);
  const before = world.fleet.network;
  world.fleet.network = (path, instance) => {
    if (world.clock.now() >= untilMs || !dice.chance(share)) return before(path, instance);
    return make();
  };
}

function breakDatabase(
  world: FaultWorld,
  dice: Dice,
  side: 'beforeCall' | 'afterCall',
  { ms, share }: Disturbance,
): void {
  const untilMs = away(world, ms);
  const before = world.db[side];
  world.db[side] = (method) => {
    before(method);
    if (world.clock.now() < untilMs && dice.chance(share)) throw new Error(`the database is gone (${method})`);
  };
}

/** Faults of a machine's process on the box. */
const boxes = {
  F19: (world: FaultWorld, dice: Dice) => {
    const victim = dice.pick(living(world));
    if (!victim) return;
    if (dice.chance(0.5)) world.cloud.compute.kill(victim.id);
    else world.cloud.compute.stop(victim.id);
  },
  F20: (world: FaultWorld, dice: Dice) => {
    const all = living(world);
    for (const victim of all.slice(0, dice.between(1, all.length))) world.cloud.compute.kill(victim.id);
  },
  F21: (world: FaultWorld, dice: Dice) => dice.pick(living(world))?.crash(dice.between(50, 1_500)),
  F22: (world: FaultWorld, dice: Dice) => {
    const victim = dice.pick(living(world));
    if (!victim) return;
    victim.freeze();
    world.later(dice.between(1_000, 40_000), () => {
      victim.thaw();
    });
  },
  F27: (world: FaultWorld, dice: Dice) => dice.pick(living(world))?.crash(dice.between(100, 3_000), dice.between(1, 3)),
};

const ALL_MOMENTS = ['L', 'B', 'R', 'D', 'C', 'U', 'K', 'T', 'M'] as const;
const ON_BOX = ['B', 'R', 'C', 'U', 'K', 'T', 'M'] as const;

export const FAULTS: Record<string, FaultKind> = {
  F1: {
    moments: ['P', 'L', 'B', 'C', 'U'],
    act: (world, dice) => void (world.cloud.compute.lostReplies += dice.between(1, 3)),
  },
  F2: { moments: ['P', 'L'], act: (world) => void (world.cloud.compute.lostReplies += 14) },
  F3: { moments: ALL_MOMENTS, act: (world, dice) => world.kill(dice.between(0, 8_000)) },
  F4: {
    moments: ['P', 'L', 'B', 'C'],
    act: (world, dice) => refuse(world, 'pool', dice.between(1_000, 15_000), null),
  },
  F5: {
    moments: ['P', 'L', 'C'],
    act: (world, dice) =>
      refuse(world, 'pool', dice.between(60_000, 600_000), dice.chance(0.7) ? 'subnet-0000000a' : null),
  },
  F6: { moments: ['P', 'L', 'C'], act: (world, dice) => refuse(world, 'quota', dice.between(1_000, 600_000), null) },
  F7: {
    moments: ['P', 'L', 'C', 'T'],
    act: (world, dice) => {
      world.cloud.compute.throttledUntilMs = world.clock.now() + dice.between(1_000, 60_000);
    },
  },
  F8: {
    moments: ['P', 'L'],
    act: (world, dice) => {
      world.cloud.compute.invisibleMs = dice.between(1_000, 30_000);
    },
  },
  F9: {
    moments: ['L', 'B'],
    act: (world, dice) => {
      world.cloud.compute.lostReplies += 1;
      world.later(dice.between(10, 2_000), () => {
        const young = world.cloud.compute.alive().filter((m) => world.clock.now() - m.launchedAtMs < 5_000);
        const victim = dice.pick(young);
        if (victim) world.cloud.compute.kill(victim.id);
      });
    },
  },
  F10: {
    moments: ['P', 'L', 'C'],
    act: (world, dice) => {
      let left = dice.between(1, 2);
      const { boots } = world.fleet;
      world.fleet.boots = (machine) => boots(machine) && left-- <= 0;
    },
  },
  F11: { moments: ['B', 'C', 'U'], act: (world) => intrude(world, 'token') },
  F12: {
    moments: ['P', 'L'],
    act: (world, dice) => {
      const before = world.fleet.onBoot;
      world.fleet.onBoot = (instance) => {
        before(instance);
        instance.skewMs = dice.between(-1_200_000, 1_200_000);
      };
    },
  },
  F13: {
    moments: ['R', 'D', 'C'],
    act: (world, dice) => {
      const victim = dice.pick(living(world));
      const untilMs = world.clock.now() + dice.between(1_000, 120_000);
      world.cloud.balancers.unhealthy = { ids: new Set(victim ? [victim.id] : []), untilMs };
    },
  },
  F14: { moments: ['P', 'R'], act: (world, dice) => void (world.cloud.balancers.invalidTargets += dice.between(1, 5)) },
  F15: {
    moments: ['R', 'D', 'C'],
    act: (world, dice) => {
      world.cloud.balancers.unhealthy = { ids: null, untilMs: away(world, dice.between(1_000, 20_000)) };
    },
  },
  F16: {
    moments: ['P', 'D', 'C'],
    act: (world, dice) => {
      const { onOffer } = world.fleet;
      const untilMs = world.clock.now() + dice.between(1_000, 60_000);
      world.fleet.onOffer = (result) =>
        world.clock.now() < untilMs && dice.chance(0.7)
          ? { kind: dice.chance(0.5) ? 'unknown' : 'not-ready', message: 'HTTP 502' }
          : onOffer(result);
    },
  },
  F17: {
    moments: ['P', 'D'],
    act: (world, dice) => {
      const { route } = world.fleet;
      world.fleet.route = (targets, turn) => (dice.chance(0.7) ? targets[0] : route(targets, turn));
    },
  },
  F19: { moments: ON_BOX, act: boxes.F19 },
  F20: { moments: ['C', 'U'], act: boxes.F20 },
  F21: { moments: ON_BOX, act: boxes.F21 },
  F22: { moments: ON_BOX, act: boxes.F22 },
  F27: { moments: ['C', 'U'], act: boxes.F27 },
  F28: {
    moments: ['C', 'U'],
    act: (world, dice) => {
      const address = dice.chance(0.7) ? (dice.pick(living(world))?.address ?? '*') : '*';
      world.bans.set(address, world.clock.now() + dice.between(1_000, 60_000));
    },
  },
  F29: {
    moments: ['C'],
    act: (world, dice) => {
      for (const instance of living(world)) instance.pageMs = dice.between(10, 3_000);
    },
  },
  F30: {
    moments: ['P', 'C'],
    act: (world, dice) => {
      const delayMs = dice.chance(0.5) ? dice.between(100, 3_000) : null;
      const closed = { ...ALLOW_ALL, version: 'closed', access: 'none', source: 'HTTP 503' } as const;
      world.robots = delayMs === null ? closed : { ...ALLOW_ALL, version: 'slower', crawlDelayMs: delayMs };
      if (delayMs === null)
        world.later(dice.between(1_000, 30_000), () => {
          world.robots = ALLOW_ALL;
        });
    },
  },
  F35: {
    moments: ['P'],
    act: (world) => {
      world.isLayoutChanged = true;
    },
  },
  F36: {
    moments: ['B', 'C', 'U', 'K', 'M'],
    act: (world, dice) => {
      world.cloud.objects.failsUntilMs = away(world, dice.between(500, 30_000));
    },
  },
  F37: {
    moments: ['P', 'C', 'U', 'K'],
    act: (world, dice) => void (world.cloud.objects.lostPutReplies += dice.between(1, 4)),
  },
  F38: {
    moments: ['U', 'M'],
    act: (world, dice) => {
      const parts = [...world.cloud.objects.objects.keys()].filter((key) => key.endsWith('.ndjson.gz'));
      const victim = dice.pick(parts);
      if (!victim) return;
      if (dice.chance(0.5)) world.cloud.objects.objects.delete(victim);
      else world.cloud.objects.objects.set(victim, Buffer.from('not a part'));
      world.spoiled.add(victim);
    },
  },
  F39: {
    moments: ['P', 'B', 'C', 'U', 'K'],
    act: (world, dice) => {
      const ms = dice.between(1_000, 20_000);
      const late = (): Delivery => ({ delayMs: dice.between(1, 4_000) });
      const makes: (() => Delivery)[] = [
        () => ({ lose: 'request' }),
        () => ({ lose: 'reply' }),
        () => ({ copiesAfterMs: [1, 5, 400, 5_000, 60_000] }),
        late,
      ];
      network(world, dice, { ms, share: 0.4 }, dice.pick(makes)!);
      intrude(world, 'replay');
      intrude(world, 'forged');
    },
  },
  F41: { moments: ALL_MOMENTS, act: (world, dice) => rival(world, dice) },
  F42: {
    moments: ['C', 'U'],
    act: (world) => {
      world.abandoned = true;
      world.kill(Infinity);
    },
  },
  F43: {
    moments: ['P', 'T'],
    act: (world, dice) => {
      const what = dice.between(0, 2);
      if (what === 0) world.cloud.compute.terminateFails = dice.between(1, 4);
      if (what === 1) world.cloud.compute.terminateRepliesLost = dice.between(1, 4);
      if (what === 2) world.cloud.compute.stubbornUntilMs = away(world, dice.between(1_000, 60_000));
    },
  },
  F44: { moments: ['P', 'L', 'C'], act: (world) => void world.addStranger() },
  F46: {
    moments: ALL_MOMENTS,
    act: (world, dice) =>
      breakDatabase(world, dice, 'beforeCall', {
        ms: dice.between(500, 20_000),
        share: dice.chance(0.5) ? 1 : 0.3,
      }),
  },
  F47: {
    moments: ALL_MOMENTS,
    act: (world, dice) => breakDatabase(world, dice, 'afterCall', { ms: dice.between(500, 8_000), share: 0.3 }),
  },
  F49: {
    moments: ['P', 'C', 'K'],
    // One product, or so many that the run is held.
    act: (world, dice) => world.refuseRows(String(dice.chance(0.6) ? dice.between(10, 59) : dice.between(0, 9))),
  },
  F57: {
    moments: ALL_MOMENTS,
    act: (world, dice) => {
      const ms = dice.chance(0.7) ? dice.between(1_000, 60_000) : dice.between(60_000, 600_000);
      away(world, ms);
      world.server?.clock.stop(ms);
    },
  },
  F58: {
    moments: ['C', 'U', 'K'],
    act: (world, dice) => (dice.chance(0.5) ? plantObjects : forgePart)(world, dice),
  },
  F59: { moments: ['P', ...ALL_MOMENTS], act: refuseRight },
  F60: { moments: ['B', 'C', 'U'], act: changePace },
  // Longer than any wait for it, and than the lease of its hosts.
  F61: {
    moments: ['R', 'C', 'U'],
    act: (world, dice) => {
      const victim = dice.pick(living(world));
      if (!victim) return;
      victim.freeze();
      world.later(dice.between(20_000, 150_000), () => victim.thaw());
    },
  },
};

/** The rights of a run, by the calls that AWS refuses without them. */
const REFUSABLE = {
  compute: ['list', 'terminate', 'consoleOutput'],
  balancers: ['ensure', 'isActive', 'register', 'health', 'deregister', 'remove', 'removeByName'],
  launch: ['launch'],
  parts: ['put'],
} as const;

/** AWS refuses one call from now on, half of the time for good; what it refuses to delete, gc removes later. */
function refuseRight(world: FaultWorld, dice: Dice): void {
  const { cloud, clock } = world;
  const rights = Object.entries(REFUSABLE).flatMap(([port, calls]) => calls.map((call) => [port, call] as const));
  const [port, call] = dice.pick(rights)!;
  const untilMs = clock.now() + (dice.chance(0.5) ? Infinity : dice.between(1_000, 120_000));
  const message = `made up: UnauthorizedOperation (${call})`;
  const isRefused = (name: string): boolean => name === call && clock.now() < untilMs;
  world.struck.push(`F59 ${port} ${call}`);
  if (port === 'launch')
    cloud.compute.refusal = { result: { kind: 'refused', cause: 'denied', message }, untilMs, subnet: null };
  else if (port === 'parts')
    cloud.objects.onCall = (name, key) => {
      if (isRefused(name) && key.endsWith('.ndjson.gz'))
        throw Object.assign(new Error(message), { name: 'AccessDenied' });
    };
  else
    cloud[port as 'compute' | 'balancers'].onCall = ({ name }: { name: string }) => {
      if (isRefused(name)) throw new AppError('aws-denied', message);
    };
}

/** The operator asks for a longer interval or a pause, and half of the time resets it later. */
function changePace(world: FaultWorld, dice: Dice): void {
  const { clock, stores, run } = world;
  const intervalMs = run.settings.site.intervalMs * dice.between(2, 12);
  const request = dice.chance(0.5) ? { intervalMs } : { pauseMs: dice.between(1_000, 90_000) };
  const set = async (pace: (run: RunRecord, fleet: FleetSnapshot) => OperatorPace): Promise<void> => {
    const record = await stores.runs.get(run.id);
    if (record === null || isRunEnd(record.phase)) return;
    const fleet = new FleetSnapshot(await stores.of(run.id).fleet.instances());
    const asked = pace(record, fleet);
    if (await stores.runs.setOperatorPace(run.id, asked)) world.notePace(asked);
  };
  // The command fails with its database; the operator repeats it.
  const attempt = (pace: Parameters<typeof set>[0]) => (): Promise<void> => set(pace).catch(() => undefined);
  world.later(
    0,
    attempt((record, fleet) => operatorPace(record, fleet, request, clock.now())),
  );
  if (dice.chance(0.5))
    world.later(
      dice.between(5_000, 60_000),
      attempt((record) => resetPace(record, clock.now())),
    );
}

/** A second main server takes the lock from the first one, which is still alive. */
function rival(world: FaultWorld, dice: Dice): void {
  world.later(dice.between(1, 3_000), async () => {
    if (world.abandoned || world.clock.now() < world.downUntilMs) return;
    await world.begin().catch(() => undefined);
  });
}
