/** What becomes of the links in a discovery's results, in the transaction that loads them. */
import type { Knex } from 'knex';
import { LinkRules } from './link-rules.ts';
import {
  DENIALS,
  type Denial,
  type DiscoverSettings,
  type DiscoveryCounts,
  noDiscovery,
} from '../../core/model/discovery.ts';
import type { Database } from '../../core/db/connect.ts';
import { eventOf } from '../../core/model/run-event.ts';
import { insertEvent } from '../../core/db/events.ts';
import { type Entered, type Found, Frontier, readNotes, readSeen } from './frontier.ts';
import { inTransaction } from '../../core/db/retry.ts';
import { rowOf } from '../../core/db/rows.ts';
import { readSettings } from '../../core/db/run-shape.ts';
import type { StoredResult } from '../../core/db/stage-rows.ts';
import type { PartIntake } from '../../core/db/data-feature.ts';

const RUNS = 'crawlfleet_runs';

export class LinkIntake implements PartIntake {
  readonly #runId: string;
  readonly #frontier: Frontier;
  readonly #rules: LinkRules;
  /** The patterns that a transaction has cut. */
  readonly #cut = new WeakMap<Knex.Transaction, ReadonlySet<string>>();

  private constructor(runId: string, frontier: Frontier, rules: LinkRules) {
    this.#runId = runId;
    this.#frontier = frontier;
    this.#rules = rules;
  }

  /** The intake of a run's links; null for a run that is no discovery. */
  static async open(knex: Knex, { db, runId }: { db: Database; runId: string }): Promise<LinkIntake | null> {
    const { discover, mapping, results } = await readSettings(knex, runId);
    if (discover === undefined) return null;
    const { frontier, rules } = await openFrontier(knex, db, { discover, mapping, table: results.table });
    return new LinkIntake(runId, frontier, rules);
  }

  /** @param results stored now, and not before */
  async enter(trx: Knex.Transaction, results: readonly StoredResult[], nowMs: number): Promise<void> {
    // First: of two parts that name one URL, the second must see what the first has entered.
    const run = trx(RUNS).where({ id: this.#runId });
    const row = await rowOf<{ discovery: string | null }>(run.clone().forUpdate().first('discovery'));
    const counts = noDiscovery();
    const found: Found[] = [];
    const numbers = results.map(({ n }) => n);
    const parents = await this.#frontier.parents(trx, this.#runId, numbers);
    for (const { n, links = [] } of results) {
      const parent = parents.get(n);
      if (parent === undefined) continue;
      const { candidates, denied } = judgeLinks(this.#rules, links, parent.depth + 1);
      counts.found += links.length;
      for (const why of denied) counts.denied[why] = (counts.denied[why] ?? 0) + 1;
      if (parent.id === null) this.#rules.traps.note(parent.path, candidates);
      for (const one of candidates) found.push({ ...one, parent: parent.hash });
    }
    const { traps } = this.#rules;
    const takable = found.filter(({ id, path }) => id !== null || !traps.isCut(path));
    if (takable.length < found.length) counts.denied.trap = (counts.denied.trap ?? 0) + found.length - takable.length;
    add(counts, await this.#frontier.enter(trx, takable, { runId: this.#runId, nowMs }));
    // A part may be loaded in pieces.
    const cutBefore = this.#cut.get(trx) ?? new Set();
    this.#cut.set(trx, new Set(traps.fresh));
    for (const pattern of traps.fresh) {
      if (cutBefore.has(pattern)) continue;
      const isCut = (path: string): boolean => traps.isCut(path);
      const { dropped, fell } = await this.#frontier.cut(trx, pattern, { runId: this.#runId, isCut });
      add(counts, { fresh: -dropped, known: 0, dropped, fell, hidden: 0 });
      await insertEvent(trx, this.#runId, eventOf('alarm', nowMs, trapNote(pattern)));
    }
    const total: DiscoveryCounts = row?.discovery ? (JSON.parse(row.discovery) as DiscoveryCounts) : noDiscovery();
    total.found += counts.found;
    add(total, counts);
    for (const why of DENIALS)
      if (counts.denied[why]) total.denied[why] = (total.denied[why] ?? 0) + counts.denied[why];
    await run.update({ discovery: JSON.stringify(total) });
  }

  /** The transaction of the last `enter` has been committed. */
  committed(): void {
    this.#rules.traps.fresh.clear();
  }
}

/** The frontier of a result table, and what may enter it. */
export async function openFrontier(
  knex: Knex,
  db: Database,
  of: { discover: DiscoverSettings; mapping: ConstructorParameters<typeof LinkRules>[1]; table: string },
): Promise<{ frontier: Frontier; rules: LinkRules }> {
  const { discover, mapping, table } = of;
  const deny = (await readNotes(knex, table, 'deny')).get('list') ?? '';
  const cut = [...(await readNotes(knex, table, 'trap')).keys()];
  const rules = new LinkRules(discover, mapping, { deny: deny.split('\n'), cut });
  return { frontier: new Frontier(db, table, discover, await readSeen(knex, table)), rules };
}

/**
 * Enters URLs that no page of a run links to: seeds, and those of sitemaps and search. Returns how many are new, and
 * why others may not be taken.
 */
export async function enterBeginnings(
  db: Database,
  { frontier, rules }: Awaited<ReturnType<typeof openFrontier>>,
  urls: readonly { url: string; modifiedMs: number | null }[],
  nowMs: number,
): Promise<{ fresh: number; denied: Denial[] }> {
  const found: Found[] = [];
  const denied: Denial[] = [];
  for (const { url, modifiedMs } of urls) {
    const judged = judgeLinks(rules, [url], 0);
    for (const one of judged.candidates) found.push({ ...one, parent: null, modifiedMs });
    denied.push(...judged.denied);
  }
  const { fresh } = await inTransaction(db, (trx) => frontier.enter(trx, found, { runId: null, nowMs }));
  return { fresh, denied };
}

/** Those that may be taken, and why the others may not. */
export function judgeLinks(
  rules: LinkRules,
  links: readonly string[],
  depth: number,
): { candidates: Exclude<ReturnType<LinkRules['judge']>, { denied: Denial }>[]; denied: Denial[] } {
  const candidates = [];
  const denied: Denial[] = [];
  for (const link of links) {
    const judged = rules.judge(link, depth);
    if ('denied' in judged) denied.push(judged.denied);
    else candidates.push(judged);
  }
  return { candidates, denied };
}

const trapNote = (pattern: string): string =>
  `pages of the pattern ${pattern} lead to nothing but more of themselves: they are not taken any more. If they matter, name them in site.follow.allow`;

function add(counts: DiscoveryCounts, entered: Entered): void {
  for (const kind of ['fresh', 'known', 'dropped', 'fell', 'hidden'] as const) counts[kind] += entered[kind];
}
