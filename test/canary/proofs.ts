/** What a canary has proved. Pure: judges what the run, its database, the pages and the cloud report. */
import { checkInvariants } from '../support/invariants/check-all.ts';
import type { History, SeenRequest } from '../support/invariants/history.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { type Arrival, rowOf } from './page-server.ts';
import { INSTANCES, MAX_COST } from './settings.ts';

export interface Proof {
  what: string;
  holds: boolean;
  /** The figures, or the fault. */
  detail: string;
}

export interface Evidence {
  ids: readonly string[];
  report: RunReport;
  history: History;
  /** Requests to our own pages; null when the site was the user's. */
  arrivals: readonly Arrival[] | null;
  rows: readonly Record<string, unknown>[];
  /** What is left of this run in the cloud. */
  leftovers: readonly string[];
  verify: { exitCode: number | null; text: string };
}

export function proofsOf(evidence: Evidence): Proof[] {
  return [
    proveEnd(evidence),
    proveInstances(evidence),
    proveVerify(evidence),
    proveInvariants(evidence),
    ...(evidence.arrivals === null ? [] : [provePace(evidence, evidence.arrivals), proveRows(evidence)]),
    proveLeftovers(evidence),
    proveCost(evidence),
  ];
}

function proveEnd({ ids, report }: Evidence): Proof {
  const { stored, gone, failed } = report.products;
  return {
    what: 'every product is stored, before the deadline',
    holds: report.exitCode === 0 && report.onTime && stored === ids.length,
    detail: `${stored} of ${ids.length} stored, ${gone} gone, ${failed} failed; exit code ${report.exitCode}, ${report.state}`,
  };
}

function proveInstances({ report }: Evidence): Proof {
  const { launched, terminated, replaced } = report.instances;
  const used = report.shards.filter((s) => s.stored + s.gone + s.failed > 0);
  const addresses = new Set(used.map((s) => s.address));
  return {
    what: `${INSTANCES} instances shared the work, each with an address of its own, and every one was terminated`,
    holds: launched === terminated && addresses.size >= INSTANCES && !addresses.has(null),
    detail: `${launched} launched, ${replaced} replaced, ${terminated} terminated; ${[...addresses].join(', ')}`,
  };
}

function proveVerify({ verify }: Evidence): Proof {
  return {
    what: 'orchestrator verify holds',
    holds: verify.exitCode === 0,
    detail: verify.exitCode === 0 ? 'planned = stored + gone + failed' : verify.text,
  };
}

function proveInvariants({ history, arrivals }: Evidence): Proof {
  const violations = checkInvariants(
    arrivals === null ? history : { ...history, requests: requestsOf(history, arrivals) },
  );
  return {
    what: 'the invariants of the fault tests hold over its history',
    holds: violations.length === 0,
    detail: violations.length === 0 ? 'none broken' : violations.map((v) => `${v.invariant}: ${v.sentence}`).join('; '),
  };
}

/** The instance behind an address may be unknown: inside a VPC, requests come from the private address. */
function requestsOf(history: History, arrivals: readonly Arrival[]): SeenRequest[] {
  const { intervalMs } = history.run.settings.site;
  return pagesOf(arrivals).map(({ atMs, address }, i) => ({
    atMs,
    address,
    slot: -1,
    epoch: -1,
    product: i + 1,
    intervalMs,
    allowed: true,
    banned: false,
    paused: false,
    cap: null,
  }));
}

/** The main server reads robots.txt. */
const pagesOf = (arrivals: readonly Arrival[]): Arrival[] => arrivals.filter((a) => a.path.startsWith('/p/'));

function provePace({ ids, history }: Evidence, arrivals: readonly Arrival[]): Proof {
  const pages = pagesOf(arrivals);
  const { intervalMs } = history.run.settings.site;
  const gaps = [...Map.groupBy(pages, (a) => a.address).values()].flatMap((own) =>
    own.slice(1).map((a, i) => a.atMs - own[i]!.atMs),
  );
  const smallest = Math.min(...gaps);
  const asked = new Set(pages.map((a) => a.path)).size;
  return {
    what: 'no address asked the site more often than it may, by the site’s own log',
    holds: gaps.length > 0 && smallest >= intervalMs && asked === ids.length,
    detail: `${pages.length} requests for ${asked} pages, smallest gap ${smallest.toFixed(0)} ms of ${intervalMs} ms`,
  };
}

function proveRows({ ids, rows }: Evidence): Proof {
  const wrong = ids.filter((id) => {
    const expected = rowOf(id);
    const own = rows.filter((r) => r.product_id === id);
    return own.length !== 1 || own[0]!.title !== expected.title || Number(own[0]!.price) !== expected.price;
  });
  return {
    what: 'the rows are what the pages say',
    holds: wrong.length === 0 && rows.length === ids.length,
    detail: wrong.length === 0 ? `${rows.length} rows` : `not so: ${wrong.join(', ')}`,
  };
}

function proveLeftovers({ leftovers }: Evidence): Proof {
  return {
    what: 'nothing of it is left at EC2 and ELBv2',
    holds: leftovers.length === 0,
    detail: leftovers.length === 0 ? 'no instance, balancer or target group' : leftovers.join(', '),
  };
}

function proveCost({ report }: Evidence): Proof {
  const { actual, estimated } = report.cost;
  return {
    what: `it cost less than $${MAX_COST.toFixed(2)}`,
    holds: actual > 0 && actual < MAX_COST,
    detail: `$${actual.toFixed(4)}, planned $${estimated.toFixed(4)}`,
  };
}
