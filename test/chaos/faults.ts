/** The faults that chaos can inject. Each is drawn with its own probability, so a seed determines everything. */
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT, type ExitCode } from '../../shared/domain/exit-codes.ts';
import { limitsFor } from '../../shared/domain/limits.ts';
import type { Random } from '../../shared/ports/random.ts';
import type { MainServers } from './main-servers.ts';
import type { SandboxInstance } from '../support/sandbox/start-sandbox.ts';
import { DEADLINE_S, type Link, LINKS, type Stage } from './stage.ts';

/** Permitted consequences of a fault; a run that shows any other has failed the round. */
export interface Allowance {
  /** Products that may be requested once more. */
  repeats?: number;
  /** Instances that may be given up and replaced, each with everything that it had not reported. */
  replacements?: number;
  /** Ends of the run other than `complete`. */
  exits?: ExitCode[];
}

export interface Fault {
  text: string;
  allows: Allowance;
  /** Resolves when the fault is over: what was frozen runs again, what was cut is restored. */
  apply(stage: Stage, servers: MainServers): Promise<void>;
}

export const between = (random: Random, low: number, high: number): number =>
  Math.round(low + random.next() * (high - low));

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;

/** In the order of the seeds: `npm run test:all` runs the first eight. */
export const FAULTS: readonly ((random: Random) => Fault)[] = [
  killMain,
  killInstance,
  killDatabase,
  (random) => cutLink(random, 'callbacks'),
  freezeInstance,
  freezeDatabase,
  killSandbox,
  freezeMainPastLease,
  (random) => blackHole(random, pick(random, LINKS)),
  freezeSandbox,
  (random) => cutLink(random, 'database'),
  freezeMain,
  loseInstance,
  terminateMain,
  (random) => cutLink(random, 'aws'),
  (random) => slowLink(random, pick(random, LINKS)),
  interruptMain,
  killKeeper,
  (random) => halfClose(pick(random, LINKS)),
];

function killMain(random: Random): Fault {
  const awayMs = between(random, 0, 3_000);
  return {
    text: `kill -9 the main server, away ${awayMs} ms`,
    allows: {},
    apply: async (_stage, servers) => endMain(servers, 'SIGKILL', awayMs),
  };
}

function terminateMain(random: Random): Fault {
  const awayMs = between(random, 0, 3_000);
  return {
    text: `SIGTERM the main server, away ${awayMs} ms`,
    allows: {},
    apply: async (_stage, servers) => endMain(servers, 'SIGTERM', awayMs),
  };
}

async function endMain(servers: MainServers, signal: 'SIGKILL' | 'SIGTERM', awayMs: number): Promise<void> {
  const back = delay(awayMs);
  servers.end(signal, back);
  await back;
}

function interruptMain(): Fault {
  return {
    text: 'Ctrl-C to the main server',
    allows: { exits: [EXIT.interrupted] },
    async apply(_stage, servers) {
      servers.end('SIGINT', Promise.resolve());
    },
  };
}

function freezeMain(random: Random): Fault {
  const forMs = between(random, 1_000, 5_000);
  return {
    text: `freeze the main server for ${forMs} ms`,
    allows: {},
    async apply(_stage, servers) {
      servers.freeze();
      await delay(forMs);
      servers.thaw();
    },
  };
}

function freezeMainPastLease(random: Random): Fault {
  const thawAfterMs = between(random, 0, 2_000);
  return {
    text: `freeze the main server past its lease, thaw it ${thawAfterMs} ms after another took over`,
    allows: {},
    apply: (_stage, servers) => servers.freezePastLease(thawAfterMs),
  };
}

function killInstance(random: Random): Fault {
  const which = random.next();
  return {
    text: 'kill -9 an instance process',
    allows: { repeats: 1 },
    apply: (stage) => signalInstance(stage, which, 'SIGKILL'),
  };
}

function freezeInstance(random: Random): Fault {
  const which = random.next();
  const forMs = between(random, 500, 3_500);
  return {
    text: `freeze an instance for ${forMs} ms`,
    // A request in flight has timed out when the process wakes.
    allows: { repeats: 1 },
    apply: (stage) => signalInstance(stage, which, 'SIGSTOP', forMs),
  };
}

