/** Random nights of one instance with many hosts, whose process dies and whose main server is away now and then. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ADDRESS_GAP_MS } from '../../../../crawl-api/politeness/address-turns.ts';
import type { PageResult } from '../../../../crawl-api/fetch/page-result.ts';
import type { JournalRecord } from '../../../../crawl-api/queue/records.ts';
import type { RobotsAnswer } from '../../../../shared/adapters/robots-fetcher.ts';
import { hostGroupOf } from '../../../../shared/domain/host-key.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { broken, fine, notFound, odd, refused, toElsewhere } from '../crawl-scene.ts';
import { MemoryJournal, robots, START_MS } from '../fakes.ts';
import { type HostScene, INTERVAL_MS, LEASE_MS, openHostScene, rulesOf } from './host-scene.ts';

const HOUR = 3_600_000;
const BEAT_MS = 15_000;
/** What may happen does so in this time. */
const TROUBLE_MS = HOUR / 2;

const RULES = {
  none: () => undefined,
  delay: () => rulesOf({ crawlDelayMs: 40_000 }),
  closed: () => rulesOf({ access: 'rules', rules: [{ allow: false, pattern: '/2$' }] }),
  broken: (tries: number) => (tries < 3 ? unavailable(503) : undefined),
  down: () => unavailable(503),
  asksToWait: (tries: number) => (tries === 1 ? unavailable(429, 200_000) : undefined),
  lateAnswer: (tries: number) => (tries < 3 ? ('silence' as const) : undefined),
  silent: () => 'silence' as const,
  moved: (_: number, url: string): RobotsAnswer | undefined =>
    url.startsWith('http:') ? { kind: 'moved', status: 301, to: url.replace('http:', 'https:') } : undefined,
};

const unavailable = (status: number, retryAfterMs?: number): RobotsAnswer => ({
  kind: 'read',
  status,
  policy: { ...robots({ access: 'none' }), ...(retryAfterMs !== undefined && { retryAfterMs }) },
});

const PAGES = {
  right: (_: number, url: string) => fine(url),
  gone: () => notFound,
  odd: () => odd(),
  forbidden: () => refused(403),
  forbiddenOnce: (tries: number, url: string) => (tries === 1 ? refused(403) : fine(url)),
  tooMany: () => refused(429, 100_000),
  tooManyOnce: (tries: number, url: string) => (tries === 1 ? refused(429, 100_000) : fine(url)),
  failing: () => refused(500),
  noConnection: () => broken('network'),
  silent: () => 'silence' as const,
  lateAnswer: (tries: number, url: string) => (tries < 3 ? ('silence' as const) : fine(url)),
  /** To another origin of the host. */
  moved: (_: number, url: string): PageResult =>
    url.startsWith('http:') ? toElsewhere(url.replace('http://', 'https://www.')) : fine(url),
  elsewhere: () => toElsewhere('https://sale.example/'),
};

const anyHost = fc.record({
  rules: fc.constantFrom(...(Object.keys(RULES) as (keyof typeof RULES)[])),
  pages: fc.array(fc.constantFrom(...(Object.keys(PAGES) as (keyof typeof PAGES)[])), { minLength: 1, maxLength: 5 }),
  /** The pages again, each at another URL. */
  times: fc.constantFrom(1, 1, 1, 6),
  /** So many more come later. */
  later: fc.nat(3),
});
const anyTime = fc.integer({ min: 1, max: TROUBLE_MS });
const anyNight = fc.record({
  hosts: fc.array(anyHost, { minLength: 1, maxLength: 6 }),
  deaths: fc.array(anyTime, { maxLength: 4 }),
  nextAt: anyTime,
  away: fc.array(fc.record({ at: anyTime, forMs: fc.integer({ min: 1, max: 2 * LEASE_MS }) }), { maxLength: 2 }),
  pagesAtOnce: fc.integer({ min: 1, max: 4 }),
  connectMs: fc.constantFrom(0, 700, 4_000),
  /** All names lead to one address, or those alone that pages redirect to. */
  oneAddress: fc.constantFrom('never', 'always', 'www'),
});
type Night = typeof anyNight extends fc.Arbitrary<infer T> ? T : never;

interface Request {
  url: string;
  host: string;
  at: number;
  /** When the last heartbeat of that process was accepted; null before the first. */
  heardAt: number | null;
}

interface Played {
  records: JournalRecord[];
  given: string[];
  outcomes: Record<string, string>;
  sent: Request[];
  most: number;
}

const urlOf = (host: number, page: number): string => `http://h${host}.example/${page + 1}`;

