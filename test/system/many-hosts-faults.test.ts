/**
 * Runs over many hosts in which processes are killed and frozen, against the ledger of the hosts: whatever is lost, no
 * host may notice.
 *
 * @module-tag nightly
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { hostLeaseMs, limitsFor } from '../../shared/domain/limits.ts';
import { seededRandom } from '../../shared/adapters/random.ts';
import { buildBundle } from '../../userdata/bundle.ts';
import type { TestEngine } from '../support/mariadb/database.ts';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { type SandboxInstance, startSandbox, type TestSandbox } from '../support/sandbox/start-sandbox.ts';
import type { HostLedger, HostRequest } from '../support/sites/host-ledger.ts';
import { type HostSpec, expectedPage, pathsOf } from '../support/sites/host-spec.ts';
import type { HostWorld } from '../support/sites/host-world.ts';
import { endOf, type Fleet, type RunEnd } from './fleet.ts';
import { type HostStage, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 600;
const TIMEOUT_MS = 3_000;
const COOL_DOWN_MS = 8_000;
const RETRY_AFTER_S = 10;

const many = (count: number, of: (i: number) => HostSpec): HostSpec[] => Array.from({ length: count }, (_, i) => of(i));

interface Hosts {
  /** Of these every record can be stored. */
  open: readonly HostSpec[];
  /** Those and the others that the list names. */
  listed: readonly HostSpec[];
  unlisted: readonly HostSpec[];
}

/** @param times how many of each kind @param sharing names at one more address; half of them are closed to crawlers */
function hostsOf(times: number, { sharing = 0, slowMs = 0 } = {}): Hosts {
  const all = (count: number, of: (i: number) => HostSpec): HostSpec[] => many(count * times, of);
  const behaviour = slowMs > 0 ? { slowMs } : 'ok';
  const open: HostSpec[] = [
    ...all(90, (i) => ({ name: `ok${i}.test`, pages: 1 + (i % 4), behaviour })),
    ...all(5, (i) => ({ name: `long${i}.test`, pages: 30 + (i % 5) })),
    ...all(4, (i) => ({ name: `delay${i}.test`, pages: 5, crawlDelay: 2 + (i % 4) })),
    ...all(3, (i) => ({ name: `slow${i}.test`, pages: 6, behaviour: { slowMs: 900 } })),
    ...all(1, (i) => ({ name: `www.names${i}.test`, pages: 4 })),
    ...all(1, (i) => ({ name: `shop.names${i}.test`, pages: 4 })),
    ...many(sharing / 2, (i) => ({
      name: `shared${i}.test`,
      behaviour,
      ...(i > 0 && { sharesAddressOf: 'shared0.test' }),
    })),
  ];
  const ban = { afterPages: 2, forMs: 600_000 };
  return {
    open,
    listed: [
      ...open,
      ...all(1, (i) => ({
        name: `closed${i}.test`,
        pages: 4,
        robots: { text: 'User-agent: *\nDisallow: /p/1\nDisallow: /p/3\n' },
      })),
      ...many(sharing / 2, (i) => ({
        name: `shut${i}.test`,
        sharesAddressOf: 'shared0.test',
        robots: { text: 'User-agent: *\nDisallow: /\n' },
      })),
      ...all(2, (i) => ({ name: `broken-rules${i}.test`, pages: 2, robots: { status: 503 } })),
      ...all(6, (i) => ({ name: `silent${i}.test`, pages: 2, behaviour: 'silent', robots: 'silent' })),
      ...all(2, (i) => ({ name: `refused${i}.test`, pages: 1, behaviour: 'refused' })),
      ...all(2, (i) => ({ name: `unknown${i}.test`, pages: 1, behaviour: 'nxdomain' })),
      ...all(3, (i) => ({ name: `ban${i}.test`, pages: 8, behaviour: { ban } })),
      ...all(3, (i) => ({
        name: `too-many${i}.test`,
        pages: 8,
        behaviour: { tooMany: { ...ban, retryAfterSeconds: RETRY_AFTER_S } },
      })),
      // What these say is at other hosts.
      ...all(3, (i) => ({
        name: `moved${i}.test`,
        behaviour: { redirectTo: `http://ok${Math.floor(i / 3)}.test:{port}/p/1` },
      })),
      ...all(5, (i) => ({
        name: `renamed${i}.test`,
        pages: 4,
        robots: { redirectTo: `http://now${i}.test:{port}/robots.txt` },
        behaviour: { redirectTo: `http://now${i}.test:{port}{path}` },
      })),
    ],
    unlisted: all(5, (i) => ({ name: `now${i}.test`, pages: 4, crawlDelay: i % 2 })),
  };
}

