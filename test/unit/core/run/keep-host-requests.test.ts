/** What a run of many hosts leaves of its request logs, where they cannot be read. */
import { expect, it } from 'vitest';
import type { Database } from '../../../../orchestrator/core/db/connect.ts';
import type { RunRecord } from '../../../../orchestrator/core/model/stores.ts';
import { keepHostRequests } from '../../../../orchestrator/core/run/keep-host-requests.ts';
import { MemoryObjectStore } from '../../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { ANY_HOST, type ProductUrl } from '../../../../shared/domain/domains.ts';
import { storeManifest } from '../request-logs.ts';

async function keep(productUrl: ProductUrl, signal = new AbortController().signal): Promise<string[]> {
  const objects = new MemoryObjectStore();
  const instance = await storeManifest(objects, []);
  objects.get = () => Promise.reject(new Error('the bucket does not answer'));
  const alarms: string[] = [];
  const core = {
    objects,
    fleet: { instances: () => Promise.resolve([instance]) } as never,
    alarm: (text: string) => Promise.resolve(void alarms.push(text)),
  };
  const run = { id: 'r', publicKey: 'none', settings: { site: { intervalMs: 1_000, productUrl } } } as RunRecord;
  await keepHostRequests(core, { database: {} as Database, run, signal });
  return alarms;
}

it('says what is not kept, and ends no run', async () => {
  expect(await keep(ANY_HOST)).toEqual([
    expect.stringMatching(/^orchestrator hosts show does not tell all .*: the bucket does not answer$/),
  ]);
  expect(await keep(ANY_HOST, AbortSignal.abort())).toHaveLength(1);
});

it('reads nothing of a run that names its site', async () => {
  expect(await keep('https://shop.example/{id}')).toEqual([]);
});
