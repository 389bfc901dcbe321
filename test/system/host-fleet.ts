/** A fleet whose records are at the hosts of a world: `site.hosts: any`, and the table `people` with their URLs. */
import { HOST_MAPPING, type HostSpec, pathsOf } from '../support/sites/host-spec.ts';
import type { HostWorld } from '../support/sites/host-world.ts';
import { type Config, type Fleet, type FleetOptions, makeFleet } from './fleet.ts';

export interface HostFleetOptions extends Omit<FleetOptions, 'productUrl' | 'ids' | 'config'> {
  world: Pick<HostWorld, 'url'>;
  hosts: readonly HostSpec[];
  /** Further rows: ID and URL. */
  others?: readonly (readonly [id: string, url: string])[];
  /** Over what all such fleets have, section by section. */
  config: { site: Config; run: Config; products?: Config; aws?: Config };
}

/** Rows per statement. */
const ROWS = 500;

/** The ID of a record is its host and its path. */
export async function makeHostFleet({
  world,
  hosts,
  others = [],
  config,
  ...options
}: HostFleetOptions): Promise<Fleet> {
  const fleet = await makeFleet({
    ...options,
    productUrl: '',
    ids: [],
    config: {
      ...config,
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
  await fleet.query('create table people (id varchar(300) primary key, url varchar(2000))');
  const pages = hosts.flatMap((host) => pathsOf(host).map((path) => [host.name + path, world.url(host.name, path)]));
  const values = [...pages, ...others].map(([id, url]) => `('${id}', '${url}')`);
  for (let at = 0; at < values.length; at += ROWS)
    await fleet.query(`insert into people (id, url) values ${values.slice(at, at + ROWS).join(', ')}`);
  return fleet;
}
