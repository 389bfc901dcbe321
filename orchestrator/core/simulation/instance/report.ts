/** What a modelled instance reports in its heartbeats. */
import { type Heartbeat, type Incident, NO_PROGRESS, type Progress } from '../../../../shared/wire/callbacks.ts';
import type { Crawl } from './crawl.ts';
import type { Shard } from './shard.ts';
import type { OwnIncident } from './site.ts';
import type { SimulatedUploads } from './uploads.ts';

export interface Reported {
  shard: Shard;
  crawl: Crawl;
  uploads: SimulatedUploads;
  /** The main server has confirmed the completion. */
  isClosed: boolean;
}

/** The progress as of `now`; what is not modelled is as at the beginning. */
export function progressOf({ shard, crawl, uploads }: Omit<Reported, 'isClosed'>, now: number): Progress {
  const { assigned, open, counts, requests } = shard;
  const { stored, gone, failed } = counts;
  const { tried, unavailable, served, pageMs } = crawl.tally;
  return {
    ...NO_PROGRESS,
    assigned,
    pending: open,
    stored,
    gone,
    failed,
    requests,
    minGapMs: crawl.minGapMs,
    tried,
    unavailable,
    served,
    pageMs,
    okAgoMs: crawl.okAgoMs(now),
    uploadMs: uploads.slowestMs,
  };
}

/** @param clockMs by its own clock */
export function heartbeatOf(reported: Reported, now: number, clockMs: number): Heartbeat {
  const { shard, crawl, uploads } = reported;
  const progress = progressOf(reported, now);
  const { sinceBan } = crawl;
  const hosts = crawl.hostNews(now);
  if (sinceBan !== null) progress.sinceBan = sinceBan;
  if (uploads.isRefused) progress.storeRefused = true;
  return {
    phase: phaseOf(reported),
    clock: new Date(clockMs).toISOString(),
    offered: shard.offered(crawl.incident !== null),
    transferred: [...shard.returned],
    progress,
    parts: shard.unacknowledged(500),
    problem: uploads.problem,
    incident: crawl.incident && incidentOf(crawl.incident, now),
    robots: crawl.robots?.version ?? null,
    ...(hosts.length === 0 ? {} : { hosts }),
  };
}

function phaseOf({ shard, crawl, isClosed }: Reported): Heartbeat['phase'] {
  if (isClosed) return 'done';
  if (crawl.isOver) return 'uploading';
  if (crawl.incident !== null) return 'banned';
  return shard.assigned > 0 ? 'crawling' : 'ready';
}

function incidentOf({ verdict, rule, atMs, untilMs }: OwnIncident, now: number): Incident {
  const status = rule === 'status-403' ? 403 : 200;
  const page = { url: 'https://shop.example/item/x', headers: { server: 'test' }, body: '<h1>Forbidden</h1>' };
  const evidence = { rule, status, ...page };
  return { verdict, sinceMs: now - atMs, leftMs: untilMs === null ? null : Math.max(0, untilMs - now), evidence };
}