/** Longer than the silence limit and the load balancer's check: the instance is given up and returns as a ghost. */
function loseInstance(random: Random): Fault {
  const which = random.next();
  const { lostMs } = limitsFor(DEADLINE_S * 1_000);
  const forMs = between(random, lostMs + 2_000, lostMs + 4_000);
  return {
    text: `freeze an instance for ${forMs} ms, longer than it may be silent`,
    allows: { repeats: 1, replacements: 1 },
    apply: (stage) => signalInstance(stage, which, 'SIGSTOP', forMs),
  };
}

async function signalInstance(stage: Stage, which: number, signal: NodeJS.Signals, forMs?: number): Promise<void> {
  const running = (await stage.instances()).filter((i): i is SandboxInstance & { pid: number } => i.pid !== null);
  const victim = running[Math.floor(which * running.length)];
  if (!victim) return;
  signalQuietly(victim.pid, signal);
  if (forMs === undefined) return;
  await delay(forMs);
  signalQuietly(victim.pid, 'SIGCONT');
}

function killDatabase(random: Random): Fault {
  const awayMs = between(random, 0, 3_000);
  return {
    text: `kill -9 the database, away ${awayMs} ms`,
    allows: {},
    async apply({ database }) {
      await database.kill();
      await delay(awayMs);
      await database.start();
    },
  };
}

function freezeDatabase(random: Random): Fault {
  const forMs = between(random, 2_000, 10_000);
  return {
    text: `freeze the database for ${forMs} ms`,
    allows: {},
    async apply({ database }) {
      database.signal('SIGSTOP');
      await delay(forMs);
      database.signal('SIGCONT');
    },
  };
}

function killSandbox(random: Random): Fault {
  const awayMs = between(random, 0, 2_000);
  return {
    text: `kill -9 the sandbox (EC2, balancer, bucket and every instance), away ${awayMs} ms`,
    allows: { replacements: Infinity },
    async apply(stage) {
      await stage.killSandbox();
      await delay(awayMs);
      await stage.restartSandbox();
    },
  };
}

function freezeSandbox(random: Random): Fault {
  const forMs = between(random, 1_000, 5_000);
  return {
    text: `freeze the sandbox (EC2, balancer, bucket) for ${forMs} ms`,
    allows: {},
    async apply(stage) {
      const { pid } = stage.sandbox();
      process.kill(pid, 'SIGSTOP');
      await delay(forMs);
      process.kill(pid, 'SIGCONT');
    },
  };
}

function killKeeper(): Fault {
  return {
    text: "kill -9 the sandbox's supervisor",
    allows: {},
    async apply(stage) {
      stage.supervisors().forEach((pid) => signalQuietly(pid, 'SIGKILL'));
    },
  };
}

/** Shorter than the silence after which an instance is given up. */
const LINK_DOWN_MS = [500, 4_000] as const;

function cutLink(random: Random, link: Link): Fault {
  const forMs = between(random, ...LINK_DOWN_MS);
  return hurtLink(`cut and refuse the link ${link} for ${forMs} ms`, link, forMs, (proxy) => {
    proxy.refuse();
    proxy.cut();
  });
}

function blackHole(random: Random, link: Link): Fault {
  const forMs = between(random, ...LINK_DOWN_MS);
  return hurtLink(`black hole in the link ${link} for ${forMs} ms`, link, forMs, (proxy) => proxy.blackHole());
}

function slowLink(random: Random, link: Link): Fault {
  const [ms, rate] = [between(random, 20, 200), between(random, 50_000, 500_000)];
  return hurtLink(`${ms} ms and ${rate} bytes/s on the link ${link} for 4000 ms`, link, 4_000, (proxy) => {
    proxy.delay(ms);
    proxy.limit(rate);
  });
}

function halfClose(link: Link): Fault {
  return hurtLink(`half-close the link ${link}`, link, 0, (proxy) => proxy.halfClose());
}

function hurtLink(text: string, link: Link, forMs: number, hurt: (proxy: Stage['links'][Link]) => void): Fault {
  return {
    text,
    // A failing link of ours loses no answer of the site; a product is requested once.
    allows: {},
    async apply({ links }) {
      hurt(links[link]);
      await delay(forMs);
      links[link].heal();
    },
  };
}

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}