const FEW = hostsOf(1);
/**
 * Some 2,000. With few places, and pages that take a while, instances have hosts that they have not begun: these can be
 * transferred.
 */
const MANY = hostsOf(8, { sharing: 1_000, slowMs: 300 });
const MANY_PLACES = 2;
const MANY_DEADLINE_S = 900;
const MANY_LIMIT_MS = 1_080_000;

const SEED = Number(process.env['FAULT_SEED'] ?? 7);

describe('a run over many hosts', { timeout: 300_000 }, () => {
  let hosts: Hosts;
  let world: HostWorld;
  let sandbox: TestSandbox;
  let fleet: Fleet;
  let stage: HostStage | null;

  afterEach(() => stage?.close());

  /** False where this user may not have names of its own. */
  async function open(engine: TestEngine, deadlineS: number, instances = 3, of = FEW): Promise<boolean> {
    hosts = of;
    const { sha256 } = await buildBundle();
    stage = await openHostStage({
      hosts: hosts.listed,
      unlisted: hosts.unlisted,
      engine,
      sandbox: async (prefix) => (sandbox = await startSandbox({ allowBundles: [sha256], prefix })),
      timeoutMs: of === MANY ? MANY_LIMIT_MS - 10_000 : 290_000,
      config: {
        site: {
          interval: `${INTERVAL_MS}ms`,
          timeout: `${TIMEOUT_MS}ms`,
          ban: { cool_down: `${COOL_DOWN_MS}ms` },
          ...(of === MANY && { pages_at_once: MANY_PLACES }),
        },
        run: { deadline: `${deadlineS}s`, min_instances: instances },
      },
    });
    if (stage === null) return false;
    ({ world, fleet } = stage);
    return true;
  }

  /** Starts the run, and waits for so many requests. */
  async function crawl(requests: number): Promise<RunningCommand> {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await world.ledger()).requests.length >= requests, {
      what: `${requests} requests`,
      timeoutMs: 90_000,
      everyMs: 100,
    });
    return run;
  }

  const running = async (): Promise<(SandboxInstance & { pid: number })[]> =>
    (await sandbox.instances()).filter(
      (each): each is SandboxInstance & { pid: number } => each.pid !== null && each.state === 'running',
    );

  const signal = (pid: number, name: NodeJS.Signals): boolean => {
    try {
      return process.kill(pid, name);
    } catch {
      // It has ended.
      return false;
    }
  };

  /** Kills the process of the instance that has asked last of the host. */
  async function killOwner(host: string): Promise<void> {
    const from = (await world.ledger()).requestsOf(host).at(-1)?.from;
    const owner = (await running()).find(({ address }) => address === from);
    if (owner !== undefined) signal(owner.pid, 'SIGKILL');
  }

  async function expectPolite({ report, stderr }: RunEnd): Promise<HostLedger> {
    const ledger = await world.ledger();
    expect(report.state, `${JSON.stringify(report.notes)}\n${stderr}`).toBe('completed');
    await expectTrueRows();
    expect(ledger.groupsFasterThan(INTERVAL_MS)).toEqual([]);
    for (const { name, crawlDelay } of [...hosts.listed, ...hosts.unlisted])
      if (crawlDelay !== undefined) expect(ledger.smallestGapOf(name), name).toBeGreaterThanOrEqual(crawlDelay * 1_000);
    expect(ledger.pagesBeforeRobots()).toEqual([]);
    expect(ownersTwice(ledger, namesOfMoved(hosts.listed))).toEqual([]);
    expect(unreadByOwner(ledger)).toEqual([]);
    const forbidden = /^(closed\d+\.test\/p\/[13]|shut\d+\.test\/p\/\d)$/;
    expect(ledger.requests.filter(({ host, path }) => forbidden.test(host + path))).toEqual([]);
    const heardMs = await lastHeardMs();
    for (const { name, behaviour } of hosts.listed)
      if (typeof behaviour === 'object' && 'ban' in behaviour) {
        expect(duringRest(ledger, name, COOL_DOWN_MS).length, name).toBeLessThanOrEqual(1);
        // One to be sure, and one after the rest.
        expect(afterRefusals(ledger.requestsOf(name), 3, heardMs), name).toEqual([]);
      } else if (typeof behaviour === 'object' && 'tooMany' in behaviour) {
        expect(duringRest(ledger, name, RETRY_AFTER_S * 1_000), name).toEqual([]);
        expect(afterRefusals(ledger.requestsOf(name), 2, heardMs), name).toEqual([]);
      }
    expect(fleet.leftovers()).toEqual([]);
    const verified = await fleet.run('verify', '--json');
    expect(verified.exitCode, verified.stdout).toBe(0);
    return ledger;
  }

  /** By address: when the main server last heard the instance. */
  async function lastHeardMs(): Promise<ReadonlyMap<string, number>> {
    const rows = await fleet.query('select address, last_heartbeat_at as at from crawlfleet_instances');
    return new Map(rows.map(({ address, at }) => [String(address), Number(at)]));
  }

  async function expectTrueRows(): Promise<void> {
    const rows = await fleet.query('select product_id, title, price from product_snapshots');
    const stored = new Map(rows.map((row) => [String(row['product_id']), row]));
    expect(stored.size).toBe(rows.length);
    const lost = hosts.open
      .flatMap((host) => pathsOf(host).map((path) => host.name + path))
      .filter((id) => !stored.has(id));
    expect(lost).toEqual([]);
    for (const host of hosts.listed)
      for (const path of pathsOf(host)) {
        const row = stored.get(host.name + path);
        const { hostname, pathname } = new URL(redirectOf(host, path) ?? `http://${host.name}${path}`);
        if (row !== undefined) expect(row).toMatchObject(expectedPage(hostname, pathname));
      }
    const items = await fleet.query('select product_id, outcome, reason from crawlfleet_items');
    const endsOf = (name: RegExp): string[] =>
      [
        ...new Set(
          items
            .filter((item) => name.test(String(item['product_id'])))
            .map((item) => String(item['reason'] ?? item['outcome'])),
        ),
      ].sort();
    expect(endsOf(/^closed/)).toEqual(['robots', 'stored']);
    expect(endsOf(/^(broken-rules|shut)/)).toEqual(['robots']);
    expect(endsOf(/^(silent|refused|unknown)/)).toEqual(['network']);
    expect(endsOf(/^(moved|renamed)/)).toEqual(['stored']);
    expect(endsOf(/^(ban|too-many)/)).toEqual(['banned', 'stored']);
  }

  it('keeps its promises when processes of instances are killed', async (context) => {
    if (!(await open('sqlite', 150))) return context.skip('no mount namespace for this user');
    const run = await crawl(20);
    for (let round = 0; round < 4; round++) {
      const instances = await running();
      signal(instances[round % instances.length]!.pid, 'SIGKILL');
      await delay(2_500);
    }
    for (const { pid } of await running()) signal(pid, 'SIGKILL');
    await expectPolite(await endOf(run));
  });

  it('has no second owner when instances wake about the end of their lease', async (context) => {
    const deadlineS = 150;
    if (!(await open('sqlite', deadlineS, 4))) return context.skip('no mount namespace for this user');
    const leaseMs = hostLeaseMs(limitsFor(deadlineS * 1_000));
    await sandbox.control('POST', 'faults', [{ what: 'ignored-terminate', count: 1_000 }]);
    const run = await crawl(60);
    const victims = (await running()).slice(0, 3);
    for (const { pid } of victims) signal(pid, 'SIGSTOP');
    const frozenMs = performance.now();
    const lost = (): Promise<unknown[]> =>
      fleet.query("select slot from crawlfleet_instances where reason = 'heartbeat-lost'");
    await waitFor(async () => (await lost()).length === victims.length, { what: 'the losses', timeoutMs: 60_000 });
    const wakes = [leaseMs - 1_000, leaseMs + 300, leaseMs + TIMEOUT_MS + 2_000];
    for (const [i, { pid }] of victims.entries()) {
      await delay(Math.max(0, wakes[i]! - (performance.now() - frozenMs)));
      signal(pid, 'SIGCONT');
    }
    await sandbox.control('DELETE', 'faults');
    const ledger = await expectPolite(await endOf(run));
    // Else it has proved nothing.
    expect(ledger.groups().filter((group) => ledger.sourcesOf(group).length > 1).length).toBeGreaterThan(0);
  });

  it.for<[TestEngine, string, number]>([
    ['sqlite', 'for a moment', 2_000],
    ['mysql', 'for longer than the lease', 0],
    ['sqlite', 'for longer than the lease', 0],
  ])('pauses and goes on, on %s, when the main server is away %s', async ([engine, , ms], context) => {
    const deadlineS = 150;
    if (!(await open(engine, deadlineS))) return context.skip('no mount namespace for this user');
    const leaseMs = hostLeaseMs(limitsFor(deadlineS * 1_000));
    const awayMs = ms || leaseMs + 6_000;
    const run = await crawl(60);
    run.kill('SIGKILL');
    const goneMs = await world.nowMs();
    await run.finished;
    await delay(awayMs);
    const before = await world.ledger();
    const end = await endOf(fleet.start('resume', '--json'));
    if (awayMs > leaseMs) expect(before.requests.filter(({ atMs }) => atMs > goneMs + leaseMs + 100)).toEqual([]);
    await expectPolite(end);
  });

  it('knows a Crawl-delay and a rest after the death of the process that has learned them', async (context) => {
    if (!(await open('sqlite', 150))) return context.skip('no mount namespace for this user');
    const run = await crawl(1);
    const killed = new Set<string>();
    const kill = async (what: string, host: string, when: (requests: HostRequest[]) => boolean): Promise<void> => {
      await waitFor(async () => when((await world.ledger()).requestsOf(host)), { what, timeoutMs: 60_000 });
      // What the process had no time to write, the next one cannot know.
      await delay(400);
      killed.add(host);
      await killOwner(host);
    };
    const isKnown = (requests: HostRequest[]): boolean => requests.some(({ endMs }) => endMs !== null);
    const isRefused = (requests: HostRequest[]): boolean => requests.some(({ status }) => status === 429);
    await Promise.all([
      ...['delay3.test', 'delay2.test'].map((host) => kill('its robots.txt', host, isKnown)),
      ...['too-many0.test', 'too-many1.test'].map((host) => kill('a refusal', host, isRefused)),
    ]);
    expect(killed.size).toBe(4);
    await expectPolite(await endOf(run));
  });

  it('keeps its promises when instances give back hosts that they have begun, resting ones too', async (context) => {
    if (!(await open('sqlite', 150, 4))) return context.skip('no mount namespace for this user');
    const run = await crawl(60);
    const [row] = await fleet.query('select id from crawlfleet_runs');
    const drained = new Set<string>();
    /** A program on the machine asks the instance that has asked last of the host to stop. */
    const drainOwner = async (host: string, when: (request: HostRequest) => boolean): Promise<void> => {
      await waitFor(async () => (await world.ledger()).requestsOf(host).some(when), { what: host, timeoutMs: 60_000 });
      const address = (await world.ledger()).requestsOf(host).at(-1)?.from ?? '';
      if (drained.has(address) || drained.size === 2) return;
      drained.add(address);
      const answer = await fetch(`http://${address}:8081/v1/runs/${String(row?.['id'])}/drain`, { method: 'POST' });
      expect(answer.status).toBe(202);
    };
    await drainOwner('too-many0.test', ({ status }) => status === 429);
    await drainOwner('delay3.test', ({ endMs }) => endMs !== null);
    await drainOwner('too-many1.test', ({ status }) => status === 429);
    expect(drained.size).toBeGreaterThan(0);
    const ledger = await expectPolite(await endOf(run));
    expect(ledger.groups().filter((group) => ledger.sourcesOf(group).length > 1).length).toBeGreaterThan(0);
  });

  /** Kills and freezes main server and instances, but not `spared`; returns the main server that works at the end. */
  async function disturb(run: RunningCommand, rounds: number, spared = 0): Promise<RunningCommand> {
    const random = seededRandom(SEED);
    const ms = (low: number, high: number): number => low + random.next() * (high - low);
    let current = run;
    for (let round = 0; round < rounds; round++) {
      await delay(ms(300, 2_500));
      const instances = (await running()).filter(({ pid }) => pid !== spared);
      const victim = instances[Math.floor(random.next() * instances.length)];
      const what = random.next();
      if (what < 0.2) {
        current.kill('SIGKILL');
        await current.finished;
        await delay(ms(500, 6_000));
        current = fleet.start('resume', '--json');
      } else if (victim === undefined) continue;
      else if (what < 0.6) signal(victim.pid, 'SIGKILL');
      else {
        signal(victim.pid, 'SIGSTOP');
        await delay(ms(200, 6_000));
        signal(victim.pid, 'SIGCONT');
      }
    }
    return current;
  }

  it(`keeps its promises whatever happens (seed ${SEED})`, async (context) => {
    if (!(await open('sqlite', 160, 4))) return context.skip('no mount namespace for this user');
    const run = await disturb(await crawl(20), 10);
    const [lost] = await running();
    if (lost !== undefined) signal(lost.pid, 'SIGSTOP');
    await expectPolite(await endOf(run));
  });

  it(
    `keeps its promises at 2,000 hosts whatever happens (seed ${SEED})`,
    { timeout: MANY_LIMIT_MS },
    async (context) => {
      if (!(await open('sqlite', MANY_DEADLINE_S, 8, MANY))) return context.skip('no mount namespace for this user');
      const started = await crawl(300);
      await slowDownUntilItGives();
      const [victim] = await running();
      const [run] = await Promise.all([disturb(started, 30, victim!.pid), freezeUntilReplaced(victim!.pid)]);
      const ledger = await expectPolite(await endOf(run));
      const shared = world.addressOf('shared0.test')!;
      const sources = [...new Set(ledger.requests.filter(({ to }) => to === shared).map(({ from }) => from))];
      for (const from of sources) expect(ledger.smallestGapAt(shared, from)).toBeGreaterThanOrEqual(1_000);
    },
  );

  /** Lets an instance work for a sixth of the time, until it has returned hosts that it has not begun. */
  async function slowDownUntilItGives(): Promise<void> {
    const slow = (await running()).at(-1)!;
    await waitFor(
      async () => {
        signal(slow.pid, 'SIGSTOP');
        await delay(1_500);
        signal(slow.pid, 'SIGCONT');
        await delay(300);
        const given = "select id from crawlfleet_events where kind = 'chunk' and detail like '%has given back%'";
        return (await fleet.query(given)).length > 0;
      },
      { what: 'a transfer', timeoutMs: 90_000, everyMs: 1 },
    );
  }

  /** It wakes about the end of its lease or later, on a machine that EC2 is late to end. */
  async function freezeUntilReplaced(pid: number): Promise<void> {
    await sandbox.control('POST', 'faults', [{ what: 'ignored-terminate', count: 1_000 }]);
    signal(pid, 'SIGSTOP');
    await delay(hostLeaseMs(limitsFor(MANY_DEADLINE_S * 1_000)) + 300);
    const replacements = (): Promise<unknown[]> => fleet.query('select slot from crawlfleet_instances where epoch > 1');
    await waitFor(async () => (await replacements()).length > 0, { what: 'a replacement', timeoutMs: 180_000 });
    signal(pid, 'SIGCONT');
    await delay(TIMEOUT_MS);
    await sandbox.control('DELETE', 'faults');
  }
});

