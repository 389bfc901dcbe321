/** The document of `hosts show --json`: all that the database has about one host. */
import { runPrefix, shardPrefix } from '../../../shared/domain/keys.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';
import type { Database } from '../../core/db/connect.ts';
import { type HostOutcomes, readHostOutcomes } from '../../core/db/host-outcomes.ts';
import { readRequestsOfHost } from '../../core/db/host-requests.ts';
import type { StoreReaders } from '../../core/model/stores.ts';

export interface HostDocument {
  host: string;
  /** False: no run with `site.hosts: any` had a record there for a year, and no operator asks for anything. */
  isKnown: boolean;
  denied: boolean;
  paceMs: number | null;
  /** When an operator last asked for something there, or took it back. */
  wishedAt: string | null;
  crawlDelayMs: number | null;
  /** No request before. */
  notBefore: string | null;
  /** The last grant; null: there was none. */
  last: LastGrant | null;
  /** What the request logs of a year of runs have, the newest first. A run that is not over is not among them. */
  nights: HostNight[];
  /** The names in it that runs with `site.host_key: host` had, each with the last one. */
  names: { host: string; runId: string | null }[];
  /** What such runs have of the name that was asked for; omitted: it is the domain, or they had none. */
  own?: HostDocument;
}

/** What one instance of a run has asked of the host. */
interface HostNight {
  run: string;
  slot: number;
  epoch: number;
  /** Null: not known, as in a run that was rebuilt from the bucket. */
  address: string | null;
  /** The first and the last request. */
  first: string;
  last: string;
  /** Those for robots.txt and redirects included. */
  requests: number;
  /** What was due between two of them at the end. */
  intervalMs: number;
}

export interface LastGrant {
  run: string;
  slot: number;
  epoch: number;
  /** Null where the database has no row of it any more. */
  instance: { id: string | null; address: string | null } | null;
  /** Null: the run is not in the database any more. */
  state: RunPhase | null;
  startedAt: string | null;
  finishedAt: string | null;
  dryRun: boolean | null;
  /** Null where `retention` has removed them, or the run is gone. */
  records: (Omit<HostOutcomes, 'lastSettledAtMs'> & { lastSettledAt: string | null }) | null;
  /** Where the logs of all requests of the run are, and those of this instance; null with the run. */
  requestLogs: { bucket: string; run: string; instance: string } | null;
}

/**
 * @param host as hostGroupOf gives it
 * @param stores null where the database has none of our tables
 */
export async function readHost(
  host: string,
  { database, stores }: { database: Database; stores: StoreReaders | null },
): Promise<HostDocument> {
  const row = (await stores?.runs.hostRow(host)) ?? null;
  const nights = stores === null ? [] : await readRequestsOfHost(database, host);
  return {
    host,
    isKnown: row !== null || nights.length > 0,
    denied: row?.denied === true,
    paceMs: row?.paceMs ?? null,
    wishedAt: isoOrNull(row?.wishedAtMs),
    crawlDelayMs: row?.delayMs ?? null,
    notBefore: isoOrNull(row?.notBeforeMs),
    last: stores && row?.claim ? await readGrant(host, row.claim, { database, stores }) : null,
    nights: nights.map(({ runId: run, slot, epoch, address, firstMs, lastMs, requests, intervalMs }) => {
      const [first, last] = [new Date(firstMs).toISOString(), new Date(lastMs).toISOString()];
      return { run, slot, epoch, address, first, last, requests, intervalMs };
    }),
    names: (await stores?.runs.hostNames(host)) ?? [],
  };
}

async function readGrant(
  host: string,
  { runId, slot, epoch }: { runId: string; slot: number; epoch: number },
  { database, stores }: { database: Database; stores: StoreReaders },
): Promise<LastGrant> {
  const run = await stores.runs.get(runId);
  if (run === null) {
    const nothing = { state: null, startedAt: null, finishedAt: null, dryRun: null, records: null, requestLogs: null };
    return { run: runId, slot, epoch, instance: null, ...nothing };
  }
  const instances = await stores.of(runId).fleet.instances();
  const own = instances.find((instance) => instance.slot === slot && instance.epoch === epoch);
  const counts =
    run.prunedAtMs === null ? await readHostOutcomes(database, runId, host, run.settings.site.hostKey) : null;
  const { lastSettledAtMs, ...records } = counts ?? { lastSettledAtMs: null };
  return {
    run: runId,
    slot,
    epoch,
    instance: own ? { id: own.instanceId, address: own.address } : null,
    state: run.phase,
    startedAt: isoOrNull(run.startedAtMs),
    finishedAt: isoOrNull(run.finishedAtMs),
    dryRun: run.dryRun,
    records: 'records' in records ? { ...records, lastSettledAt: isoOrNull(lastSettledAtMs) } : null,
    requestLogs: { bucket: run.settings.aws.bucket, run: runPrefix(runId), instance: shardPrefix(runId, slot, epoch) },
  };
}

const isoOrNull = (ms: number | null | undefined): string | null => (ms == null ? null : new Date(ms).toISOString());
