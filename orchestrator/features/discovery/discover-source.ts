/** What a discovery begins with: what waits from the night before, and new URLs of seeds, sitemaps and search terms. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Database } from '../../core/db/connect.ts';
import { fitUrls } from './fit-urls.ts';
import { countWaiting, createFrontier } from './frontier.ts';
import { enterBeginnings, judgeLinks, openFrontier } from './link-intake.ts';
import { createProductSource } from '../../core/db/product-source.ts';
import { inQuery } from '../../core/db/retry.ts';
import { beginRound, bestWaiting, lastTaken, settleFrontier, storeDenyList, storeScores } from './settle-frontier.ts';
import type { LinkRules } from './link-rules.ts';
import type { Output } from '../../core/caller.ts';
import { readLines } from '../../core/config/follow-section.ts';
import { asDiscovery, type DiscoveryConfig, discoveryConfig } from './discovery-config.ts';
import type { ProductList } from '../../core/prepare/products.ts';
import type { RunSource } from '../../core/prepare/run-source.ts';
import { readSitemaps } from './read-sitemaps.ts';

/** URLs in one transaction. */
const BATCH = 5_000;
/** Paths that are compared with robots.txt before the run. */
const SAMPLE = 1_000;

export const discoverSource = (output: Output, signal: AbortSignal): RunSource => ({
  configure: discoveryConfig,
  choose: async ({ config, database }) => ({
    products: await prepareFrontier(asDiscovery(config), database, { output, signal }),
    parentId: null,
  }),
});

async function prepareFrontier(
  config: DiscoveryConfig,
  db: Database,
  { output, signal }: { output: Output; signal: AbortSignal },
): Promise<ProductList> {
  const { discover, discovery: settings } = config;
  const { table } = config.values.results;
  await createFrontier(db, table);
  await storeDenyList(db, table, config.denyLines ?? []);
  const left = await settleFrontier(db, table, settings.seen);
  if (left === 0) await beginRound(db, table);
  const site = { discover: settings, mapping: config.mapping, table };
  const opened = await inQuery(db, (knex) => openFrontier(knex, db, site));
  const { order, scores } = discover;
  await storeScores(
    db,
    table,
    order === 'score' && scores !== null ? await readScores(config, scores, opened.rules) : null,
  );
  let entered = 0;
  const refused = new Map<string, number>();
  const enter = async (batch: readonly Begin[]): Promise<void> => {
    const { fresh, denied } = await enterBeginnings(db, opened, batch, systemClock.now());
    for (const why of denied) refused.set(why, (refused.get(why) ?? 0) + 1);
    entered += fresh;
  };
  let batch: Begin[] = [];
  for await (const one of beginnings(config, output, signal)) {
    if (batch.push(one) < BATCH) continue;
    await enter(batch);
    batch = [];
  }
  await enter(batch);
  const waiting = await inQuery(db, (knex) => countWaiting(knex, table));
  const denied = [...refused].map(([why, urls]) => `${why} ${urls}`).join(', ');
  output.line(
    `Frontier of ${table}: ${waiting} URLs wait, ${entered} of them new${denied === '' ? '' : `; not taken: ${denied}`}.`,
  );
  const { pages: most } = settings;
  const likely = Math.min(most, Math.max(waiting, (await lastTaken(db, table)) ?? 0));
  return {
    ids: await bestWaiting(db, table, SAMPLE),
    duplicates: 0,
    fit: fitUrls({ waiting: Math.min(most, waiting), likely, most }),
    entered,
  };
}

/** A URL to begin with; when its sitemap says that it has changed. */
interface Begin {
  url: string;
  modifiedMs: number | null;
}

async function* beginnings(config: DiscoveryConfig, output: Output, signal: AbortSignal): AsyncGenerator<Begin> {
  const { seeds, search, sitemaps } = config.discover;
  for (const url of seeds) yield { url, modifiedMs: null };
  if (search !== null)
    for (const term of readLines(config.file, 'discover.search.terms', search.terms))
      yield { url: search.url.replaceAll('{term}', encodeURIComponent(term)), modifiedMs: null };
  if (sitemaps !== null) yield* readSitemaps(config, { sitemaps, signal, say: (text) => output.line(text) });
}

/** The scores that the query gives, by the key of each URL. */
async function readScores(
  { values: { database }, discovery: { origin } }: DiscoveryConfig,
  query: string,
  rules: LinkRules,
): Promise<Map<string, number>> {
  const scores = new Map<string, number>();
  const source = createProductSource(database.url, query);
  try {
    for await (const { id, score } of source.listed('score')) {
      const { candidates } = judgeLinks(rules, [new URL(id, origin).href], 0);
      for (const { key } of candidates) scores.set(key, score);
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, error.message.replaceAll('products.query', 'discover.scores'), {
      hint: 'It yields id, a URL or a path, and score, a number.',
    });
  }
  return scores;
}
