/** Ports that die with their main server: at a chosen call everything it does stops, as after `kill -9`. */
import type { ServerOptions } from '../../orchestrator/core/simulation/world.ts';

export interface Mortality {
  /** Called before every call that changes something: false lets it happen, the others kill around it. */
  decide: (name: string) => false | 'before' | 'after';
  dead: boolean;
  onDeath: () => void;
}

/** Calls that only read. */
const LOOKS =
  /^(runs\.(get|list|events)|fleet\.(get|instances)|work\.(counts|waiting|outcomes|outcomesBySlot)|results\.(parts|totals|resultRows)|feed\.(state|waiting|aliases)|compute\.(list|consoleOutput|subnets|securityGroups|image)|balancers\.(isActive|health)|objects\.(get|presignGet))$/;

const never = (): Promise<never> => new Promise<never>(() => undefined);

/** The same port, until the main server is dead. */
function mortal<T extends object>(prefix: string, port: T, life: Mortality): T {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function' || typeof name === 'symbol') return value;
      const method = value as (...args: unknown[]) => unknown;
      return (...args: unknown[]): unknown => {
        const call = `${prefix}.${name}`;
        if (call === 'objects.list') return method.apply(target, args);
        return carryOut(call, () => method.apply(target, args) as Promise<unknown>, life);
      };
    },
  });
}

async function carryOut(name: string, perform: () => Promise<unknown>, life: Mortality): Promise<unknown> {
  if (life.dead) return never();
  const fate = LOOKS.test(name) ? false : life.decide(name);
  if (fate === 'before') {
    die(life);
    return never();
  }
  try {
    const result = await perform();
    if (fate === 'after') die(life);
    return life.dead ? never() : result;
  } catch (error) {
    if (life.dead) return never();
    throw error;
  }
}

function die(life: Mortality): void {
  life.dead = true;
  life.onDeath();
}

/** The ports of a main server, wrapped so that it can be killed at any call. */
export function mortalServer(life: Mortality): Required<Pick<ServerOptions, 'stores' | 'cloud' | 'offers'>> {
  return {
    stores: (stores) => ({
      runs: mortal('runs', stores.runs, life),
      of: (runId) => stores.of(runId),
      bind: (binding) => {
        const { run, fleet, work, results, feed } = stores.bind(binding);
        return {
          run: mortal('runs', run, life),
          fleet: mortal('fleet', fleet, life),
          work: mortal('work', work, life),
          results: mortal('results', results, life),
          feed: feed && mortal('feed', feed, life),
        };
      },
    }),
    cloud: (cloud) => ({
      compute: mortal('compute', cloud.compute, life),
      balancers: mortal('balancers', cloud.balancers, life),
      objects: mortal('objects', cloud.objects, life),
      ...(cloud.others === undefined ? {} : { others: cloud.others }),
    }),
    offers: (fleet) => mortal('offers', fleet, life),
  };
}
