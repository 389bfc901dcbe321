/** `orchestrator hosts`: what the database has about a host, and what an operator asks of all its runs there. */
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { Output } from '../../cli/output.ts';
import type { Config } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import type { Database } from '../../core/db/connect.ts';
import { createReaders } from '../../core/db/create-stores.ts';
import { migrate, versionOf } from '../../core/db/migrate.ts';
import { storesToList, withDatabase } from '../../core/lookup/find-run.ts';
import { holderAtWork } from '../../core/lookup/run-lock.ts';
import type { HostRecord, StoreReaders } from '../../core/model/stores.ts';
import { readHost } from './host-document.ts';
import { renderHost, renderName } from './render-host.ts';
import { namedHost, namedPace } from './named-host.ts';

export interface HostsOptions extends ConfigSource {
  action: string;
  /** The host, and for `pace` a duration. */
  words: readonly string[];
  undo?: boolean;
}

type Wish = Parameters<StoreReaders['runs']['setHost']>[1];

/** What is asked for; null for `show`. */
interface Asked {
  given: string;
  host: string;
  wish: Wish | null;
}

export async function hostsCommand(options: HostsOptions, output: Output): Promise<ExitCode> {
  const asked = readWords(options);
  const { given, host, wish } = asked;
  return withDatabase(options, output, async (database, config) => {
    const isSame = given.trim().toLowerCase() === host;
    if (wish === null) {
      const stores = await storesToList(database, output);
      const document = await readHost(host, { database, stores });
      const name = namedHost(given, 'host');
      const found = name === host ? null : await readHost(name, { database, stores });
      const own = found?.isKnown === true ? found : null;
      output.line(isSame ? host : `${host}, to which ${plain(given, SHOWN)} belongs`);
      if (document.isKnown || own === null) for (const line of renderHost(document)) output.line(`  ${line}`);
      if (own !== null) {
        output.line(`${name}, by itself in runs with site.host_key: host`);
        for (const line of renderName(own)) output.line(`  ${line}`);
      }
      output.document({ ...document, ...(own === null ? {} : { own }) });
      return EXIT.complete;
    }
    const stores = await storesForWish(database, output);
    await stores.runs.setHost(host, wish);
    const stored = await stores.runs.hostRow(host);
    const runs = await openRunsAt(host, stored, stores.runs);
    const mainServer = runs.find((run) => run.mainServer !== null)?.mainServer ?? null;
    output.line(`${host}: ${inWords(stored)}.`);
    if (!isSame) output.line(`It holds for all names and ports of ${host}, to which ${plain(given, SHOWN)} belongs.`);
    for (const line of whoKeepsToIt(config, runs)) output.line(line);
    output.document({ host, denied: stored?.denied === true, paceMs: stored?.paceMs ?? null, mainServer });
    return EXIT.complete;
  });
}

/** Makes our tables where no run has: a host may be kept out of the first one. */
async function storesForWish(database: Database, output: Pick<Output, 'line'>): Promise<StoreReaders> {
  if ((await versionOf(database)) === 0)
    output.line(
      `! There has been no run in ${database.label}: it is stored there for those to come. If there should be some, check --config and its database.url.`,
    );
  await migrate(database);
  return createReaders(database);
}

const SHOWN = 200;

function readWords({ action, words, undo = false }: HostsOptions): Asked {
  const [given, pace, ...more] = words;
  const takesPace = action === 'pace' && !undo;
  if (!['show', 'deny', 'pace'].includes(action))
    throw new AppError('usage', `hosts knows no ${plain(action, SHOWN)}, only show, deny and pace`);
  if (undo && action === 'show') throw new AppError('usage', 'hosts show stores nothing, so it has nothing to undo');
  if (given === undefined || takesPace !== (pace !== undefined) || more.length > 0)
    throw new AppError(
      'usage',
      `hosts ${action}${undo ? ' --undo' : ''} needs one host${takesPace ? ' and a pace' : ''}`,
      {
        hint: `For example: orchestrator hosts ${action} shop.example${takesPace ? ' 60s' : ''}${undo ? ' --undo' : ''}`,
      },
    );
  const host = namedHost(given);
  if (action === 'show') return { given, host, wish: null };
  if (action === 'deny') return { given, host, wish: { denied: undo ? null : true } };
  return { given, host, wish: { paceMs: pace === undefined ? null : namedPace(pace) } };
}

function inWords(stored: HostRecord | null): string {
  const { denied = null, paceMs = null } = stored ?? {};
  const pace = paceMs === null ? null : `${formatDuration(paceMs)} at least between two requests`;
  if (denied === true)
    return `no request any more, and its records fail (redirect)${pace === null ? '' : `; were it asked again, ${pace}`}`;
  return pace ?? 'asked in the pace of each run';
}

/** A run that is not over and has the host, or a name in it. */
interface OpenRun {
  id: string;
  mainServer: string | null;
}

async function openRunsAt(host: string, stored: HostRecord | null, runs: StoreReaders['runs']): Promise<OpenRun[]> {
  const names = await runs.hostNames(host);
  const ids = [stored?.claim?.runId, ...names.map(({ runId }) => runId)].filter((id) => id != null);
  const found: OpenRun[] = [];
  for (const id of new Set(ids)) {
    const run = await runs.get(id);
    if (run !== null && !isRunEnd(run.phase))
      found.push({ id, mainServer: (await holderAtWork(runs, run))?.owner ?? null });
  }
  return found;
}

/** Which runs keep to it, and from when on. */
function whoKeepsToIt(config: Config, runs: readonly OpenRun[]): string[] {
  const isAny = isAnyHost(config.values.site.product_url);
  return [
    ...runs.map(({ id, mainServer }) =>
      mainServer === null
        ? `! No main server is at work on run ${id}, so its instances do not hear of it: take it up with orchestrator resume ${id}, or end it with orchestrator stop ${id}.`
        : `Run ${id} keeps to it from the next heartbeat of each instance on; a page under way may end.`,
    ),
    isAny
      ? 'All runs of this database with site.hosts: any keep to it.'
      : '! Only runs with site.hosts: any keep to it, and this configuration names its site. For that: orchestrator pace, or orchestrator stop.',
  ];
}
