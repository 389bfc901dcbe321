/** F19 a manifest that is found at the very moment when its instance is given up. */
import { describe, expect, it } from 'vitest';
import { manifestKey } from '../../../shared/domain/keys.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { ourManifest } from '../../../orchestrator/core/act/results/close-epoch.ts';
import { encodeManifest } from '../../../shared/wire/part.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';
import type { Core } from '../../../orchestrator/core/model/core.ts';
import { ManifestPoll } from '../../../orchestrator/core/observe/manifest-poll.ts';
import type { FleetStore } from '../../../orchestrator/core/model/stores.ts';
import { createMemoryStores } from '../../../orchestrator/core/simulation/stores/create-memory-stores.ts';
import { MemoryDatabase } from '../../../orchestrator/core/simulation/stores/memory-database.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { pino } from 'pino';
import { at, type Bench, bound, createInstance, createRun, NOW } from './db/harness.ts';
import { lockRequest } from '../../support/lock-request.ts';

describe('F19 a silent instance whose manifest is found', () => {
  /** Polls the bucket; `before` runs right before the poll records what it has found. */
  async function poll(before: (bench: Bench, id: string) => Promise<unknown>) {
    const memory = new MemoryDatabase();
    const stores = createMemoryStores(memory);
    const lock = await stores.runs.acquireLock(lockRequest('tests', NOW, 3_600_000));
    const fence = 'fence' in lock ? lock.fence : 0;
    const bench = { stores, fence, memory, db: null as never, url: '' } as unknown as Bench;
    const { id } = await createRun(bench, 1);
    await createInstance(bench, id, 0);
    const objects = new MemoryObjectStore();
    const keys = createKeyPair();
    const manifest = ourManifest({ runId: id, clock: new VirtualClock(NOW) }, at(0), {
      instanceId: null,
      progress: null,
      parts: [],
      requestLogs: [],
    });
    await objects.putIfAbsent(manifestKey(id, 0, 1, 'AROA1:i-1'), encodeManifest(manifest, keys.privateKey));
    const alarms: string[] = [];
    const planted = manifestKey(id, 0, 1, 'AROA1:i-0');
    await objects.putIfAbsent(planted, Buffer.from('{}'));
    const clock = new VirtualClock(NOW);
    const own = bound(bench, id);
    const { fleet } = own;
    const asked = Promise.withResolvers<void>();
    const noteManifest: FleetStore['noteManifest'] = async (...args) => {
      await before(bench, id);
      const entered = await fleet.noteManifest(...args);
      asked.resolve();
      return entered;
    };
    const slow = Object.assign(Object.create(fleet) as FleetStore, {
      get: (...args: Parameters<FleetStore['get']>) => fleet.get(...args),
      noteManifest,
    });
    const log = pino({ level: 'silent' });
    const alarm = (detail: string) => Promise.resolve(void alarms.push(detail));
    const core = { ...own, runId: id, fleet: slow, objects, clock, log, alarm } as unknown as Core;
    const limits = limitsFor(4 * 3_600_000);
    const manifests = new ManifestPoll(core);
    await clock.advance(limits.lostMs);
    const record = { ...(await fleet.get(at(0)))!, publicKey: exportPublicKey(keys.publicKey) };
    manifests.look([record], limits);
    await asked.promise;
    // Foreign, whatever folder it is in.
    expect(alarms).toEqual([
      `the object ${planted} is neither from slot 0 epoch 1 nor from the main server: it is ignored`,
    ]);
    return fleet.get(at(0));
  }

  it('is closed by it while the instance is up', async () => {
    const record = await poll(() => Promise.resolve());
    expect(record).toMatchObject({
      phase: 'crawling',
      manifestKey: expect.stringContaining('/AROA1:i-1/manifest.json') as string,
    });
  });

  it('keeps no unchecked manifest when it is given up in between: its products must be offered again', async () => {
    const record = await poll((bench, id) =>
      bound(bench, id).fleet.move(at(0), 'crawling', 'lost', { reason: 'heartbeat-lost' }),
    );
    expect(record).toMatchObject({ phase: 'lost', manifestKey: null, manifestSha256: null });
  });
});
