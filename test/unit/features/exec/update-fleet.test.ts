import { beforeEach, describe, expect, it } from 'vitest';
import { updateFleet, type UpdateParts } from '../../../../orchestrator/features/exec/update-fleet.ts';
import type { CommandResult } from '../../../../orchestrator/features/exec/command-runner.ts';
import { withUpdatedBundle } from '../../../../orchestrator/core/act/launches/updated-bundle.ts';
import type { LaunchTemplate } from '../../../../orchestrator/core/model/core.ts';
import type { InstanceRecord, RunEvent, RunRecord } from '../../../../orchestrator/core/model/stores.ts';
import type { InstancePhase } from '../../../../shared/domain/states.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { userDataFor } from '../../../support/sandbox/test-bundle.ts';

const [OLD, NEW] = ['a'.repeat(64), 'b'.repeat(64)];
const userData = Buffer.from(userDataFor({ bundleUrl: 'http://127.0.0.1:1/b', sha256: OLD }), 'base64').toString();
const settings = { site: { productUrl: 'https://shop.example/{id}' }, results: { table: 'products' } };
const run = { id: 'run-1', startedAtMs: 0, deadlineAtMs: 3_600_000, phase: 'crawling', settings } as RunRecord;

/** A fleet whose instances send a heartbeat after each restart, except those that are `deaf`. */
class FakeFleet {
  readonly clock = new VirtualClock();
  readonly events: RunEvent[] = [];
  readonly commands: [id: string, what: 'update' | 'roll back'][] = [];
  readonly deaf = new Set<string>();
  readonly result: Partial<CommandResult> = {};
  alive = true;
  readonly rows: InstanceRecord[];

  constructor(phases: InstancePhase[]) {
    this.rows = phases.map((phase, slot) => {
      const row = { slot, epoch: 1, instanceId: `i-${slot}`, phase, lastHeartbeatAtMs: 0, request: { userData } };
      return row as InstanceRecord;
    });
  }

  parts(): UpdateParts {
    const holder = { owner: 'elsewhere:1', runId: run.id, expiresAtMs: this.alive ? Infinity : 0 };
    return {
      run,
      clock: this.clock,
      sha256: NEW,
      say: () => undefined,
      runs: {
        guard: { isFile: false, connection: null, holders: async () => [holder], nowMs: async () => 1 },
        get: async () => run,
      } as unknown as UpdateParts['runs'],
      row: {
        addEvent: async (event) => void this.events.unshift(event),
        events: async (limit, kind) => this.events.filter((e) => e.kind === kind).slice(0, limit),
      },
      fleet: {
        instances: async () => this.rows,
        get: async ({ slot }) => ({ ...this.rows[slot]! }),
        incidents: async () => [],
      },
      objects: { presignGet: async (key) => `https://bucket.example/${key}` },
      runner: {
        [Symbol.dispose]: () => undefined,
        run: async ({ instanceIds: [id], command }) => {
          const what = command.includes('curl') ? 'update' : 'roll back';
          this.commands.push([id!, what]);
          const row = this.rows.find((r) => r.instanceId === id)!;
          if (!this.deaf.has(id!)) void this.clock.sleep(2_000).then(() => (row.lastHeartbeatAtMs = this.clock.now()));
          const ended = { status: 'ended', exitCode: 0, stdout: '', stderr: '', truncated: false } as const;
          return [{ instanceId: id!, ...ended, ...(what === 'update' ? this.result : {}) }];
        },
      },
    };
  }

  async update(signal = new AbortController().signal) {
    const updating = updateFleet(this.parts(), signal);
    updating.catch(() => undefined);
    await this.clock.advance(600_000);
    return updating;
  }
}

let fleet: FakeFleet;
beforeEach(() => {
  fleet = new FakeFleet(['crawling', 'banned', 'uploading', 'ready', 'terminated']);
});

describe('the update of a fleet', () => {
  it('takes the instances that crawl, one after another, and later launches get the bundle too', async () => {
    expect(await fleet.update()).toMatchObject({
      updated: [{ slot: 0 }, { slot: 1 }, { slot: 3 }],
      failed: null,
      left: [],
      launches: true,
    });
    expect(fleet.commands.map(([id]) => id)).toEqual(['i-0', 'i-1', 'i-3']);
    // Not before the first one is back with it.
    expect(fleet.events.map(({ kind }) => kind).toReversed()).toEqual([
      'bundle',
      'launch-bundle-2',
      'bundle',
      'bundle',
    ]);
    const template = { bundle: { key: 'x', sha256: OLD } } as LaunchTemplate;
    const launches = fleet.events.filter(({ kind }) => kind === 'launch-bundle-2');
    expect(withUpdatedBundle(template, launches).bundle).toEqual({ key: `bundles/${NEW}.tar.gz`, sha256: NEW });
    expect(withUpdatedBundle(template, [])).toBe(template);
  });

  it('changes nothing where it has been done already', async () => {
    await fleet.update();
    fleet.commands.length = 0;
    expect(await fleet.update()).toMatchObject({ updated: [], failed: null, left: [], launches: true });
    expect(fleet.commands).toEqual([]);
  });

  it('stops at an instance that stays silent, puts its old bundle back, and goes on there when repeated', async () => {
    fleet.deaf.add('i-1');
    const report = await fleet.update();
    expect(report).toMatchObject({ updated: [{ slot: 0 }], failed: { slot: 1 }, left: [{ slot: 1 }, { slot: 3 }] });
    expect(report.failed!.reason).toMatch(/no heartbeat within .*; it runs its old bundle$/);
    expect(fleet.commands).toEqual([
      ['i-0', 'update'],
      ['i-1', 'update'],
      ['i-1', 'roll back'],
    ]);
    fleet.deaf.clear();
    expect(await fleet.update()).toMatchObject({ updated: [{ slot: 1 }, { slot: 3 }], left: [] });
  });

  it.each([
    [{ status: 'ended', exitCode: 1, stderr: 'x\nthe bundle has the wrong hash\n' }, /exit code 1, the bundle has/],
    [{ status: 'timed-out', exitCode: null }, /the command is timed-out; it runs its old bundle/],
    [{ status: 'unreachable', exitCode: null }, /no SSM agent answers there$/],
  ] as const)('leaves later launches as they are when the first instance fails (%o)', async (result, reason) => {
    Object.assign(fleet.result, result);
    const report = await fleet.update();
    expect(report).toMatchObject({ updated: [], launches: false, failed: { slot: 0 } });
    expect(report.failed!.reason).toMatch(reason);
    expect(fleet.events).toEqual([]);
  });

  it('waits for an instance that boots with the old bundle', async () => {
    fleet = new FakeFleet(['crawling', 'booting']);
    void fleet.clock.sleep(60_000).then(() => (fleet.rows[1]!.phase = 'ready'));
    expect(await fleet.update()).toMatchObject({ updated: [{ slot: 0 }, { slot: 1 }], left: [] });
  });

  it('stops between two instances when it is interrupted', async () => {
    const stop = new AbortController();
    void fleet.clock.sleep(1_000).then(() => stop.abort());
    expect(await fleet.update(stop.signal)).toMatchObject({
      updated: [{ slot: 0 }],
      failed: null,
      left: [{ slot: 1 }, { slot: 3 }],
    });
  });

  it('refuses to begin while no main server would see an instance come back', async () => {
    fleet.alive = false;
    await expect(fleet.update()).rejects.toMatchObject({
      code: 'usage',
      hint: expect.stringContaining('resume') as string,
    });
    expect(fleet.commands).toEqual([]);
  });
});
