/** What an instance costs until it requests its first page: dry runs by the command line of one tree. */
import { join } from 'node:path';
import { readProcess } from '../../test/support/processes.ts';
import { makeFleet } from '../../test/system/fleet.ts';
import { ONE_LINE_PAGE, oneLineSite, startBenchShop } from '../bench-shop.ts';
import { median } from '../frame.ts';
import { instancesOf, RUN_LIMIT_MS, watchRun } from '../watch-run.ts';

const INSTANCES = 6;
const PRODUCTS = 120;

/** Medians over the instances of one run. */
export async function measureBoots(tree: string): Promise<{ cpuMs: number; maxRssMb: number }> {
  /** By the address that has just made its first request: all instance processes at that moment. */
  const firsts = new Map<string, ReadonlyMap<string, ReturnType<typeof readProcess>>>();
  let folder = '';
  const shop = await startBenchShop(ONE_LINE_PAGE, ({ url, socket }, response) => {
    if (url === '/robots.txt') {
      response.writeHead(404).end();
      return true;
    }
    const address = socket.remoteAddress!;
    if (!firsts.has(address))
      firsts.set(address, new Map(instancesOf(folder).map(({ pid, instanceId }) => [instanceId, readProcess(pid)])));
    return false;
  });
  const fleet = await makeFleet({
    engine: 'sqlite',
    productUrl: shop.productUrl,
    ids: Array.from({ length: PRODUCTS }, (_, i) => `product-${i}`),
    config: { site: oneLineSite('100ms'), run: { deadline: '2m', min_instances: INSTANCES, max_instances: INSTANCES } },
    program: [process.execPath, join(tree, 'bin/orchestrator.js')],
    timeoutMs: RUN_LIMIT_MS,
  });
  folder = fleet.dir;
  try {
    await watchRun(fleet);
    const rows = await fleet.query('select instance_id, address from crawlfleet_instances where address is not null');
    const boots = rows.flatMap(({ instance_id: id, address }) => firsts.get(String(address))?.get(String(id)) ?? []);
    return {
      cpuMs: median(boots.map((boot) => boot.cpuMs)),
      maxRssMb: median(boots.map((boot) => boot.peakRssBytes)) / 1e6,
    };
  } finally {
    await fleet.remove();
    shop.stop();
  }
}
