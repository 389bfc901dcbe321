/**
 * `npm run demo`: a complete dry run on this machine that needs only Node. Starts the demo shop, creates a folder with
 * an SQLite file and a fleet.yaml, runs the real command line on it, and shows the results and the shop's own
 * statistics.
 */
import { resolve } from 'node:path';
import { startShop } from '../../test/support/shop/start-shop.ts';
import { makeDemoFolder } from './demo-folder.ts';
import { runOrchestrator } from './run-orchestrator.ts';
import { showPoliteness, showRows } from './show.ts';
import { watchStop } from './stop-signals.ts';

const PRODUCTS = 400;
const INTERVAL_MS = 200;
const DEADLINE = '45s';

const stop = watchStop(() => print('\nEnding the demo: the run stops its instances first. This takes a few seconds.'));
const shop = await startShop({ products: PRODUCTS });
try {
  const folder = makeDemoFolder(resolve('demo-output'), shop.productUrl, PRODUCTS, INTERVAL_MS);
  print(`The demo shop sells ${PRODUCTS} products at ${shop.url}`);
  print(`Product table and fleet.yaml are in ${folder.path}\n`);

  const args = ['run', '--deadline', DEADLINE, '--dry-run', '--yes', '--config', folder.configFile];
  print(`$ npx orchestrator ${args.join(' ')}\n`);
  process.exitCode = await runOrchestrator(args, stop);

  print(`\n${showRows(folder.databaseFile)}`);
  print(`\n${showPoliteness(await shop.stats(), INTERVAL_MS)}`);
  print(`\nDatabase  ${folder.databaseFile}`);
  print(`Report    ${folder.findReport() ?? 'none: the run did not get that far'}`);
} finally {
  await shop.stop();
  stop.dispose();
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
