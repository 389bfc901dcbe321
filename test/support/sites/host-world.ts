/* oxlint-disable unicorn/require-post-message-target-origin -- threads have no origin */
/**
 * A world of many foreign hosts for the tests of a crawl that may go anywhere: each at an address of its own, all on
 * one port, with a ledger of what they were asked for. They run in a thread of their own.
 */
import { once } from 'node:events';
import { hostname } from 'node:os';
import { Worker } from 'node:worker_threads';
import { takeNetwork } from '../../../sandbox/network.ts';
import { type DnsAnswer, startDnsServer } from '../dns-server.ts';
import { freePort } from '../free-port.ts';
import { HostLedger, type HostRequest } from './host-ledger.ts';
import type { HostChange, HostSpec } from './host-spec.ts';
import type { HostThreadData, HostThreadOrder } from './host-thread.ts';

export interface HostWorldOptions {
  hosts: readonly HostSpec[];
  /** Default: a free one. */
  port?: number;
}

export interface HostWorld {
  port: number;
  /** The address of a host; null of `nxdomain`. */
  addressOf(name: string): string | null;
  /** Default path: that of its first page by number. */
  url(name: string, path?: string): string;
  /** The text of an /etc/hosts for its names and those that a machine needs. */
  hostsFile(): string;
  /**
   * The text of an /etc/resolv.conf with a name server that knows these names and no others; null where this user may
   * not listen on its port.
   */
  resolvConf(): string | null;
  /** Everything so far. */
  ledger(): Promise<HostLedger>;
  /** Now, on the clock of the ledger. */
  nowMs(): Promise<number>;
  /** A host is different from now on; its counts for bans begin again. */
  change(name: string, to: HostChange): Promise<void>;
  close(): Promise<void>;
}

/** The hosts' addresses are behind those that the network and its name server use. */
const FIRST_ADDRESS = 256;
const NAME_SERVER = 53;

export async function openHostWorld({ hosts, port: wantedPort }: HostWorldOptions): Promise<HostWorld> {
  // Nobody else listens in this network, and no outgoing connection takes one of its ports.
  const network = await takeNetwork(process.pid);
  let thread: Worker | null = null;
  let nameServer: { close(): Promise<void> } | null = null;
  const close = async (): Promise<void> => {
    await thread?.terminate();
    await nameServer?.close();
    await network.release();
  };
  try {
    const addresses = placeHosts(hosts, (i) => network.address(FIRST_ADDRESS + i));
    const listening = new Set(
      hosts.flatMap(({ name, behaviour, address }) =>
        behaviour === 'refused' || address !== undefined ? [] : (addresses.get(name) ?? []),
      ),
    );
    const port = wantedPort ?? (await freePort(network.address(FIRST_ADDRESS)));
    const data: HostThreadData = { specs: hosts, addresses: [...listening], port };
    thread = new Worker(new URL('host-thread.ts', import.meta.url), { workerData: data, execArgv: [] });
    await once(thread, 'message');
    const nameServerAddress = network.address(NAME_SERVER);
    const answers = [...addresses].map(([name, address]): [string, DnsAnswer] => [name, { a: [address] }]);
    nameServer = await startDnsServer(answers, { address: nameServerAddress, port: 53 }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EACCES' || error.code === 'EPERM') return null;
        throw error;
      },
    );
    const ask = asker(thread);
    const lines = [...addresses].map(([name, address]) => `${address} ${name}`);
    return {
      port,
      addressOf: (name) => addresses.get(name) ?? null,
      url: (name, path = '/p/1') => `http://${name}:${port}${path}`,
      hostsFile: () => ['127.0.0.1 localhost', `127.0.0.1 ${hostname()}`, ...lines, ''].join('\n'),
      resolvConf: () => (nameServer ? `nameserver ${nameServerAddress}\n` : null),
      ledger: async () => new HostLedger((await ask({ do: 'ledger' })).requests ?? []),
      nowMs: async () => (await ask({ do: 'ledger' })).nowMs,
      async change(name, to) {
        if (!addresses.has(name)) throw new Error(`the world has no ${name}`);
        await ask({ do: 'change', name, to });
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The address of each host that has one. */
function placeHosts(hosts: readonly HostSpec[], ownAddress: (i: number) => string): Map<string, string> {
  const addresses = new Map<string, string>();
  let own = 0;
  for (const { name, behaviour, address, sharesAddressOf } of hosts) {
    if (name !== name.toLowerCase() || addresses.has(name)) throw new Error(`${name} is no name, or there twice`);
    if (behaviour === 'nxdomain') continue;
    const shared = sharesAddressOf === undefined ? null : addresses.get(sharesAddressOf);
    if (shared === undefined) throw new Error(`${name} shares the address of no earlier host`);
    addresses.set(name, address ?? shared ?? ownAddress(own++));
  }
  return addresses;
}

interface Reply {
  id: number;
  nowMs: number;
  requests?: HostRequest[];
}

type Order = HostThreadOrder extends infer Each ? (Each extends { id: number } ? Omit<Each, 'id'> : never) : never;

function asker(thread: Worker): (order: Order) => Promise<Reply> {
  const waiting = new Map<number, (reply: Reply) => void>();
  let next = 0;
  thread.on('message', (reply: Reply) => {
    waiting.get(reply.id)?.(reply);
    waiting.delete(reply.id);
  });
  return (order) =>
    new Promise((resolve) => {
      const id = next++;
      waiting.set(id, resolve);
      thread.postMessage({ ...order, id });
    });
}
