/** Starts and controls the demo shop for a test or the demo. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Arrival, ShopStats } from './arrivals.ts';
import type { BanPolicy } from './bans.ts';
import type { Rule } from './rules.ts';

export interface ShopOptions {
  /** 127.x.y.z; default 127.0.0.1. */
  address?: string;
  /** Default 0: any free port. */
  port?: number;
  /** Numbered products P00001 …; default 400. */
  products?: number;
  /** Default 1. */
  seed?: number;
  /**
   * Pages that link to each other (linked/linked-shop.ts), sitemaps, and a robots.txt that names them; default false.
   */
  linked?: boolean;
  /** Pages of the wiki below /wiki/ (linked/wiki.ts); default 0: none. */
  wiki?: number;
}

export interface Shop {
  url: string;
  /** For `site.product_url`. */
  productUrl: string;
  /** The same for pages with many records (reviews.ts). */
  reviewsUrl: string;
  pid: number;
  stats(): Promise<ShopStats>;
  /** Every request so far, in order of arrival. */
  log(): Promise<Arrival[]>;
  /** Replaces the rules; see rules.ts. */
  setRules(rules: Rule[]): Promise<void>;
  /** Adds product IDs. */
  addProducts(ids: string[]): Promise<void>;
  /** Replaces the text of /robots.txt; null: none, in a linked shop its own. */
  setRobots(text: string | null): Promise<void>;
  /** Replaces the ban policies; see bans.ts. */
  setBanPolicies(policies: BanPolicy[]): Promise<void>;
  /** Forgets arrivals, rules, bans and robots.txt. */
  reset(): Promise<void>;
  /** Ends the process; resolves when it is gone. */
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 20_000;

/** Starts a shop and waits until it answers. The shop also ends when this process does. */
export async function startShop(options: ShopOptions = {}): Promise<Shop> {
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const entry = fileURLToPath(new URL('main.ts', import.meta.url));
  const child = spawn(process.execPath, [entry, '--until-stdin-closes', ...flags], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A separate process group, so that Ctrl-C in the terminal does not end the shop before the crawl that uses it.
    detached: true,
  });
  const exited = once(child, 'exit');
  const lines = createInterface(child.stdout);
  const timeout = AbortSignal.timeout(START_TIMEOUT_MS);
  let ready: { url: string; pid: number };
  try {
    const first = await Promise.race([
      once(lines, 'line', { signal: timeout }),
      exited.then(() => Promise.reject(new Error('the demo shop ended before it was ready'))),
    ]);
    ready = JSON.parse(String(first[0])) as { url: string; pid: number };
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  const { url, pid } = ready;

  const ask = async (method: string, route: string, body?: unknown): Promise<Response> => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(`${url}/_shop/${route}`, init);
    if (!response.ok) throw new Error(`the demo shop refuses ${method} ${route}: ${await response.text()}`);
    return response;
  };
  const post = async (route: string, body?: unknown): Promise<void> => {
    await (await ask('POST', route, body)).text();
  };

  return {
    url,
    productUrl: `${url}/item/{id}`,
    reviewsUrl: `${url}/reviews/{id}`,
    pid,
    stats: async () => (await (await ask('GET', 'stats')).json()) as ShopStats,
    log: async () => {
      const text = await (await ask('GET', 'log')).text();
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Arrival);
    },
    setRules: (rules) => post('rules', rules),
    addProducts: (ids) => post('products', ids),
    setRobots: (text) => post('robots', text),
    setBanPolicies: (policies) => post('ban-policies', policies),
    reset: () => post('reset'),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
}
