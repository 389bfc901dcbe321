/**
 * Named bugs, each injected between the core and its world: with one switched on the runs must break an invariant, or
 * the checks prove nothing. Production code does not know about them.
 */
import { type CloudInstance, TAG } from '../../orchestrator/core/cloud/compute.ts';
import { type PartResults, piecesOf } from '../../orchestrator/core/model/part-results.ts';
import type { RunStores } from '../../orchestrator/core/model/stores.ts';
import { epochKey } from '../../shared/domain/epoch-id.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { FaultWorld, FaultyCloud, Wrongs } from './fault-world.ts';

export interface Bug {
  what: string;
  /** Invariants that may detect it. */
  breaks: readonly string[];
  /** Faults that reveal it; empty: every run does. */
  faults: readonly string[];
  /** It breaks runs of one kind only. */
  kind?: { discovery: true } | { hosts: true };
  /** Replay lines, where random plans would hardly ever reveal it. */
  plans?: readonly string[];
  wrongs: Wrongs;
}

/** The same object with some methods replaced. */
function overlay<T extends object>(inner: T, own: Partial<T>): T {
  return new Proxy(inner, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name) as unknown;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** One of the stores, with some methods replaced. */
function inStores<K extends keyof RunStores>(
  name: K,
  own: (store: NonNullable<RunStores[K]>, world: FaultWorld) => Partial<NonNullable<RunStores[K]>>,
): Wrongs {
  return {
    stores: (stores, world) => ({
      ...stores,
      bind: (binding) => {
        const rows = stores.bind(binding);
        const store = rows[name]!;
        return { ...rows, [name]: overlay(store, own(store, world)) };
      },
    }),
  };
}

/** The operator's pace, as the main server reads it, has this number of addresses; null: it asks for nothing. */
const pacedFor = (addresses: number | null): Wrongs =>
  inStores('run', (store) => ({
    get: async () => {
      const run = await store.get();
      return run?.operatorPace?.addresses == null ? run : { ...run, operatorPace: { ...run.operatorPace, addresses } };
    },
  }));

const wholeOf = async (given: PartResults): Promise<ItemResult[]> => (await Array.fromAsync(piecesOf(given))).flat();

/** One part of the cloud, with some methods replaced. */
function inCloud<K extends keyof FaultyCloud>(
  name: K,
  own: (part: FaultyCloud[K], world: FaultWorld) => Partial<FaultyCloud[K]>,
): Wrongs {
  return { cloud: (cloud, world) => ({ ...cloud, [name]: overlay(cloud[name], own(cloud[name], world)) }) };
}

/** A machine whose launch got no answer is not found by its tags. */
const answeredOnly = (compute: FaultyCloud['compute']): Partial<FaultyCloud['compute']> => ({
  list: async (tag) => (await compute.list(tag)).filter((i) => compute.launchedAnswered.has(i.id)),
});

let tokens = 0;

export const BUGS: Record<string, Bug> = {
  'no-client-token': {
    what: 'every RunInstances call has a token of its own',
    breaks: ['I7'],
    faults: ['F1', 'F8'],
    wrongs: inCloud('compute', (compute) => ({
      launch: (request) => compute.launch({ ...request, clientToken: `${request.clientToken}-${tokens++}` }),
      // Its tags are not looked up either, or that would save it.
      ...answeredOnly(compute),
    })),
  },
  'no-tag-look-up': {
    what: 'a machine whose launch got no answer is never found by its tags',
    breaks: ['I2'],
    faults: ['F1', 'F2'],
    wrongs: inCloud('compute', answeredOnly),
  },
  'no-fencing': {
    what: 'a main server that has lost the lock continues to write',
    breaks: ['I9'],
    faults: ['F41'],
    wrongs: {
      stores: (stores, world) => ({
        ...stores,
        bind: ({ fence: own, ...binding }) =>
          stores.bind({
            ...binding,
            get fence() {
              const now = world.db.lease.fence;
              if (own !== now) world.noteWrite('a row', false);
              return now;
            },
          }),
      }),
    },
  },
  'no-part-ledger': {
    what: 'a part that is loaded already is loaded again',
    breaks: ['I3'],
    faults: ['F3', 'F19', 'F46'],
    wrongs: inStores('results', (results, world) => ({
      parts: async () => (await results.parts()).map((p) => ({ ...p, state: 'seen' as const })),
      load: async (part, loaded) => {
        const known = world.db.run(world.run.id).parts.get(`${part.slot}/${part.epoch}/${part.seq}`);
        if (known) known.state = 'seen';
        return results.load(part, loaded);
      },
    })),
  },
  'commit-after-1205': {
    what: 'a lock wait timeout rolls back one statement, and the rest is committed: outcomes without rows',
    breaks: ['I3'],
    faults: ['F47'],
    wrongs: inStores('results', (results, world) => {
      let loads = 0;
      return {
        load: async (part, loaded) => {
          const counts = await results.load(part, loaded);
          if (loads++ % 2 === 0)
            for (const { id } of await wholeOf(loaded)) world.db.run(world.run.id).staging?.delete(id);
          return counts;
        },
      };
    }),
  },
  'grant-to-two': {
    what: 'a chunk is granted to every instance that requests it',
    breaks: ['I10'],
    faults: ['F16'],
    wrongs: inStores('work', (work, world) => ({
      grant: async (at, ids, limit) => {
        await work.grant(at, ids, limit);
        world.noteGrants(at, ids);
        return [...ids];
      },
    })),
  },
  'accept-replays': {
    what: 'a counter may be used twice',
    breaks: ['I9'],
    faults: ['F39'],
    wrongs: inStores('fleet', (fleet) => ({
      get: async (...at) => {
        const record = await fleet.get(...at);
        return record && { ...record, counter: -1 };
      },
      heartbeat: async (...beat) => {
        await fleet.heartbeat(...beat);
        return true;
      },
    })),
  },
  'no-signatures': {
    what: 'a token belongs to any machine that uses it: another machine may send hello with it',
    breaks: ['I9'],
    faults: ['F11'],
    wrongs: inStores('fleet', (fleet) => ({
      hello: async (...call) => {
        const result = await fleet.hello(...call);
        return result === 'other-instance' || result === 'other-key' ? 'repeated' : result;
      },
    })),
  },
  'terminate-any': {
    what: 'a machine is taken for our own without a check of its owner',
    breaks: ['I2'],
    faults: ['F44'],
    wrongs: inCloud('compute', (compute) => ({
      terminate: (ids) =>
        compute.terminate([
          ...ids,
          ...compute
            .all()
            .filter((m) => !m.tags[TAG.run])
            .map((m) => m.id),
        ]),
    })),
  },
  'unseen-is-gone': {
    what: 'a machine that EC2 does not show yet counts as terminated',
    breaks: ['I7', 'I2', 'I8'],
    faults: ['F8'],
    wrongs: inCloud('compute', (compute) => ({
      list: async (tag) => {
        const shown = await compute.list(tag);
        const unseen = compute.all().filter((m) => m.tags[tag.key] === tag.value && !shown.some((s) => s.id === m.id));
        return [...shown, ...unseen.map((m): CloudInstance => ({ ...m, state: 'terminated' }))];
      },
    })),
  },
  'publish-twice': {
    what: 'rows are inserted without their key',
    breaks: ['I3'],
    faults: [],
    wrongs: inStores('results', (results, world) => ({
      publish: async (...call) => {
        const published = await results.publish(...call);
        const table = world.db.run(world.run.id).rows;
        for (const [key, row] of Array.from(table.entries())) table.set(`${key} again`, { ...row });
        return published;
      },
    })),
  },
  'ignore-parts': {
    what: 'the parts of a lost instance are not listed in the bucket',
    breaks: ['I3'],
    faults: ['F19'],
    wrongs: {
      ...inCloud('objects', () => ({
        async *list() {
          // Never collects.
        },
      })),
      ...inStores('results', (results) => ({ register: (at, parts) => results.register(at, parts.slice(1)) })),
    },
  },
  'never-release': {
    what: 'what a lost instance has not crawled stays its own',
    breaks: ['I10'],
    faults: ['F19', 'F20'],
    wrongs: inStores('work', () => ({ returnChunks: () => Promise.resolve(0) })),
  },
  'ban-page-stored': {
    what: 'an instance takes a ban page for a product, and continues',
    breaks: ['I6', 'I8'],
    faults: ['F28'],
    wrongs: { instance: { keepsCrawlingBanned: true } },
  },
  'restart-forgets-pace': {
    what: 'a restarted process does not know when it sent its last request',
    breaks: ['I6'],
    faults: ['F21'],
    wrongs: { instance: { forgetsPace: true } },
  },
  'pace-not-told': {
    what: 'the main server does not read what the operator asks of the run',
    breaks: ['I6'],
    faults: ['F60'],
    wrongs: pacedFor(null),
  },
  'pace-without-cap': {
    what: 'more addresses are launched for a run that its operator has slowed',
    breaks: ['I6'],
    faults: [],
    plans: ['900008 F60@C+0', '900118 F60@C+4143'],
    wrongs: pacedFor(1_000),
  },
  'no-dead-man': {
    what: 'machines wait for the main server to end them',
    breaks: ['I2'],
    faults: ['F42'],
    wrongs: { neverSwitchesOff: true },
  },
  'no-gc': {
    what: 'no later run collects the leftovers of one without a main server',
    breaks: ['I2'],
    faults: [],
    plans: ['2026112209093 F10@P+0 F42@U+4605', '79 F19@C+300 F42@C+301'],
    wrongs: { neverCollects: true },
  },
  'never-terminates': {
    what: 'terminate calls do nothing, and machines do not switch themselves off either',
    breaks: ['I2'],
    faults: [],
    wrongs: {
      neverSwitchesOff: true,
      ...inCloud('compute', () => ({ terminate: () => Promise.resolve() })),
    },
  },
  'no-grants': {
    what: 'results count from any instance, also for products that were never granted to it',
    breaks: ['I8'],
    faults: ['F58'],
    wrongs: inStores('results', (results, world) => ({
      load: (part, loaded) => {
        const { grants, chunks } = world.db.run(world.run.id);
        grants.set(epochKey(part), new Set(chunks.map((_, i) => i + 1)));
        return results.load(part, loaded);
      },
    })),
  },
  'wrong-rows': {
    what: 'the values of one product are stored under another',
    breaks: ['I8'],
    faults: [],
    wrongs: inStores('results', (results) => ({
      load: async (part, given) => {
        const loaded = await wholeOf(given);
        const rows = loaded.map((r) => (r.outcome === 'stored' ? r.rows : [])).filter((r) => r.length > 0);
        const shifted = loaded.map((r) =>
          r.outcome === 'stored' ? { ...r, rows: rows.at(rows.indexOf(r.rows) - 1) ?? r.rows } : r,
        );
        return results.load(part, shifted);
      },
    })),
  },
  'partial-is-whole': {
    what: 'the older rows of a partial product are deleted as those of a whole one',
    breaks: ['I15'],
    faults: [],
    wrongs: inStores('results', (results, world) => ({
      publish: async (...call) => {
        const published = await results.publish(...call);
        const { older, items } = world.db.run(world.run.id);
        for (const { id, leftOut } of items) if (leftOut !== undefined) older.delete(id);
        return published;
      },
    })),
  },
  'partial-counted-twice': {
    what: 'partial products count again when their part is loaded again',
    breaks: ['I15'],
    faults: ['F3', 'F19', 'F46'],
    wrongs: inStores('results', (results, world) => ({
      parts: async () => (await results.parts()).map((p) => ({ ...p, state: 'seen' as const })),
      load: async (part, loaded) => {
        const run = world.db.run(world.run.id);
        const known = run.parts.get(`${part.slot}/${part.epoch}/${part.seq}`);
        const again = known?.state === 'loaded' ? known.partial : 0;
        const counts = await results.load(part, loaded);
        if (again > 0) run.totals = { ...run.totals, partial: (run.totals.partial ?? 0) + again };
        return counts;
      },
    })),
  },
  'deadline-ignored': {
    what: 'products that no instance crawled are left without an outcome',
    breaks: ['I1'],
    faults: ['F6'],
    wrongs: inStores('work', () => ({ failRest: () => Promise.resolve(0) })),
  },
  'links-counted-twice': {
    what: 'the links of a page are entered again when its part is',
    breaks: ['I14'],
    faults: [],
    kind: { discovery: true },
    wrongs: inStores('results', (results) => ({
      load: async (part, loaded) =>
        results.load(
          part,
          (await wholeOf(loaded)).map((r) =>
            r.outcome === 'stored' && r.links ? { ...r, links: [...r.links, ...r.links] } : r,
          ),
        ),
    })),
  },
  'frontier-in-memory': {
    what: 'what waits is forgotten when the main server is restarted',
    breaks: ['I14'],
    faults: [],
    plans: ['100029 discover F3@M+0'],
    wrongs: inStores('feed', (feed, world) => {
      let knows = world.effects.length === 0;
      return {
        state: async () => {
          if (!knows) await world.database!.update('waiting', null);
          knows = true;
          return feed.state();
        },
      };
    }),
  },
  'taken-twice': {
    what: 'a URL that was taken still waits',
    breaks: ['I1', 'I14'],
    faults: [],
    kind: { discovery: true },
    wrongs: inStores('feed', (feed, world) => {
      let isFirst = true;
      return {
        take: async (limit: number) => {
          const taken = await feed.take(limit);
          if (isFirst) await world.database!.update('taken', { state: 'waiting' });
          isFirst = false;
          return taken;
        },
      };
    }),
  },
  'taken-is-crawled': {
    what: 'what a run has taken and not crawled is not given to the next night',
    breaks: ['I14'],
    faults: [],
    plans: ['4 discover F20@C+3000 F6@C+0'],
    wrongs: { betweenNights: (database) => database.update('taken', { state: 'done' }) },
  },
  'no-rest': {
    what: 'the hosts of a lost instance go to another one at once',
    breaks: ['I16'],
    faults: [],
    plans: ['3 hosts F20@C+2500', '16 hosts F19@C+2000', '16 hosts F61@C+2000'],
    wrongs: inStores('work', (work) => ({ returnChunks: (at) => work.returnChunks(at) })),
  },
  'no-lease': {
    what: 'an instance that the main server has not heard for long asks its hosts on',
    breaks: ['I16'],
    faults: [],
    // EC2 refuses to end the machine, which wakes when its hosts have another owner.
    plans: ['382 hosts F61@C+0 F59@P+0', '699 hosts F61@C+0 F59@P+0'],
    wrongs: { instance: { ignoresLease: true } },
  },
  'host-news-unheard': {
    what: 'an instance asks a host on before the main server knows what that has asked for',
    breaks: ['I16'],
    faults: ['F19', 'F20'],
    kind: { hosts: true },
    wrongs: { instance: { tellsNothing: true } },
  },
  'host-notes-lost': {
    what: 'the next owner of a host is not told what that has asked for',
    breaks: ['I16'],
    faults: ['F19', 'F20'],
    kind: { hosts: true },
    wrongs: inStores('work', () => ({ hostNotes: () => Promise.resolve([]) })),
  },
  'slice-to-any': {
    what: 'the next slice of a host is offered to any instance',
    breaks: ['I16'],
    faults: [],
    kind: { hosts: true },
    wrongs: inStores('work', (work, world) => ({
      nextSlices: () => Promise.resolve([]),
      waiting: (limit, except) => {
        for (const chunk of world.db.run(world.run.id).chunks) chunk.owner = null;
        return work.waiting(limit, except);
      },
    })),
  },
  'secret-in-the-log': {
    what: 'an alarm contains the token of an instance',
    breaks: ['I12'],
    faults: [],
    wrongs: inStores('fleet', (fleet, world) => ({
      claim: (claim) => {
        world.texts.push(`launching with ${claim.token}`);
        return fleet.claim(claim);
      },
    })),
  },
};
