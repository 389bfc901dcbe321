/**
 * `npm run chaos [-- --rounds N --seed S --keep]`: whole runs on real processes. Each round kills, freezes or cuts off
 * something at a moment that the seed determines. One line per round; a failed round prints how to repeat it and where
 * its logs are; --keep keeps the logs of every round. Exit code 1 if a round failed.
 */
import { parseArgs } from 'node:util';
import { startShop } from '../support/shop/start-shop.ts';
import { startDatabaseServer } from '../support/mariadb/server.ts';
import { playRound, type RoundResult } from './round.ts';
import { drawScenario } from './scenario.ts';

const USAGE = 'usage: npm run chaos [-- --rounds N] [--seed S] [--keep]';
const SHOP_SEED = 41;

function readFlags(): { rounds: number; seed: number; keep: boolean } {
  try {
    const { values } = parseArgs({
      options: { rounds: { type: 'string' }, seed: { type: 'string' }, keep: { type: 'boolean' } },
    });
    const rounds = Number(values.rounds ?? 8);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
    if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds must be 1 or more');
    if (!Number.isInteger(seed) || seed < 1) throw new Error('--seed must be 1 or more');
    return { rounds, seed, keep: values.keep === true };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}\n`);
    process.exit(2);
  }
}

function describe({ scenario, story, exitCodes, faults, tookMs, folder }: RoundResult): string {
  const seconds = (tookMs / 1_000).toFixed(1);
  const line = `seed ${scenario.seed}  ${faults.length === 0 ? 'ok    ' : 'FAILED'}  exit ${exitCodes.join(', ')}  ${seconds} s  ${story.join(' | ')}`;
  if (folder === null) return line;
  return [
    line,
    ...faults.map((fault) => `  ! ${fault.replaceAll('\n', '\n    ')}`),
    ...(faults.length > 0 ? [`  again: npm run chaos -- --seed ${scenario.seed} --rounds 1`] : []),
    `  logs:  ${folder}`,
  ].join('\n');
}

const { rounds, seed, keep } = readFlags();
const stop = new AbortController();
// The current round is played to its end: it knows what it has frozen and started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    process.stderr.write(stop.signal.aborted ? 'still ending the round\n' : 'ending after this round\n');
    stop.abort();
  });
}
const database = await startDatabaseServer();
const shop = await startShop({ seed: SHOP_SEED, products: 100 });
const failed: number[] = [];
let played = 0;
try {
  for (; played < rounds && !stop.signal.aborted; played++) {
    const result = await playRound({ shop, shopSeed: SHOP_SEED, database, keep }, drawScenario(seed + played));
    process.stdout.write(`${describe(result)}\n`);
    if (result.faults.length > 0) failed.push(seed + played);
  }
} finally {
  await shop.stop();
  await database.stop();
}
process.stdout.write(
  `${played} rounds, ${failed.length} failed${failed.length > 0 ? `: seeds ${failed.join(', ')}` : ''}\n`,
);
process.exitCode = failed.length > 0 ? 1 : 0;