/** Plays a night until every record has an outcome, or for three hours more. */
async function play({ hosts, deaths, nextAt, away, pagesAtOnce, connectMs, oneAddress }: Night): Promise<Played> {
  const clock = new VirtualClock(START_MS);
  const tries = new Map<string, number>();
  const triesOf = (url: string): number => {
    tries.set(url, (tries.get(url) ?? 0) + 1);
    return tries.get(url)!;
  };
  const hostOf = (url: string) => hosts[Number(/h(\d+)\.example/.exec(url)?.[1] ?? NaN)];
  const rules = (url: string) => RULES[hostOf(url)?.rules ?? 'none'](triesOf(url), url);
  const world = (url: string) => {
    const pages = hostOf(url)?.pages ?? [];
    const kind = pages[(Number(new URL(url).pathname.slice(1)) - 1) % pages.length];
    return PAGES[kind ?? 'right'](triesOf(url), url);
  };
  let journal = new MemoryJournal();
  const sent: Request[] = [];
  let most = 0;
  let scene: HostScene | null = null;
  let heardAt: number | null = null;
  let sinceProcess = 0;
  const collect = (): void => {
    for (const request of scene?.sent.slice(sinceProcess) ?? []) sent.push({ ...request, heardAt });
    sinceProcess = scene?.sent.length ?? 0;
    most = Math.max(most, scene?.most() ?? 0);
  };
  const begin = async (): Promise<void> => {
    collect();
    // Whatever the old process still does is lost.
    const kept = new MemoryJournal();
    kept.records = [...journal.records];
    scene?.stop.abort();
    journal = kept;
    heardAt = null;
    sinceProcess = 0;
    const addresses = (name: string): string => (isShared(oneAddress, name) ? '192.0.2.1' : name);
    scene = await openHostScene({ world, rules, pagesAtOnce, connectMs, addresses, journal, clock, isMute: true });
  };
  const given: string[] = [];
  const give = async (urls: string[]): Promise<void> => {
    if (urls.length === 0) return;
    given.push(...urls);
    await scene!.give(urls);
  };
  await begin();
  const urlsOf = (host: number, first: number, count: number): string[] =>
    Array.from({ length: count }, (_, i) => urlOf(host, first + i));
  await give(hosts.flatMap(({ pages, times }, host) => urlsOf(host, 0, pages.length * times)));

  const isAway = (at: number): boolean => away.some((each) => at >= each.at && at < each.at + each.forMs);
  const events = deaths.map((at) => ({ at, act: begin }));
  const more = hosts.flatMap(({ pages, times, later }, host) => urlsOf(host, pages.length * times, later));
  events.push({ at: nextAt, act: () => give(more) });
  for (let at = 0; at < TROUBLE_MS + 3 * HOUR; at += BEAT_MS)
    events.push({
      at,
      act: async () => {
        collect();
        if (isAway(at)) return;
        scene!.beat();
        heardAt = clock.now();
      },
    });
  for (const { at, act } of events.sort((a, b) => a.at - b.at)) {
    await scene!.run(START_MS + at - clock.now());
    await act();
    if (at > TROUBLE_MS && Object.keys(scene!.outcomes()).length === given.length) break;
  }
  collect();
  scene!.stop.abort();
  await scene!.run(0);
  return { records: journal.records, given, outcomes: scene!.outcomes(), sent, most };
}

const isShared = (oneAddress: Night['oneAddress'], name: string): boolean =>
  oneAddress === 'always' || (oneAddress === 'www' && name.startsWith('www.'));

const isRobots = (url: string): boolean => url.endsWith('/robots.txt');

it('keeps every promise to every host, whatever they do and whatever dies', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(anyNight, async (night) => {
      const { records, given, outcomes, sent, most } = await play(night);
      expect(most).toBeLessThanOrEqual(night.pagesAtOnce);
      expect(sent.filter(({ at, heardAt }) => heardAt === null || at >= heardAt + LEASE_MS)).toEqual([]);
      expect(gapsBelow(sent, INTERVAL_MS)).toEqual([]);
      const atAddress = sent.filter(({ url }) => isShared(night.oneAddress, new URL(url).hostname));
      // A new process does not know when the one before it has asked.
      if (night.deaths.length === 0)
        expect(
          gapsBelow(
            atAddress.map((request) => ({ ...request, host: '' })),
            ADDRESS_GAP_MS,
          ),
        ).toEqual([]);
      expect(fasterThanRules(records)).toEqual([]);
      expect(unread(sent)).toEqual([]);
      expect(sent.filter(({ url }) => isForbidden(night, url))).toEqual([]);
      expect(askedAfterGivenUp(records)).toEqual([]);
      expect(Object.keys(outcomes).sort()).toEqual([...given].sort());
      const ends = records.flatMap((record) => (record.t === 'result' ? [record.result.id] : []));
      expect(ends).toHaveLength(new Set(ends).size);
    }),
    { numRuns: 40 },
  );
});

function gapsBelow(sent: readonly Request[], gapMs: number): [string, number][] {
  return [...Map.groupBy(sent, ({ host }) => host)].flatMap(([host, own]) =>
    own.slice(1).flatMap(({ at }, i): [string, number][] => {
      const ms = at - own[i]!.at;
      return ms < gapMs ? [[host, ms]] : [];
    }),
  );
}

/** Requests sooner after the one before than a Crawl-delay allows that was in the journal by then. */
function fasterThanRules(records: readonly JournalRecord[]): number[] {
  const last = new Map<number, number>();
  const delays = new Map<number, number>();
  return records.flatMap((record): number[] => {
    if (record.t === 'origin-robots') {
      const domain = record.domain ?? 0;
      delays.set(domain, Math.max(delays.get(domain) ?? 0, record.policy.crawlDelayMs ?? 0));
    }
    if (record.t !== 'started') return [];
    const { domain = 0, atMs } = record;
    const gapMs = atMs - (last.get(domain) ?? -Infinity);
    last.set(domain, atMs);
    return gapMs < (delays.get(domain) ?? 0) ? [gapMs] : [];
  });
}

/** Pages of origins whose robots.txt was not asked for before. */
function unread(sent: readonly Request[]): string[] {
  const read = new Set<string>();
  return sent.flatMap(({ url }) => {
    const { origin } = new URL(url);
    if (isRobots(url)) read.add(origin);
    return read.has(origin) ? [] : [url];
  });
}

function isForbidden({ hosts }: Night, url: string): boolean {
  const host = Number(/h(\d+)\.example$/.exec(hostGroupOf(new URL(url)))?.[1] ?? NaN);
  return hosts[host]?.rules === 'closed' && new URL(url).pathname === '/2';
}

function askedAfterGivenUp(records: readonly JournalRecord[]): JournalRecord[] {
  const givenUp = new Set<number>();
  return records.filter((record) => {
    if (record.t === 'given-up') givenUp.add(record.domain ?? 0);
    return record.t === 'started' && givenUp.has(record.domain ?? 0);
  });
}
