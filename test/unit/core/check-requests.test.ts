/** What `verify` says of the request logs in the bucket. */
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../../orchestrator/core/model/stores.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { checkRequests } from '../../../orchestrator/core/verify/check-requests.ts';
import type { ClosedEpoch } from '../../../orchestrator/core/verify/closed-epoch.ts';
import type { LogRef } from '../../../shared/wire/request-log.ts';
import { createKeyPair } from '../../../shared/wire/signature.ts';
import { anInstance } from './builders.ts';
import { epochOf, publicKey, storeLog } from './request-logs.ts';

const run = {
  id: 'r',
  publicKey: 'none',
  settings: { partsSigned: true, site: { intervalMs: 1_000, productUrl: 'http://shop.example/{id}' } },
} as RunRecord;
const BEGIN = ['process 0 2026-01-01T00:00:00.000Z', 'clock 0 0 4', 'host 0 0 shop.example'];

/** Stores a log with requests at these times. */
const store = (
  objects: MemoryObjectStore,
  times: readonly number[],
  { lines = times.map((ms) => `> ${ms} 0 p`), ...of }: Parameters<typeof storeLog>[2] & { lines?: string[] } = {},
): Promise<LogRef> => storeLog(objects, [...BEGIN, ...lines], of);

async function check(build: (objects: MemoryObjectStore) => Promise<ClosedEpoch[]>) {
  const objects = new MemoryObjectStore();
  const { proof, differences, notes } = await checkRequests({ run, objects }, await build(objects));
  return { proof, notes, checks: differences.map((difference) => difference.check), differences };
}

describe('the request logs of a run', () => {
  it('prove the gaps of each address', async () => {
    const found = await check(async (objects) => [
      epochOf([await store(objects, [0, 1_200]), await store(objects, [2_300], { seq: 1 })], 3),
      epochOf([await store(objects, [500, 3_000], { slot: 1 })], 2, { slot: 1 }),
    ]);
    expect(found).toMatchObject({ checks: [], notes: [] });
    expect(found.proof).toEqual({ logs: 3, logged: 5, unlogged: 0, smallestGapMs: 1_100, clocksMs: null });
  });

  it('name the gaps that are too short', async () => {
    const { differences, proof } = await check(async (objects) => [
      epochOf([await store(objects, [0, 999, 1_500])], 3),
    ]);
    expect(differences).toMatchObject([
      { check: 'no gap of an address is under the interval', found: '2 shorter ones' },
    ]);
    expect(differences[0]!.examples[0]).toBe(
      'slot 0 epoch 1: 999 ms at shop.example, 2026-01-01T00:00:00.999Z; at least 1000 ms are due',
    );
    expect(proof.smallestGapMs).toBe(501);
  });

  it.each([
    ['too short', 900, ['no gap of an address is under the interval'], []],
    ['not proved', 1_001, [], ['not proved: 1 gap between two processes whose clocks are not known well enough']],
    ['long enough', 1_100, [], []],
  ])('of two instances at one address: %s', async (_what, ms, checks, notes) => {
    const found = await check(async (objects) => [
      epochOf([await store(objects, [0])], 1),
      epochOf([await store(objects, [ms], { slot: 1 })], 1, {
        instance: anInstance(1, { epoch: 1, publicKey, address: '10.0.0.0' }),
      }),
    ]);
    expect(found).toMatchObject({ checks, notes });
    expect(found.proof.clocksMs).toBeGreaterThanOrEqual(6);
  });

  it.each([
    ['a request that is in none', 4],
    ['a request that was not counted', 2],
  ])('are compared with the count of the instance: %s', async (_what, requests) => {
    const found = await check(async (objects) => [epochOf([await store(objects, [0, 2_000, 4_000])], requests)]);
    expect(found.differences).toMatchObject([
      { check: 'every request is in a request log', examples: [`slot 0 epoch 1: ${requests} sent, 3 in the log`] },
    ]);
  });

  const SHORTER = /^not proved: 2 requests in no request log/;
  it.each<[string, Partial<ClosedEpoch>, RegExp]>([
    ['of a lost instance', { closedBy: 'main-server' }, SHORTER],
    ['of an instance with a damaged journal', { damaged: true }, SHORTER],
  ])('may lack the last requests %s, which is said', async (_what, change, note) => {
    const found = await check(async (objects) => [epochOf([await store(objects, [0])], 3, change)]);
    expect(found).toMatchObject({ checks: [], notes: [expect.stringMatching(note)], proof: { unlogged: 2 } });
  });

  it('are missed from an instance of an earlier version, which is said', async () => {
    const { requestLogs: _, ...earlier } = epochOf([], 7);
    const found = await check(async () => [earlier]);
    expect(found).toMatchObject({ checks: [], proof: { unlogged: 7, logs: 0 } });
    expect(found.notes).toEqual([
      expect.stringMatching(/of 0 lost instances since their last one and of 1 instance of an earlier/),
    ]);
  });

  it.each<[string, (objects: MemoryObjectStore, log: LogRef) => void, RegExp]>([
    ['that is not there', (objects, { key }) => objects.objects.delete(key), /not in the bucket/],
    ['that was changed', (objects, { key }) => objects.objects.set(key, Buffer.from('x')), /another hash/],
  ])('are incomplete without one %s', async (_what, spoil, fault) => {
    const found = await check(async (objects) => {
      const log = await store(objects, [0, 2_000]);
      spoil(objects, log);
      return [epochOf([log], 2)];
    });
    expect(found.checks).toEqual(['every request log of a manifest is whole']);
    expect(found.differences[0]!.examples[0]).toMatch(fault);
  });

  it.each([
    ['is not one', ['{"n":1}'], /no line of a request log/],
    ['does not name its host', ['> 1 7 p'], /before its process or host/],
  ])('are damaged where one %s', async (_what, lines, fault) => {
    const found = await check(async (objects) => [epochOf([await store(objects, [], { lines })], 1)]);
    expect(found.checks).toEqual(['every request log of a manifest is whole']);
    expect(found.differences[0]!.examples[0]).toMatch(fault);
  });

  it('of a lost instance count if it has signed them', async () => {
    const found = await check(async (objects) => {
      const own = await store(objects, [0]);
      const foreign = await store(objects, [10], { seq: 1, key: createKeyPair().privateKey });
      return [epochOf([own, foreign], 1, { closedBy: 'main-server' })];
    });
    expect(found).toMatchObject({ checks: [], proof: { logs: 1, logged: 1 } });
    expect(found.notes).toEqual([expect.stringMatching(/^ignored: 1 object named as a request log/)]);
  });
});
