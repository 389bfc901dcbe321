/** A fleet whose records are at the hosts of a world: `site.hosts: any`, and the table `people` with their URLs. */
import type { TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { HOST_MAPPING, type HostSpec, pathsOf } from '../support/sites/host-spec.ts';
import { type HostWorld, openHostWorld } from '../support/sites/host-world.ts';
import { underHostsFile } from '../support/sites/under-hosts-file.ts';
import { type Config, type Fleet, type FleetOptions, makeFleet } from './fleet.ts';

export interface HostStageOptions extends Omit<FleetOptions, 'productUrl' | 'ids' | 'config' | 'prefix'> {
  hosts: readonly HostSpec[];
  /** Hosts of the world without a record in the list. */
  unlisted?: readonly HostSpec[];
  /** Further rows: ID and URL. */
  others?: (world: HostWorld) => readonly (readonly [id: string, url: string])[];
  /** Starts one of the test's own, which outlives main servers. Default: the one of the dry run. */
  sandbox?: (prefix: readonly [file: string, ...args: string[]]) => Promise<TestSandbox>;
  /** Over what all such fleets have, section by section. */
  config: { site: Config; run: Config; products?: Config };
}

export interface HostStage {
  world: HostWorld;
  fleet: Fleet;
  /** Ends all of it, and what still runs there. */
  close(): Promise<void>;
}

/** Rows per statement. */
const ROWS = 500;

/**
 * The world, and a fleet whose programs know its names. The ID of a record is its host and its path. Null where this
 * user may not have names of its own.
 */
export async function openHostStage({
  hosts,
  unlisted = [],
  others = () => [],
  sandbox,
  config,
  ...options
}: HostStageOptions): Promise<HostStage | null> {
  const closing: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closing.splice(0).toReversed()) await end();
  };
  try {
    const world = await openHostWorld({ hosts: [...hosts, ...unlisted] });
    closing.push(() => world.close());
    const namespace = underHostsFile(world.hostsFile(), world.resolvConf());
    if (namespace === null) {
      await close();
      return null;
    }
    closing.push(() => namespace.remove());
    const { prefix } = namespace;
    const own = await sandbox?.(prefix);
    if (own) closing.push(() => own.stop());
    const fleet = await makeFleet({
      ...options,
      prefix,
      productUrl: '',
      ids: [],
      config: {
        ...config,
        ...(own ? { aws: { endpoint: own.endpoint } } : {}),
        site: {
          product_url: undefined,
          hosts: 'any',
          pages_at_once: 8,
          allow_private: true,
          mapping: HOST_MAPPING,
          ...config.site,
        },
        products: { query: 'select id, url from people order by id', ...config.products },
        run: { max_failed: '100%', ...config.run },
      },
    });
    closing.push(() => fleet.remove());
    await fleet.query('create table people (id varchar(300) primary key, url varchar(2000))');
    const pages = hosts.flatMap((host) => pathsOf(host).map((path) => [host.name + path, world.url(host.name, path)]));
    const values = [...pages, ...others(world)].map(([id, url]) => `('${id}', '${url}')`);
    for (let at = 0; at < values.length; at += ROWS)
      await fleet.query(`insert into people (id, url) values ${values.slice(at, at + ROWS).join(', ')}`);
    return { world, fleet, close };
  } catch (error) {
    await close();
    throw error;
  }
}
