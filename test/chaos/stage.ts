/** Everything one round runs on: shop, database, sandbox, the links between them, a user's folder. No fakes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { buildBundle } from '../../userdata/bundle.ts';
import { findLeftovers, type RunningCommand, waitFor } from '../support/processes.ts';
import { type SandboxInstance, startSandbox, type TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { productIds, SHOP_MAPPING } from '../support/shop/product.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { makeFleet } from '../system/fleet.ts';
import { type ChaosProxy, startChaosProxy } from './chaos-proxy.ts';
import type { DatabaseServer } from '../support/mariadb/server.ts';

/** database: main server to MariaDB · callbacks: instances to main server · aws: both to EC2, ELBv2 and the bucket. */
export const LINKS = ['database', 'callbacks', 'aws'] as const;
export type Link = (typeof LINKS)[number];

export const INTERVAL_MS = 200;
/** Long enough for every fault that we inject: a run that misses it has lost time for another reason. */
export const DEADLINE_S = 90;

/** A main server that takes longer than this hangs. */
const COMMAND_LIMIT_MS = 150_000;

export interface Stage {
  /** The command that starts the run. */
  command: 'run' | 'discover';
  dir: string;
  shop: Shop;
  ids: readonly string[];
  database: DatabaseServer;
  links: Record<Link, ChaosProxy>;
  /** Starts `orchestrator ARGS --config FILE`. */
  start(...args: string[]): RunningCommand;
  /** Moves the main server to another `address:port`, for callbacks from now on and for the next `resume`. */
  moveCallbacks(to: string): void;
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** The run of this round, once its row exists. */
  run(): Promise<{ id: string; phase: string } | null>;
  sandbox(): TestSandbox;
  instances(): Promise<SandboxInstance[]>;
  /** SIGKILL; EC2, the load balancer and every instance go with it, the bucket stays. */
  killSandbox(): Promise<void>;
  restartSandbox(): Promise<void>;
  /** Pids of the processes that ensure that no instance outlives its sandbox. */
  supervisors(): number[];
  heal(): void;
  /** Ends every process of this round; with `keep` the folder stays. */
  close(keep: boolean): Promise<void>;
}

export interface StageOptions {
  name: string;
  shop: Shop;
  database: DatabaseServer;
  products: number;
  instances: number;
  /** Merged over the section `run` of the configuration. */
  run?: Record<string, unknown>;
  /** The products are found by `orchestrator discover`, on a linked shop. */
  discovers?: boolean | undefined;
  /** Added to the environment of the main server. */
  environment?: Record<string, string>;
}

const discovery = ({ url }: Shop) => ({
  site: {
    mapping: {
      mappings: [
        { url_patterns: ['/item/'], ...SHOP_MAPPING },
        { name: 'lists', url_patterns: ['/category/', '/search', '/$'] },
      ],
    },
  },
  discover: { seeds: [`${url}/`], depth: 4, into: { table: 'product_snapshots', id: '/item/(\\w+)' }, pages: 200 },
});

/** The shop is reset, the database empty, every link intact. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const { shop, database, name } = options;
  await shop.reset();
  const { sha256 } = await buildBundle();
  const links = await openLinks(database.host);
  const ids = productIds(options.products);
  await database.query('', `create database ${name} character set utf8mb4`);
  let movedTo: string | null = null;
  const fleet = await makeFleet({
    engine: 'mysql',
    database: {
      url: database.url(name, `127.0.0.1:${links.database.port}`),
      drop: async () => void (await database.query('', `drop database ${name}`)),
    },
    productUrl: shop.productUrl,
    ids,
    config: {
      ...(options.discovers ? discovery(shop) : {}),
      aws: { endpoint: `http://127.0.0.1:${links.aws.port}` },
      server: { url: `http://127.0.0.1:${links.callbacks.port}` },
      run: {
        deadline: `${DEADLINE_S}s`,
        grace: '20s',
        min_instances: options.instances,
        max_instances: options.instances,
        ...options.run,
      },
    },
    timeoutMs: COMMAND_LIMIT_MS,
    environment: () => ({
      ...options.environment,
      ...(movedTo === null ? {} : { FLEET_SERVER_LISTEN: movedTo }),
    }),
  });
  const { dir } = fleet;
  const data = join(dir, 'sandbox');
  mkdirSync(data);
  let sandbox: TestSandbox;
  const startSandboxHere = async (): Promise<void> => {
    sandbox = await startSandbox({ allowBundles: [sha256], dataDir: data });
    links.aws.setTarget(new URL(sandbox.endpoint).host);
  };
  await startSandboxHere();
  const query = (sql: string) => database.query(name, sql);
  const closed = new AbortController();
  const run = async (): Promise<{ id: string; phase: string } | null> => {
    const [row] = await query('select id, phase, settings from crawlfleet_runs').catch(() => []);
    if (!row) return null;
    // The main server takes any free port; instances reach it through the link.
    const { server } = JSON.parse(String(row.settings)) as { server: { callbackListen: string } };
    links.callbacks.setTarget(movedTo ?? server.callbackListen);
    return { id: String(row.id), phase: String(row.phase) };
  };
  /** The first callbacks must not fail only because the link has no target yet. */
  const connectCallbacks = async (): Promise<void> => {
    while (!closed.signal.aborted && (await run()) === null) await delay(50);
  };
  void connectCallbacks();
  return {
    command: options.discovers ? 'discover' : 'run',
    dir,
    shop,
    ids,
    database,
    links,
    query,
    start: (...args) => fleet.start(...args),
    moveCallbacks(to) {
      movedTo = to;
      links.callbacks.setTarget(to);
    },
    run,
    sandbox: () => sandbox,
    instances: () => sandbox.instances(),
    async killSandbox() {
      links.aws.setTarget(null);
      await sandbox.kill();
    },
    restartSandbox: startSandboxHere,
    supervisors: () =>
      findLeftovers(data)
        .filter(({ command }) => command.includes('supervisor/main'))
        .map(({ pid }) => pid),
    heal: () => Object.values(links).forEach((link) => link.heal()),
    async close(keep) {
      closed.abort();
      await sandbox.stop();
      // The supervisor of a sandbox that was killed exits on its own, a moment later.
      await waitFor(() => findLeftovers(dir).length === 0, { what: 'the end', timeoutMs: 2_000 }).catch(
        () => undefined,
      );
      await fleet.remove(keep);
      await Promise.all(Object.values(links).map((link) => link.close()));
    },
  };
}

async function openLinks(databaseHost: string): Promise<Record<Link, ChaosProxy>> {
  const [database, callbacks, aws] = await Promise.all([
    startChaosProxy(databaseHost),
    startChaosProxy(),
    startChaosProxy(),
  ]);
  return { database, callbacks, aws };
}
