/**
 * The database of discoveries in the campaign: the real stores and the real frontier on SQLite in memory. There is no
 * second frontier to model; time stands still while a statement is under way.
 */
import { seededRandom } from '../../shared/adapters/random.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import type { RunStores } from '../../orchestrator/core/model/stores.ts';
import { CHUNKS, idOnWire, ITEMS, type OpenItem } from '../../orchestrator/core/db/chunk-rows.ts';
import { connectSqlite, type Database } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { createFrontier, type FrontierRow, frontierTable } from '../../orchestrator/features/discovery/frontier.ts';
import { enterBeginnings, openFrontier } from '../../orchestrator/features/discovery/link-intake.ts';
import { migrate } from '../../orchestrator/core/db/migrate.ts';
import { createResultTable } from '../../orchestrator/core/db/result-table.ts';
import { beginRound, settleFrontier } from '../../orchestrator/features/discovery/settle-frontier.ts';
import { readVerifyFacts } from '../../orchestrator/core/db/verify-queries.ts';
import type { EventClock } from '../../orchestrator/core/simulation/event-clock.ts';
import type { MemoryStores } from '../../orchestrator/core/simulation/stores/create-memory-stores.ts';
import type { MemoryDatabase } from '../../orchestrator/core/simulation/stores/memory-database.ts';
import type { Ledger, LedgerItem } from './ledger.ts';
import { LINKED_MAPPING, type LinkedSite } from './linked-site.ts';
import { features } from '../support/features.ts';

/** Of the result table. */
export const FOUND = 'found';

let image: Promise<Buffer> | null = null;

/** A database with all tables: migrations take longer than a run. */
async function makeImage(): Promise<Buffer> {
  const db = connectSqlite(':memory:', 'memory', { clock: systemClock, random: seededRandom(1) });
  await migrate(db);
  await createFrontier(db, FOUND);
  await createResultTable(db, { table: FOUND }, LINKED_MAPPING, features);
  const connection = (await db.knex.client.acquireConnection()) as { serialize(): Buffer };
  const bytes = connection.serialize();
  await db.knex.client.releaseConnection(connection);
  await db.close();
  return bytes;
}

export class DiscoveryDatabase {
  readonly site: LinkedSite;
  readonly #db: Database;
  /** Triggers of the result table. */
  readonly #rules = new Set<string>();

  private constructor(db: Database, site: LinkedSite) {
    this.#db = db;
    this.site = site;
  }

  static async open(site: LinkedSite): Promise<DiscoveryDatabase> {
    const bytes = await (image ??= makeImage());
    return new DiscoveryDatabase(connectSqlite(bytes, 'memory', { clock: systemClock, random: seededRandom(1) }), site);
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  /**
   * As `orchestrator discover` begins: what earlier nights have taken is settled, and the seeds are entered. Returns
   * how many of them are new.
   */
  async beginNight(nowMs: number): Promise<{ entered: number; isNewRound: boolean }> {
    const db = this.#db;
    const { discover, seeds } = this.site;
    for (const name of this.#rules) await db.knex.raw('drop trigger ??', [name]);
    this.#rules.clear();
    const isNewRound = (await settleFrontier(db, FOUND, discover.seen)) === 0;
    if (isNewRound) await beginRound(db, FOUND);
    const opened = await openFrontier(db.knex, db, { discover, mapping: LINKED_MAPPING, table: FOUND });
    const urls = seeds.map((url) => ({ url, modifiedMs: null }));
    const { fresh } = await enterBeginnings(db, opened, urls, nowMs);
    return { entered: fresh, isNewRound };
  }

  async frontier(): Promise<FrontierRow[]> {
    return (await this.#db.knex(frontierTable(FOUND))) as FrontierRow[];
  }

  /** For bugs: changes the URLs in this state, or forgets them. */
  async update(state: FrontierRow['state'], values: Partial<FrontierRow> | null): Promise<void> {
    const rows = this.#db.knex(frontierTable(FOUND)).where({ state });
    await (values === null ? rows.delete() : rows.update(values));
  }

  /** By a rule that its owner has added to the result table, until the next night. */
  async refuseRows(ending: string): Promise<void> {
    const name = `refuses_${ending}`;
    this.#rules.add(name);
    await this.#db.knex.raw(
      `create trigger if not exists ?? before insert on ?? when new.product_id like '%${ending}'
       begin select raise(abort, 'refused by a trigger'); end`,
      [name, FOUND],
    );
  }

  /** Stores for main servers in this world: the faults of `struck` strike around each call. */
  stores(clock: EventClock, struck: MemoryDatabase, onFleet: () => void): MemoryStores {
    const around = <T extends object>(prefix: string, port: T): T =>
      new Proxy(port, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== 'function' || typeof name === 'symbol') return value;
          const method = `${prefix}.${name}`;
          return async (...args: unknown[]): Promise<unknown> => {
            struck.beforeCall(method);
            const call = Reflect.apply(value, target, args) as Promise<unknown>;
            const result = await clock.hold(call);
            if (prefix === 'fleet') onFleet();
            struck.afterCall(method);
            return result;
          };
        },
      });
    const stores = createStores({ ...this.#db, clock }, features);
    const bind = (binding: Parameters<MemoryStores['bind']>[0]): RunStores => {
      const { run, fleet, work, results, feed } = stores.bind(binding);
      return {
        run: around('runs', run),
        fleet: around('fleet', fleet),
        work: around('work', work),
        results: around('results', results),
        feed: around('feed', feed!),
      };
    };
    return { runs: around('runs', stores.runs), of: (runId) => stores.of(runId), bind };
  }

  ledger(runId: string): Ledger {
    const db = this.#db;
    const reader = createStores(db, features).of(runId);
    return {
      reader,
      instances: () => reader.fleet.instances(),
      items: async () => {
        type Row = OpenItem & Pick<LedgerItem, 'outcome' | 'reason'> & Record<'title' | 'slot' | 'epoch', unknown>;
        const rows = (await db
          .knex(`${ITEMS} as i`)
          .where('i.run_id', runId)
          .leftJoin(`${CHUNKS} as c`, (on) => {
            void on.on('c.run_id', 'i.run_id').andOn('c.first_n', '<=', 'i.n').andOn('c.last_n', '>=', 'i.n');
            void on.andOnVal('c.state', 'granted');
          })
          .leftJoin(`${FOUND} as r`, 'r.product_id', 'i.product_id')
          .orderBy('i.n')
          .select('i.n', 'i.product_id', 'i.path', 'i.outcome', 'i.reason', 'c.slot', 'c.epoch', 'r.title')) as Row[];
        return rows.map(({ n, outcome, reason, slot, epoch, title, ...row }) => {
          const owner = slot === null ? null : { slot: Number(slot), epoch: Number(epoch) };
          return { n, id: idOnWire(row), outcome, reason, owner, title, partial: false, hasOlder: null };
        });
      },
      facts: () => readVerifyFacts(db, runId),
    };
  }
}
