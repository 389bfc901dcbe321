/** What the tests of whole runs share: a shop, a fleet for each test and, on request, a sandbox for each test. */
import { afterEach, beforeAll, beforeEach } from 'vitest';
import { buildBundle } from '../../userdata/bundle.ts';
import type { TestEngine } from '../support/mariadb/database.ts';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, type ShopOptions, startShop } from '../support/shop/start-shop.ts';
import { type Config, type Fleet, type FleetOptions, makeFleet } from './fleet.ts';

export interface Stage {
  /** Its members are there from the first test on; it is reset before each. */
  shop: Shop;
  /** The fleet that the test has opened. */
  fleet: Fleet;
  /** The sandbox that the test has started. */
  sandbox: TestSandbox;
  /** Starts a sandbox that runs our bundle, for the next `open`; it ends with the test. */
  startSandbox: (dataDir?: string) => Promise<void>;
  /** Makes the fleet of a test: on SQLite, with the sandbox if one was started. It is removed after the test. */
  open: (ids?: readonly string[], config?: Config, engine?: TestEngine) => Promise<void>;
  /** Starts `run --dry-run --json ARGS` and resolves once the shop has this many requests. */
  crawl: (requests: number, ...args: string[]) => Promise<RunningCommand>;
}

/** Starts the shop before the tests of the surrounding block. */
export function useStage(shopOptions: ShopOptions): Stage {
  const shop = {} as Shop;
  const fleet = {} as Fleet;
  const sandbox = {} as TestSandbox;
  /** Ends what the test has opened, the newest last. */
  let opened: (() => Promise<unknown>)[] = [];
  let endpoint: string | null = null;

  beforeAll(async () => {
    Object.assign(shop, await startShop(shopOptions));
    return () => shop.stop();
  });
  beforeEach(() => shop.reset());
  afterEach(async () => {
    for (const end of opened.toReversed()) await end();
    opened = [];
    endpoint = null;
  });
  return {
    shop,
    fleet,
    sandbox,
    async startSandbox(dataDir) {
      const allowBundles = [(await buildBundle()).sha256];
      Object.assign(sandbox, await startSandbox({ allowBundles, ...(dataDir === undefined ? {} : { dataDir }) }));
      ({ endpoint } = sandbox);
      opened.push(() => sandbox.stop());
    },
    async open(ids = productIds(shopOptions.products ?? 0), config = {}, engine = 'sqlite') {
      const aws = endpoint === null ? {} : { aws: { endpoint } };
      const { productUrl } = shop;
      Object.assign(fleet, await makeFleet({ engine, productUrl, ids, config: { ...aws, ...config } }));
      opened.push(() => fleet.remove());
    },
    async crawl(requests, ...args) {
      const run = fleet.start('run', '--dry-run', '--json', ...args);
      const what = `${requests} requests`;
      await waitFor(async () => (await shop.stats()).requests >= requests, { what, timeoutMs: 60_000 });
      return run;
    },
  };
}

/**
 * One shop and one fleet for all tests of the surrounding block, their members there from the first hook after this on.
 */
export function useFleet(
  shopOptions: ShopOptions,
  options: Omit<FleetOptions, 'productUrl'>,
): { shop: Shop; fleet: Fleet } {
  const shop = {} as Shop;
  const fleet = {} as Fleet;
  beforeAll(async () => {
    Object.assign(shop, await startShop(shopOptions));
    Object.assign(fleet, await makeFleet({ ...options, productUrl: shop.productUrl }));
    return async () => {
      await fleet.remove();
      await shop.stop();
    };
  });
  return { shop, fleet };
}