/** Where a page of a host has moved to; null of others. */
function redirectOf({ behaviour }: HostSpec, path: string): string | null {
  const isMoved = typeof behaviour === 'object' && 'redirectTo' in behaviour;
  return isMoved ? behaviour.redirectTo.replace(':{port}', '').replace('{path}', path) : null;
}

/** The hosts whose pages have moved, and those where they are now. */
function namesOfMoved(hosts: readonly HostSpec[]): ReadonlySet<string> {
  return new Set(
    hosts.flatMap((host) => {
      const to = redirectOf(host, '/');
      return to === null ? [] : [host.name, new URL(to).hostname];
    }),
  );
}

/**
 * Hosts that a source asks again which another one has asked since.
 * @param moved to these later records may lead: an instance may get them back
 */
function ownersTwice(ledger: HostLedger, moved: ReadonlySet<string>): string[] {
  const groups = ledger.groups().filter((group) => !moved.has(group));
  return groups.filter((group) => {
    const sources = ledger.sourcesOf(group);
    return new Set(sources).size < sources.length;
  });
}

/** First requests of an owner for a page of a host whose robots.txt it has not read. */
function unreadByOwner({ requests }: HostLedger): HostRequest[] {
  const read = new Set<string>();
  return requests.filter(({ host, from, path }) => {
    if (path === '/robots.txt') read.add(`${host} ${from}`);
    // Of these the one of another host holds.
    return !read.has(`${host} ${from}`) && !host.startsWith('renamed');
  });
}

const isRefused = ({ status }: HostRequest): boolean => status === 403 || status === 429;

/** Requests after the first refusal, before its rest is over. */
function duringRest(ledger: HostLedger, host: string, restMs: number): HostRequest[] {
  const requests = ledger.requestsOf(host);
  const first = requests.find(isRefused);
  return first === undefined ? [] : requests.filter(({ atMs }) => atMs > first.atMs && atMs < first.atMs + restMs);
}

/** An owner reports a refusal in a heartbeat at once; a heartbeat after this time has certainly reported it. */
const TELL_MS = 1_000;

/**
 * Requests after this number of refusals in a row. A refusal that the lost owner did not report does not count, because
 * the next owner cannot know of it.
 */
function afterRefusals(
  requests: readonly HostRequest[],
  count: number,
  heardMs: ReadonlyMap<string, number>,
): HostRequest[] {
  let inARow = 0;
  return requests.filter((request) => {
    if (inARow >= count) return true;
    inARow = isRefused(request) ? inARow + 1 : 0;
    const isTold = (heardMs.get(request.from) ?? 0) >= request.wallMs + TELL_MS;
    if (!isTold) inARow = Math.min(inARow, count - 1);
    return false;
  });
}
