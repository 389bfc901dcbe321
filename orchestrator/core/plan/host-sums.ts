/**
 * The sums of a run over many hosts. With one site the address is scarce, and more of them do more; here the host is:
 * each sees one address, whatever the number of instances. So a night has a most that it can do, and instances only
 * have to keep up with it. Pure; docs/decisions/0053-many-hosts.md.
 */
import type { LeftAlone } from '../../../shared/domain/own-url.ts';
import { CONNECT_LIMIT_MS, DEAD_AFTER, hostGapMs, ROBOTS_EVERY_MS } from '../../../shared/domain/host-policy.ts';

/** What is listed of one host. */
export interface HostLoad {
  records: number;
  /** The longest gap that the host has asked of earlier runs, or an operator asks for; 0 without one. Milliseconds. */
  delayMs: number;
  /** An operator lets no run ask it: its records are in the night, and end without a request. */
  isDenied?: true;
}

/** A host of a list, by its name. */
export interface HostRecords extends HostLoad {
  host: string;
}

/** What one night does of one host. */
export interface HostNight {
  records: number;
  /** Of its pages and of its robots.txt. */
  requests: number;
  /** From its first request to its last at its pace. Milliseconds. */
  lengthMs: number;
}

/** What one night does of a list, and what it leaves. */
export interface HostsPlan {
  hosts: number;
  /** Records of the list, and those of them that this night can ask for. */
  listed: number;
  records: number;
  /** Of pages and of robots.txt, were every host alive. */
  requests: number;
  /** Of the host that takes longest. Milliseconds. */
  longestMs: number;
  /** Hosts with more records than a night can ask for; and nights that the largest of them takes. */
  cutHosts: number;
  nights: number;
  /** Share of the hosts that never answer, as far as earlier runs know. */
  deadShare: number;
  /** Requests of a record on average, as planned with, and whether an earlier night has shown it. */
  each?: { requestsEach: number; isMeasured: boolean };
  /** Records that are left alone, beside the list, where there are some: by deny list, and without a section. */
  leftAlone?: Readonly<Record<LeftAlone, number>>;
  /** Denied hosts, beside the others, and their records, where there are some. */
  deniedHosts?: { hosts: number; records: number };
  /** Some of those with most records, where their names are known. */
  fullest?: readonly HostRecords[];
}

/** What bounds a night, of the input of its plan. */
interface NightInput {
  deadlineMs: number;
  bootP95Ms: number;
  balancerMs: number;
  tailMs: number;
  intervalMs: number;
  pagesEach: number;
}

/** What the sums of a night depend on, besides the list. */
export interface NightRules {
  /** From the first request that a host may get to the last. Milliseconds. */
  windowMs: number;
  intervalMs: number;
  /** Requests of one record on average, redirects included; at least 1. */
  requestsEach: number;
}

/** A host may be asked from the first boot, or the balancer's, until the results have to be in the table. */
export const nightRulesOf = ({
  deadlineMs,
  bootP95Ms,
  balancerMs,
  tailMs,
  intervalMs,
  pagesEach,
}: NightInput): NightRules => ({
  windowMs: deadlineMs - Math.max(bootP95Ms, balancerMs) - tailMs,
  intervalMs,
  requestsEach: pagesEach,
});

/** The part of the window that a long host is planned to fill: its owner boots, and may be replaced. */
const FILLED = 0.95;

/** What a night can do of one host: all of its records, or as many as its pace leaves room for. */
export function nightOfHost(
  { records, delayMs, isDenied }: HostLoad,
  { windowMs, intervalMs, requestsEach }: NightRules,
): HostNight {
  if (isDenied) return { records, requests: 0, lengthMs: 0 };
  const gapMs = hostGapMs(intervalMs, delayMs);
  const usableMs = windowMs * FILLED;
  const most = usableMs < 0 ? 0 : 1 + Math.floor(usableMs / gapMs);
  const robotsWithin = (ms: number): number => 1 + Math.floor(ms / ROBOTS_EVERY_MS);
  const room = Math.max(0, Math.floor((most - robotsWithin(usableMs)) / requestsEach));
  const tonight = Math.min(records, room);
  if (tonight === 0) return { records: 0, requests: 0, lengthMs: 0 };
  const pages = tonight * requestsEach;
  const requests = pages + robotsWithin(pages * gapMs);
  return { records: tonight, requests, lengthMs: (requests - 1) * gapMs };
}

/** The sums over a list. @param deadShare share of hosts that never answer */
export function nightOfHosts(all: readonly HostLoad[], rules: NightRules, deadShare = 0): HostsPlan {
  const loads = all.filter(({ isDenied }) => !isDenied);
  const denied = all.filter(({ isDenied }) => isDenied);
  const plan: HostsPlan = {
    hosts: loads.length,
    listed: 0,
    records: 0,
    requests: 0,
    longestMs: 0,
    cutHosts: 0,
    nights: loads.length === 0 ? 0 : 1,
    deadShare,
    ...(denied.length > 0 && {
      deniedHosts: { hosts: denied.length, records: denied.reduce((sum, { records }) => sum + records, 0) },
    }),
  };
  for (const load of loads) {
    const night = nightOfHost(load, rules);
    plan.listed += load.records;
    plan.records += night.records;
    plan.requests += night.requests;
    plan.longestMs = Math.max(plan.longestMs, night.lengthMs);
    if (night.records >= load.records) continue;
    plan.cutHosts++;
    plan.nights = Math.max(plan.nights, night.records === 0 ? Infinity : Math.ceil(load.records / night.records));
  }
  return plan;
}

/** How long a host that never answers keeps places in all. Milliseconds. */
const DEAD_MS = DEAD_AFTER * CONNECT_LIMIT_MS;

/** What one record costs an instance, on average over all hosts, dead ones included. */
export interface RecordCost {
  /** Requests that are answered. */
  requestsEach: number;
  /** Time that a place waits for hosts that never answer. Milliseconds. */
  deadMs: number;
}

export function costOfRecord({ records, requests, hosts, deadShare }: HostsPlan): RecordCost {
  if (records === 0) return { requestsEach: 1, deadMs: 0 };
  return { requestsEach: (requests / records) * (1 - deadShare), deadMs: (hosts * deadShare * DEAD_MS) / records };
}
