/** What a run of many hosts has asked of each of them, by its request logs. */
import { describe, expect, it } from 'vitest';
import type { InstanceRecord, RunRecord } from '../../../orchestrator/core/model/stores.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { type HostRequests, readHostRequests } from '../../../orchestrator/core/verify/host-requests.ts';
import { ANY_HOST } from '../../../shared/domain/domains.ts';
import { anInstance } from './builders.ts';
import { storeLog, storeManifest } from './request-logs.ts';

const run = {
  id: 'r',
  publicKey: 'none',
  settings: { partsSigned: true, site: { intervalMs: 1_000, productUrl: ANY_HOST } },
} as RunRecord;

const START = Date.UTC(2026, 0, 1);
const NEVER = new AbortController().signal;

async function read(
  objects: MemoryObjectStore,
  instances: readonly InstanceRecord[],
  signal = NEVER,
): Promise<HostRequests[]> {
  return (await Array.fromAsync(readHostRequests({ run, objects }, instances, signal))).flat();
}

describe('what was asked of each host', () => {
  it('is summed up over all names, ports and logs of an instance, by the clock of the main server', async () => {
    const objects = new MemoryObjectStore();
    const begin = ['process 0 2026-01-01T00:00:00.000Z', 'clock 0 500 4'];
    const logs = [
      await storeLog(objects, [
        ...begin,
        'host 0 0 www.a.example',
        'host 1 1 b.example',
        '> 0 0 t',
        '< 20 0 200',
        '> 100 1 p',
      ]),
      await storeLog(objects, [...begin, 'host 0 0 a.example:8443', 'pace 0 4000', '> 2000 0 p', '> 6100 0 r'], {
        seq: 1,
      }),
    ];
    const instance = await storeManifest(objects, logs);
    const of = { slot: 0, epoch: 1, address: '10.0.0.0' };
    expect(await read(objects, [instance])).toEqual([
      { host: 'a.example', ...of, firstMs: START + 500, lastMs: START + 6_600, requests: 3, intervalMs: 4_000 },
      { host: 'b.example', ...of, firstMs: START + 600, lastMs: START + 600, requests: 1, intervalMs: 1_000 },
    ]);
  });

  it('is read by instance, without those that are not closed, and without what no host is called', async () => {
    const objects = new MemoryObjectStore();
    const begin = 'process 0 2026-01-01T00:00:00.000Z';
    const first = await storeLog(objects, [begin, 'host 0 0 a.example', '> 0 0 p']);
    const log = [begin, `host 0 0 ${'x'.repeat(300)}`, 'host 1 1 a.example', '> 0 0 p', '> 5 1 p'];
    const second = await storeLog(objects, log, { slot: 1 });
    const instances = [
      { ...(await storeManifest(objects, [first])), address: '-' },
      await storeManifest(objects, [second], 1),
      anInstance(2, { manifestKey: null }),
    ];
    expect(await read(objects, instances)).toMatchObject([
      { host: 'a.example', slot: 0, address: null, requests: 1 },
      { host: 'a.example', slot: 1, address: '10.0.0.1', requests: 1 },
    ]);
    await expect(read(objects, instances, AbortSignal.abort())).rejects.toThrow();
  });
});
