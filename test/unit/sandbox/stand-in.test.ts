import { describe, expect, it } from 'vitest';
import { createCatalogue } from '../../../sandbox/ec2/catalogue.ts';
import type { InstanceState } from '../../../sandbox/ec2/instance.ts';
import type { IdFile } from '../../../sandbox/id-file.ts';
import type { ForeignEc2, ForeignInstance } from '../../../sandbox/stand-in/foreign-ec2.ts';
import { StandIn } from '../../../sandbox/stand-in/stand-in.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { aFleet } from './a-fleet.ts';

const A = 'i-0aaaaaaaaaaaaaaaa';
const B = 'i-0bbbbbbbbbbbbbbbb';

/** The foreign endpoint: mock instances are rows of a table. */
function foreignTable() {
  const rows = new Map<string, ForeignInstance>();
  const asked: string[] = [];
  const move = (id: string, state: InstanceState): void => {
    const row = rows.get(id);
    if (row) rows.set(id, { ...row, state });
  };
  const foreign: ForeignEc2 = {
    list: () => Promise.resolve([...rows.values()]),
    userData: (id) => Promise.resolve(Buffer.from(`data of ${id}`).toString('base64')),
    shutdownBehavior: () => Promise.resolve('terminate'),
    terminate: (id) => {
      asked.push(`terminate ${id}`);
      move(id, 'terminated');
      return Promise.resolve();
    },
    stop: (id) => {
      asked.push(`stop ${id}`);
      move(id, 'stopped');
      return Promise.resolve();
    },
    close: () => undefined,
  };
  const launch = (id: string, zone: string): void => {
    const tags = new Map([['crawlfleet:run', 'r1']]);
    const row = { state: 'running', instanceType: 't4g.nano', architecture: 'arm64', imageId: 'ami-9' } as const;
    rows.set(id, { ...row, id, zone, launchedAtMs: 5, tags });
  };
  return { rows, asked, foreign, move, launch };
}

function stage(bootedBefore: string[] = []) {
  const clock = new VirtualClock();
  const table = foreignTable();
  const { fleet, on, off } = aFleet(clock);
  const ids = new Set(bootedBefore);
  const booted: IdFile = { has: (id) => ids.has(id), add: (id) => Promise.resolve(void ids.add(id)) };
  const catalogue = createCatalogue('ap-northeast-1', '127.20.0.0/16');
  // The fleet in these tests has one subnet.
  const subnets = catalogue.subnets.map((subnet) => ({ ...subnet, id: 'subnet-1' }));
  const log = { write: () => undefined, close: () => Promise.resolve() };
  const standIn = new StandIn({
    clock,
    catalogue: { ...catalogue, subnets },
    fleet,
    foreign: table.foreign,
    booted,
    log,
  });
  /** Polls once, and advances the clock so that its effects complete. */
  const look = async (ms = 3_000): Promise<void> => {
    await standIn.look();
    await clock.advance(ms);
  };
  return { clock, fleet, on, off, standIn, look, ...table };
}

describe('the stand-in for an endpoint with mock instances', () => {
  it('boots each instance once, under its ID, with its user data and tags', async () => {
    const { launch, look, on, fleet } = stage();
    launch(A, 'ap-northeast-1a');
    launch(B, 'ap-northeast-1c');
    await look();
    await look();
    expect(on.map(({ id, userData, role }) => ({ id, userData, role }))).toEqual([
      { id: A, userData: `data of ${A}`, role: 'crawlfleet-stand-in' },
      { id: B, userData: `data of ${B}`, role: 'crawlfleet-stand-in' },
    ]);
    expect(new Set(on.map((m) => m.address)).size).toBe(2);
    expect(fleet.find(A)).toMatchObject({ state: 'running', launchedAtMs: 5, zone: 'ap-northeast-1a' });
  });

  it('moves instances from a zone that the balancer of the sandbox does not serve into one that it serves', async () => {
    const { launch, look, fleet } = stage();
    launch(A, 'ap-northeast-1d');
    launch(B, 'us-east-1f');
    await look();
    expect(fleet.all().map((i) => i.zone)).toEqual(['ap-northeast-1a', 'ap-northeast-1a']);
  });

  it.each(['terminated', 'shutting-down'] as const)('powers off an instance that is %s there', async (state) => {
    const { launch, look, move, off, fleet } = stage();
    launch(A, 'ap-northeast-1a');
    await look();
    move(A, state);
    await look();
    expect(off).toEqual([A]);
    expect(fleet.find(A)?.state).toBe('terminated');
  });

  it('powers off an instance that is no longer listed, but not at the first list without it', async () => {
    const { launch, look, rows, off } = stage();
    launch(A, 'ap-northeast-1a');
    await look();
    rows.clear();
    await look(100);
    expect(off).toEqual([]);
    await look(5_000);
    await look();
    expect(off).toEqual([A]);
  });

  it('ends nothing while the endpoint is unreachable', async () => {
    const { launch, look, foreign, clock, standIn, off } = stage();
    launch(A, 'ap-northeast-1a');
    await look();
    foreign.list = () => Promise.reject(new Error('connection reset'));
    await expect(standIn.look()).rejects.toThrow('connection reset');
    await clock.advance(60_000);
    expect(off).toEqual([]);
  });

  it('terminates an instance there that has powered itself off here', async () => {
    const { launch, look, fleet, asked } = stage();
    launch(A, 'ap-northeast-1a');
    await look();
    fleet.poweredOff(A);
    await look();
    await look();
    expect(asked).toEqual([`terminate ${A}`]);
  });

  it('stops and starts a machine with its instance', async () => {
    const { launch, look, move, fleet, on, off } = stage();
    launch(A, 'ap-northeast-1a');
    await look();
    move(A, 'stopped');
    await look();
    expect({ off, state: fleet.find(A)?.state }).toEqual({ off: [A], state: 'stopped' });
    move(A, 'running');
    await look();
    expect(fleet.find(A)?.state).toBe('running');
    expect(on).toHaveLength(2);
  });

  it('does not reboot an instance that an earlier sandbox had booted, but terminates it', async () => {
    const { launch, look, on, asked } = stage([A]);
    launch(A, 'ap-northeast-1a');
    await look();
    expect(on).toEqual([]);
    expect(asked).toEqual([`terminate ${A}`]);
  });

  it('terminates all instances there when it ends', async () => {
    const { launch, look, standIn, asked, rows } = stage();
    launch(A, 'ap-northeast-1a');
    launch(B, 'ap-northeast-1c');
    await look();
    await standIn.close();
    expect(asked.sort()).toEqual([`terminate ${A}`, `terminate ${B}`]);
    expect([...rows.values()].map((row) => row.state)).toEqual(['terminated', 'terminated']);
  });

  it('ends on time when the endpoint no longer answers', async () => {
    const { clock, foreign, standIn } = stage();
    foreign.list = () => new Promise(() => undefined);
    standIn.start();
    const closed = standIn.close();
    await clock.advance(3_000);
    await closed;
  });
});
