/** One round: a run, its scenario, and the checks. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Shop } from '../support/shop/start-shop.ts';
import { checkRound } from './checks.ts';
import type { DatabaseServer } from '../support/mariadb/server.ts';
import { MainServers } from './main-servers.ts';
import { allowanceOf, describeMoment, type Moment, type Scenario } from './scenario.ts';
import { openStage, type Stage } from './stage.ts';

export interface RoundResult {
  scenario: Scenario;
  /** What was done when, and how the main servers ended. */
  story: string[];
  exitCodes: (number | string | null)[];
  /** Empty: the round is good. */
  faults: string[];
  tookMs: number;
  /** Its logs, if they were kept: always after a fault. */
  folder: string | null;
}

/** Shared by all rounds. */
export interface Ground {
  shop: Shop;
  shopSeed: number;
  database: DatabaseServer;
  /** Keep the logs of good rounds, too. */
  keep?: boolean;
  discovers?: boolean;
}

/** Never throws for what a run does; everything it started has ended when it resolves. */
export async function playRound(ground: Ground, scenario: Scenario): Promise<RoundResult> {
  const startedMs = performance.now();
  const { shop, database, discovers } = ground;
  const { products, instances } = scenario;
  const name = `chaos_${scenario.seed}`.replace('-', 'm');
  const stage = await openStage({ name, shop, database, products, instances, discovers });
  const servers = new MainServers(stage);
  const story: string[] = [];
  let faults: string[];
  try {
    const ended = servers.untilEnded();
    const over = new AbortController();
    const played = playSteps(stage, servers, { scenario, story, over: over.signal });
    // The first failure fails the round; steps whose moment never came are dropped at the run's end.
    await Promise.race([ended, played.then(() => ended)]);
    over.abort();
    await played;
    stage.heal();
    faults = await checkRound(stage, servers.ends, allowanceOf(scenario), ground.shopSeed);
  } catch (error) {
    faults = [error instanceof Error ? error.message : String(error)];
    servers.killAll();
  }
  const keep = faults.length > 0 || ground.keep === true;
  if (keep) keepLogs(stage, servers, [...story, '', ...faults, ''], await shop.log());
  stage.heal();
  await stage.close(keep);
  const exitCodes = servers.ends.map(({ exit }) => exit);
  const tookMs = performance.now() - startedMs;
  return { scenario, story, exitCodes, faults, tookMs, folder: keep ? stage.dir : null };
}

async function playSteps(
  stage: Stage,
  servers: MainServers,
  { scenario, story, over }: { scenario: Scenario; story: string[]; over: AbortSignal },
): Promise<void> {
  const startedMs = performance.now();
  for (const { moment, fault } of scenario.steps) {
    const what = `${fault.text} ${describeMoment(moment)}`;
    if (!(await reach(stage, moment, scenario.products, over))) {
      story.push(`too late for: ${what}`);
      continue;
    }
    story.push(`${((performance.now() - startedMs) / 1_000).toFixed(1)} s: ${what}`);
    await fault.apply(stage, servers);
  }
}

/** Waits for the moment; false if the run ended before it. */
async function reach(stage: Stage, moment: Moment, products: number, over: AbortSignal): Promise<boolean> {
  const requests = moment.at === 'crawl' ? moment.requests : moment.at === 'close' ? products : 0;
  while (!over.aborted && (await stage.run()) === null) await pause(over);
  while (!over.aborted && (await stage.shop.stats()).requests < requests) await pause(over);
  if (moment.at !== 'crawl') await delay(moment.delayMs, undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
}

const pause = (over: AbortSignal): Promise<unknown> => delay(20, undefined, { signal: over }).catch(() => undefined);

function keepLogs(stage: Stage, servers: MainServers, story: string[], arrivals: unknown[]): void {
  const write = (name: string, text: string): void => writeFileSync(join(stage.dir, name), text);
  write('story.txt', story.join('\n'));
  write('main-servers.txt', servers.output());
  write('shop.ndjson', arrivals.map((arrival) => `${JSON.stringify(arrival)}\n`).join(''));
}
