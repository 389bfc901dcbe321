/** What callbacks change: grants, parts and completions, each once (invariants I8 and I10). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { manifestKey } from '../../../../shared/domain/keys.ts';
import { COMPLETION_PATH, type Heartbeat } from '../../../../shared/wire/callbacks.ts';
import { createKeyPair, signMessage } from '../../../../shared/wire/signature.ts';
import { eachEngine } from '../../../support/mariadb/database.ts';
import { type Base, openBase } from '../run-stage.ts';
import { type CallbackStage, openCallbackStage } from './callback-stage.ts';
import { useCallbackStage } from './use-callback-stage.ts';

describe('callbacks', () => {
  let stage: CallbackStage;
  const { ledger, expectRefused } = useCallbackStage((given) => (stage = given));

  describe('grants', () => {
    it('grants an offered chunk to its holder, once', async () => {
      const caller = await stage.ready(0);
      expect(await caller.orders({ offered: ['1-1', '2-1'] })).toMatchObject({ grants: ['1-1', '2-1'], drops: [] });
      // The reply may have been lost: a repeated request gets the same answer.
      expect(await caller.orders({ offered: ['1-1', '2-1'] })).toMatchObject({ grants: ['1-1', '2-1'], drops: [] });
      expect(await stage.core.work.counts()).toMatchObject({ granted: 2, waiting: 8 });
    });

    it('drops chunks beyond the even share', async () => {
      const caller = await stage.ready(0);
      const offered = Array.from({ length: 8 }, (_, i) => `${i + 1}-1`);
      const orders = await caller.orders({ offered });
      expect(orders.grants).toEqual(offered.slice(0, 5));
      expect(orders.drops).toEqual(offered.slice(5));
    });

    it('drops a chunk of an old generation, an unknown one and rubbish', async () => {
      const caller = await stage.ready(0);
      const offered = ['1-2', '99-1', 'rubbish', '2-1'];
      expect(await caller.orders({ offered })).toMatchObject({ grants: ['2-1'], drops: ['1-2', '99-1', 'rubbish'] });
    });

    it('lets a dropped chunk be offered again at once', async () => {
      const [a, b] = [await stage.ready(0), await stage.ready(1)];
      const sent: string[] = [];
      stage.core.offers = {
        send: (_url, _run, offer) => {
          sent.push(offer.chunk);
          const at = { run: stage.run.id, slot: 0, epoch: 1, instanceId: 'i-0-1', held: 1 };
          return Promise.resolve({ kind: 'taken', receipt: { chunk: offer.chunk, ...at } });
        },
      };
      const record = (await stage.core.run.get())!;
      const balancers = [{ url: 'http://127.0.0.1:1', healthy: 2 }];
      const round = { heartbeatMs: 500, balancers, targets: 2, signal: new AbortController().signal };
      const pump = () => stage.dispatcher.pump(record, 5, round);
      await pump();
      expect(sent).toHaveLength(10);
      await a.orders({ offered: ['1-1', '2-1', '3-1', '4-1', '5-1', '6-1'] });
      await b.orders({ offered: ['7-1'] });
      sent.length = 0;
      await pump();
      expect(sent).toEqual(['6-1']);
    });

    it('seals an idle instance only when no chunk waits for an owner', async () => {
      const [a, b] = [await stage.ready(0), await stage.ready(1)];
      expect(await a.orders({ pending: 0 })).toMatchObject({ sealed: false });
      await a.orders({ offered: [1, 2, 3, 4, 5].map((i) => `${i}-1`) });
      await b.orders({ offered: [6, 7, 8, 9].map((i) => `${i}-1`) });
      expect(await a.orders({ pending: 0 })).toMatchObject({ sealed: false });
      expect(await b.orders({ offered: ['10-1'], pending: 0 })).toMatchObject({ grants: ['10-1'], sealed: false });
      expect(await b.orders({ pending: 2 })).toMatchObject({ sealed: false });
      expect((await stage.record(a)).sealed).toBe(false);
      expect(await a.orders({ pending: 0 })).toMatchObject({ sealed: true });
      expect((await stage.record(a)).sealed).toBe(true);
    });
  });

  describe('parts', () => {
    it('are entered into the ledger and acknowledged, even behind a gap in their numbers', async () => {
      const caller = await stage.ready(0);
      expect(await caller.orders({ parts: [] })).toMatchObject({ partsAck: -1 });
      expect(await caller.orders({ parts: [caller.part(0), caller.part(1)] })).toMatchObject({ partsAck: 1 });
      expect(await caller.orders({ parts: [caller.part(1_002)] })).toMatchObject({ partsAck: 1_002 });
      expect(await caller.orders({ parts: [caller.part(1_002), caller.part(1_003)] })).toMatchObject({
        partsAck: 1_003,
      });
      const known = await stage.core.results.parts();
      expect(known.map((p) => [p.seq, p.key, p.state])).toEqual(
        [0, 1, 1_002, 1_003].map((seq) => [seq, caller.part(seq).key, 'seen']),
      );
    });

    it('are not entered under a key that is not their own', async () => {
      const [caller, other] = [await stage.ready(0), await stage.ready(1)];
      const own = caller.part(0);
      const foreign: Heartbeat['parts'] = [
        { ...own, key: other.part(0).key },
        { ...own, key: own.key.replace('/0/1/', '/0/2/') },
        { ...own, key: own.key.replace(stage.run.id, 'other-run') },
        { ...own, key: `${own.key}/../x` },
        { ...own, seq: 1 },
        { ...own, sha256: 'f'.repeat(64) },
      ];
      for (const part of foreign) expect(await caller.orders({ parts: [part] })).toMatchObject({ partsAck: -1 });
      expect(await stage.core.results.parts()).toEqual([]);
      // Nothing behind it either: an acknowledgement covers all up to a number.
      const parts = [own, foreign[1]!, caller.part(2)];
      expect(await caller.orders({ parts })).toMatchObject({ partsAck: 0 });
      expect((await stage.core.results.parts()).map((p) => p.seq)).toEqual([0]);
    });
  });

  describe('completion', () => {
    const sha = 'c'.repeat(64);

    it('records the manifest, wakes the loop and is answered; a repeat changes nothing', async () => {
      const caller = await stage.ready(0);
      const key = manifestKey(stage.run.id, 0, 1);
      const woken = stage.wakes();
      expect(await caller.complete({ manifestKey: key, manifestSha256: sha })).toEqual({
        status: 200,
        body: { ok: true },
        authentic: true,
      });
      expect(await stage.record(caller)).toMatchObject({ phase: 'ready', manifestKey: key, manifestSha256: sha });
      expect(stage.wakes()).toBeGreaterThan(woken);
      const before = await ledger();
      expect(await caller.complete({ manifestKey: key, manifestSha256: 'd'.repeat(64) })).toMatchObject({
        status: 200,
      });
      expect(await ledger()).toEqual(before);
    });

    it('is refused with the manifest of another slot, epoch or run', async () => {
      const caller = await stage.ready(0);
      for (const key of [
        manifestKey(stage.run.id, 1, 1),
        manifestKey(stage.run.id, 0, 2),
        manifestKey('other', 0, 1),
        caller.part(0).key,
      ]) {
        await expectRefused(400, () => caller.complete({ manifestKey: key, manifestSha256: sha }));
      }
    });

    it('is refused unsigned, by another key, or with an old counter', async () => {
      const caller = await stage.ready(0);
      for (let i = 0; i < 3; i++) await caller.orders();
      const body = JSON.stringify({ manifestKey: manifestKey(stage.run.id, 0, 1), manifestSha256: sha });
      const envelope = caller.envelope(COMPLETION_PATH, 9);
      const foreign = signMessage(createKeyPair().privateKey, envelope, body);
      await expectRefused(401, () => caller.post(envelope, body, foreign));
      const past = caller.envelope(COMPLETION_PATH, 2);
      const own = signMessage(caller.keys.privateKey, past, body);
      await expectRefused(409, () => caller.post(past, body, own));
    });

    it('of a given-up epoch is answered, so that the instance can end, and changes nothing', async () => {
      const caller = await stage.ready(0);
      await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost');
      const before = await ledger();
      const answer = await caller.complete({ manifestKey: manifestKey(stage.run.id, 0, 1), manifestSha256: sha });
      expect(answer).toMatchObject({ status: 200, authentic: true });
      expect(await ledger()).toEqual(before);
    });
  });

  it('refuses a completion of an instance that is given up while the request is read', async () => {
    const caller = await stage.ready(0);
    const { fleet } = stage.core;
    let looks = 0;
    stage.core.fleet = new Proxy(fleet, {
      get: (target, name) => {
        const method = (Reflect.get(target, name, target) as (...args: unknown[]) => Promise<unknown>).bind(target);
        return async (...args: unknown[]) => {
          const result = await method(...args);
          if (name === 'get' && ++looks === 1)
            await fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost', { reason: 'heartbeat-lost' });
          return result;
        };
      },
    });
    await caller.complete({ manifestKey: manifestKey(stage.run.id, 0, 1), manifestSha256: 'c'.repeat(64) });
    // Otherwise its parts in the bucket would never be loaded and its products never reassigned.
    expect(await stage.record(caller)).toMatchObject({ phase: 'lost', manifestKey: null, manifestSha256: null });
  });
});

eachEngine('grants through callbacks', (database) => {
  let base: Base;
  let stage: CallbackStage;
  beforeAll(async () => {
    base = await openBase(database());
  });
  afterAll(() => base?.db.close());
  beforeEach(async () => {
    stage = await openCallbackStage(base, { products: 60, instances: 5, chunkSize: 3 });
  });
  afterEach(() => stage.close());

  it('give each chunk to exactly one of many instances that hold it, and no instance more than its share', async () => {
    const callers = [];
    for (let slot = 0; slot < 5; slot++) callers.push(await stage.ready(slot));
    const all = Array.from({ length: 20 }, (_, i) => `${i + 1}-1`);
    const replies = await Promise.all(
      callers.map((caller, i) => caller.orders({ offered: [...all.slice(i * 4), ...all.slice(0, i * 4)] })),
    );
    const granted = replies.flatMap((r) => r.grants);
    expect(granted).toHaveLength(20);
    expect([...granted].sort()).toEqual([...all].sort());
    for (const reply of replies) {
      expect(reply.grants).toHaveLength(4);
      expect([...reply.grants, ...reply.drops].sort()).toEqual([...all].sort());
    }
    const { bySlot, waiting } = await stage.core.work.counts();
    expect(waiting).toBe(0);
    expect(bySlot.map((s) => [s.slot, s.chunks])).toEqual([0, 1, 2, 3, 4].map((slot) => [slot, 4]));
  });
});
