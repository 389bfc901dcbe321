/** Checks of the database: connection, rights, schema, products, result table, other runs. */
import { readServerFacts } from '../db/server-facts.ts';
import { type Check, failed, type Finding, findingOf, ok, warning } from './check.ts';
import { checkResultRights, checkRights } from '../db/rights.ts';
import { LATEST_VERSION, versionOf } from '../db/migrate.ts';
import { plural } from '../plan/wording.ts';
import { refusalOfList } from '../prepare/make-plan.ts';
import { noRoomForNumbers } from '../db/no-room-for-numbers.ts';
import { inQuery } from '../db/retry.ts';
import { describeRules, readRules } from '../db/table-rules.ts';
import { checkResultTable } from '../db/result-table.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { isRebuilt } from '../model/rebuilt-run.ts';
import { createReaders } from '../db/create-stores.ts';
import { unfinishedRuns } from '../lookup/find-run.ts';
import { holderText, livingHolder, lockNamesOfConfig } from '../lookup/run-lock.ts';

/** Rows and deadlines are stored in UTC by our own clock, but lock times come from the server's. */
const SKEW_MS = 5_000;

export const database: Check = {
  id: 'database',
  title: 'database',
  alongside: true,
  limitMs: 15_000,
  async run({ facts }) {
    const db = await facts.database();
    const server = await readServerFacts(db);
    const zone =
      server.timeZone === null ? '' : `, its own time zone ${server.timeZone} (every session of ours uses UTC)`;
    const there = ok(`${db.label}: ${server.version}${zone}`);
    const skew = Math.abs(server.skewMs ?? 0);
    if (skew <= SKEW_MS) return there;
    const text = `the clock of the database server is ${Math.round(skew / 1_000)} s off ours`;
    return [there, warning(text, 'Have both machines keep time by NTP (timedatectl set-ntp true)')];
  },
};

export const databaseRights: Check = {
  id: 'database-rights',
  title: 'rights of the database user',
  alongside: true,
  needs: ['database'],
  async run({ facts }) {
    await checkRights(await facts.database());
    return ok('CREATE, ALTER, INDEX, INSERT, UPDATE, SELECT, DELETE and DROP were tested on a table of our own');
  },
};

export const schema: Check = {
  id: 'schema',
  title: 'crawlfleet tables',
  needs: ['database'],
  async run({ facts }) {
    // Throws if the tables are newer than this program.
    const version = await versionOf(await facts.database());
    if (version === LATEST_VERSION) return ok('there, and of this version');
    return ok(
      version === 0 ? 'missing: the first run makes them' : `${earlierTables(version)}: the next run updates them`,
    );
  },
};

export const products: Check = {
  id: 'products',
  title: 'products',
  alongside: true,
  needs: ['database'],
  limitMs: 20_000,
  isSlow: true,
  async run({ facts }) {
    const { ids, duplicates, list, urlNotes = [] } = await facts.products();
    const refusal = refusalOfList(list);
    if (refusal !== null) return findingOf(refusal);
    if (ids.length === 0)
      return warning('products.query yields no product: a run would have nothing to do', 'Check products.query');
    const count = `${ids.length.toLocaleString('en')} ${ids.length === 1 ? 'product' : 'products'}`;
    const notes = urlNotes.map((text) => warning(text));
    if (duplicates === 0) return [ok(count), ...notes];
    const repeated = warning(
      `${count}; ${plural(duplicates, 'ID')} ${duplicates === 1 ? 'is' : 'are'} listed more than once and crawled once`,
      'Add DISTINCT to products.query',
    );
    return [repeated, ...notes];
  },
};

export const results: Check = {
  id: 'results',
  title: 'result table',
  alongside: true,
  needs: ['database', 'products'],
  limitMs: 20_000,
  isSlow: true,
  async run({ config, facts }) {
    const { table } = config.values.results;
    const [db, { ids }] = await Promise.all([facts.database(), facts.products()]);
    const faults: Finding[] = [];
    const keep = (error: unknown): null => {
      faults.push(findingOf(error));
      return null;
    };
    const found = await checkResultTable(db, table, config.mapping, ids).catch(keep);
    await checkResultRights(db, table, config.mapping).catch(keep);
    if (faults.length > 0) return faults;
    const open = await noRoomForNumbers(db, table, config.mapping);
    const rules = await inQuery(db, (knex) => readRules(knex, db, table));
    const text = `${table} is there and fits the mapping${rules.length === 0 ? '' : `; ${describeRules(rules)}`}`;
    return [
      ...open.map((problem) => warning(problem)),
      ok(found?.exists === true ? text : `${table} will be made by the first run`),
    ];
  },
};

const earlierTables = (version: number): string => `of an earlier version, ${version}`;

export const otherRun: Check = {
  id: 'other-run',
  title: 'other runs of this site on this database',
  needs: ['database', 'schema'],
  async run({ facts, config }) {
    const db = await facts.database();
    const version = await versionOf(db);
    if (version === 0) return ok('none: there has been no run');
    if (version !== LATEST_VERSION)
      return warning(
        `not known: the crawlfleet tables are ${earlierTables(version)}`,
        'Look with the version that made them, or update them with: orchestrator status',
      );
    const { runs } = createReaders(db);
    const names = lockNamesOfConfig(config);
    const holder = await livingHolder(runs, names);
    if (holder) return failed('lock-held', holderText(holder), 'Wait for it: orchestrator watch');
    const unfinished = (await unfinishedRuns(runs, names)).filter((run) => !isRebuilt(run));
    const ahead = unfinished.find((run) => !isRunEnd(run.phase) && systemClock.now() <= run.deadlineAtMs);
    if (ahead)
      return failed(
        'run-unfinished',
        `run ${ahead.id} (${ahead.phase}) has lost its main server, and its deadline is ahead`,
        `orchestrator resume ${ahead.id}, or orchestrator cancel ${ahead.id}`,
      );
    const [left] = unfinished;
    if (left === undefined) return ok('none');
    return warning(`run ${left.id} is not tidied up: the next run ends it first`, `orchestrator resume ${left.id}`);
  },
};
