/**
 * `npm run bench [-- NAME …]`: runs the named benches, or all quick ones, and stores their results in results/.
 * `npm run bench -- --against REV [NAME …]`: compares this tree with another revision (against/against.ts).
 */
import { parseArgs } from 'node:util';
import { benchAgainst } from './against/against.ts';
import type { Bench } from './frame.ts';
import { describeMachine, storeResult } from './results.ts';

/** By name. A slow bench (more than half a minute) runs only when named. */
const BENCHES: Record<string, { slow?: boolean; load: () => Promise<{ bench: Bench }> }> = {
  extract: { load: () => import('./extract/extract.ts') },
  'extract-trees': { slow: true, load: () => import('./extract/trees.ts') },
  fetch: { slow: true, load: () => import('./fetch/fetch.ts') },
  browser: { slow: true, load: () => import('./browser/browser.ts') },
  'whole-run': { slow: true, load: () => import('./whole-run/whole-run.ts') },
  loading: { slow: true, load: () => import('./loading/loading.ts') },
  reading: { load: () => import('./loading/reading.ts') },
  changes: { slow: true, load: () => import('./loading/changes.ts') },
  unchanged: { slow: true, load: () => import('./loading/unchanged.ts') },
  callbacks: { slow: true, load: () => import('./callbacks/callbacks.ts') },
  queue: { slow: true, load: () => import('./queue/queue.ts') },
  requests: { slow: true, load: () => import('./requests/requests.ts') },
  restart: { slow: true, load: () => import('./restart/restart.ts') },
  simulation: { slow: true, load: () => import('./simulation/simulation.ts') },
  retention: { slow: true, load: () => import('./retention/retention.ts') },
  recrawl: { slow: true, load: () => import('./recrawl/recrawl.ts') },
  seen: { slow: true, load: () => import('./seen/seen.ts') },
  sections: { load: () => import('./sections/sections.ts') },
  discovery: { slow: true, load: () => import('./discovery/discovery.ts') },
  'discovery-http': { slow: true, load: () => import('./discovery/over-http.ts') },
  dashboard: { slow: true, load: () => import('./dashboard/dashboard.ts') },
  fleet: { slow: true, load: () => import('./fleet/fleet.ts') },
  hosts: { slow: true, load: () => import('./hosts/hosts.ts') },
  'main-server': { slow: true, load: () => import('./main-server/main-server.ts') },
  'main-server-hosts': { slow: true, load: () => import('./main-server/hosts.ts') },
};

const { values, positionals: asked } = readArguments();
if (values.against !== undefined) process.exit(await benchAgainst(values.against, asked));
const unknown = asked.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) {
  process.stderr.write(`no such bench: ${unknown.join(', ')}\n  There are: ${Object.keys(BENCHES).join(', ')}\n`);
  process.exit(2);
}
const names = asked.length > 0 ? asked : Object.keys(BENCHES).filter((name) => !BENCHES[name]!.slow);

for (const name of names) {
  const { bench } = await BENCHES[name]!.load();
  process.stdout.write(`${bench.title} …\n`);
  const startMs = performance.now();
  const result = await bench.run();
  const tookMs = Math.round(performance.now() - startMs);
  const measuredAt = new Date().toISOString();
  storeResult({ name, title: bench.title, measuredAt, tookMs, machine: describeMachine(), ...result });
  for (const { name, value, target } of result.ratios) {
    process.stdout.write(`  ${name}: ${value.toFixed(2)}${target === undefined ? '' : ` (to reach: ${target})`}\n`);
  }
}
process.stdout.write('All figures are in bench/results/README.md\n');

function readArguments() {
  try {
    return parseArgs({ allowPositionals: true, options: { against: { type: 'string' } } });
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(2);
  }
}
