/** Authorization of callbacks: invariant I9 over a real socket and a real database. */
import { describe, expect, it } from 'vitest';
import { keyDocumentKey } from '../../../../shared/domain/keys.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH } from '../../../../shared/wire/callbacks.ts';
import {
  createKeyPair,
  type Envelope,
  envelopeHeaders,
  exportPublicKey,
  HEADER,
  importPrivateKey,
  macMessage,
  signMessage,
} from '../../../../shared/wire/signature.ts';
import { foreignBody } from '../../../../orchestrator/core/callbacks/callbacks.ts';
import { KeyDocuments, readKeyDocument } from '../../../../orchestrator/core/act/results/key-documents.ts';
import { drainAtMs } from '../../../../orchestrator/core/model/run-deadlines.ts';
import type { CallbackStage } from './callback-stage.ts';
import { ALLOW_ALL } from '../../../unit/core/builders.ts';
import { useCallbackStage } from './use-callback-stage.ts';

describe('callbacks', () => {
  let stage: CallbackStage;
  const { ledger, expectRefused } = useCallbackStage((given) => (stage = given));

  describe('hello', () => {
    it('binds the key, makes the instance ready and wakes the loop; the reply is signed by the run', async () => {
      const caller = await stage.launched(0);
      const woken = stage.wakes();
      expect(await caller.hello()).toEqual({ status: 200, body: { ok: true }, authentic: true });
      const publicKey = exportPublicKey(caller.keys.publicKey);
      expect(await stage.record(caller)).toMatchObject({ phase: 'ready', publicKey, address: '127.1.0.1' });
      expect(stage.wakes()).toBeGreaterThan(woken);
    });

    it('has its key stored in the bucket, signed by the run; a write that fails is repeated by the next callback', async () => {
      const [caller, objects] = [await stage.launched(0), stage.objects];
      const key = keyDocumentKey(stage.run.id, { slot: 0, epoch: 1 });
      const puts: string[] = [];
      let refusals = 1;
      objects.onCall = (operation, name) => {
        if (operation !== 'put') return;
        puts.push(name);
        if (refusals-- > 0) throw new Error('SlowDown');
      };
      expect(await caller.hello()).toMatchObject({ status: 200 });
      expect([puts, objects.objects.has(key)]).toEqual([[key], false]);
      await stage.look();
      for (let i = 0; i < 3; i++) await caller.orders();
      expect(puts).toEqual([key, key]);
      const stored = await readKeyDocument(objects, stage.run, { slot: 0, epoch: 1 });
      expect(stored).toBe(exportPublicKey(caller.keys.publicKey));
      // For another place, or by another key, it proves nothing.
      objects.objects.set(keyDocumentKey(stage.run.id, { slot: 1, epoch: 1 }), objects.objects.get(key)!);
      expect(await readKeyDocument(objects, stage.run, { slot: 1, epoch: 1 })).toBeNull();
      const other = { ...stage.run, publicKey: exportPublicKey(createKeyPair().publicKey) };
      expect(await readKeyDocument(objects, other, { slot: 0, epoch: 1 })).toBeNull();
    });

    it('does not wait for a bucket that does not answer', async () => {
      const caller = await stage.launched(0);
      stage.objects.putIfAbsent = () => new Promise(() => {});
      expect(await caller.hello()).toMatchObject({ status: 200 });
    });

    it('names a foreign object in the place of its key, once; a later main server finds its own', async () => {
      const [first, second] = [await stage.launched(0), await stage.launched(1)];
      const planted = keyDocumentKey(stage.run.id, { slot: 1, epoch: 1 });
      stage.objects.objects.set(planted, Buffer.from('rubbish'));
      for (const caller of [first, second, second]) await caller.hello();
      await stage.look();
      const later = new KeyDocuments(stage.core, importPrivateKey(stage.run.privateKey));
      for (const caller of [first, second]) later.ensure(await stage.record(caller));
      await first.orders();
      expect(stage.core.alarms).toEqual([expect.stringContaining(`the object ${planted} is not from the main server`)]);
      expect(await readKeyDocument(stage.objects, stage.run, { slot: 1, epoch: 1 })).toBeNull();
    });

    it('is answered again when it is repeated with the same key, and changes nothing more', async () => {
      const caller = await stage.ready(0);
      const before = await ledger();
      expect(await caller.hello()).toMatchObject({ status: 200, authentic: true });
      expect(await ledger()).toEqual(before);
      expect(stage.core.alarms).toEqual([]);
    });

    it('is refused when it comes from another instance than EC2 launched', async () => {
      const caller = await stage.launched(0);
      await expectRefused(409, () => caller.hello({ instanceId: 'i-other' }));
      expect(stage.core.alarms).toHaveLength(1);
    });

    it('raises one alarm a minute, however often it is forged', async () => {
      const caller = await stage.launched(0);
      for (let i = 0; i < 5; i++) await expectRefused(401, () => caller.hello({}, 'f'.repeat(64)));
      expect(stage.core.alarms).toHaveLength(1);
      await stage.clock.advance(60_000);
      await caller.hello({}, 'f'.repeat(64));
      expect(stage.core.alarms).toHaveLength(2);
    });

    it('is refused when its token belongs to another slot', async () => {
      const [caller, other] = [await stage.launched(0), await stage.launched(1)];
      await expectRefused(401, () => caller.hello({}, other.options.token));
    });

    it('is refused when it was made for another slot, epoch, run or path', async () => {
      const caller = await stage.launched(0);
      await stage.launched(1);
      const own = caller.envelope(HELLO_PATH);
      const body = caller.helloBody();
      const mac = macMessage(caller.options.token, own, body);
      for (const [move, status] of [
        [{ slot: 1 }, 401],
        [{ slot: 7 }, 401],
        [{ epoch: 2 }, 401],
        [{ run: 'other' }, 401],
        [{ path: HEARTBEAT_PATH }, 400],
      ] satisfies [Partial<Envelope>, number][]) {
        await expectRefused(status, () => caller.post({ ...own, ...move }, body, mac));
      }
    });

    it('is postponed while the answer of RunInstances is not stored', async () => {
      const caller = await stage.claim(0);
      await expectRefused(425, () => caller.hello());
      await expectRefused(401, () => caller.hello({}, 'f'.repeat(64)));
      await stage.core.fleet.patch({ slot: 0, epoch: 1 }, { instanceId: 'i-0-1' });
      await expectRefused(425, () => caller.hello());
      await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'claimed', 'pending');
      expect(await caller.hello()).toMatchObject({ status: 200, authentic: true });
    });

    it('is refused permanently once the epoch is given up', async () => {
      const caller = await stage.launched(0);
      await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'pending', 'lost');
      await expectRefused(409, () => caller.hello());
    });

    it('is accepted from an address that EC2 does not show, with one alarm for each such address', async () => {
      const sayFrom = async (source: string, slot: number) => {
        const caller = await stage.launched(slot);
        await stage.core.fleet.patch({ slot, epoch: 1 }, { address: `198.51.100.${slot}` });
        const own = caller.envelope(HELLO_PATH);
        const body = caller.helloBody();
        const signature = macMessage(caller.options.token, own, body);
        const place = { run: own.run, slot, epoch: 1, counter: null, signature, source };
        return (await stage.callbacks.hello({ ...place, body: async () => foreignBody(Buffer.from(body)) })).status;
      };
      expect(await sayFrom('198.51.100.0', 0)).toBe(200);
      expect(stage.core.alarms).toEqual([]);
      expect([await sayFrom('203.0.113.9', 1), await sayFrom('203.0.113.9', 2)]).toEqual([200, 200]);
      expect(stage.core.alarms).toEqual([
        expect.stringContaining('the hello of i-1-1 came from 203.0.113.9, but EC2 shows 198.51.100.1 for it'),
      ]);
    });

    it('reports a clock that is far off, and still accepts the instance', async () => {
      const caller = await stage.launched(0);
      const clock = new Date(stage.clock.now() - 90_000).toISOString();
      expect(await caller.hello({ clock })).toMatchObject({ status: 200 });
      expect(stage.core.alarms).toEqual(['the clock of i-0-1 is -90 s off']);
    });

    it('is malformed without a usable public key', async () => {
      const caller = await stage.launched(0);
      await expectRefused(400, () => caller.hello({ publicKey: 'rubbish' }));
    });
  });

  describe('heartbeat', () => {
    it('stores the report of the instance and answers with orders signed over its counter', async () => {
      const caller = await stage.ready(0);
      await stage.clock.advance(1_234);
      const orders = await caller.orders({ pending: 3, problem: 'disk full' });
      expect(orders).toEqual({
        grants: [],
        drops: [],
        transfer: [],
        transferredAck: [],
        maxProducts: null,
        returnProducts: false,
        robots: ALLOW_ALL,
        verdict: null,
        canaryPage: null,
        sealed: false,
        drain: false,
        fenced: false,
        partsAck: -1,
        intervalMs: stage.run.settings.site.intervalMs,
        deadline: new Date(drainAtMs(stage.run)).toISOString(),
      });
      expect(await stage.record(caller)).toMatchObject({
        counter: 1,
        lastHeartbeatAtMs: stage.clock.now(),
        progress: { pending: 3 },
        problem: 'disk full',
      });
    });

    it('answers with its clock those that understand it', async () => {
      const caller = await stage.ready(0);
      await stage.clock.advance(1_234);
      const clock = new Date(stage.clock.now()).toISOString();
      expect(await caller.orders({ understands: ['clock', 'what a later version has'] })).toMatchObject({ clock });
      expect(await caller.orders({ understands: [] })).not.toHaveProperty('clock');
    });

    it('raises an alarm for a new problem once', async () => {
      const caller = await stage.ready(0);
      for (const problem of ['disk full', 'disk full', null, 'disk full']) await caller.orders({ problem });
      expect(stage.core.alarms).toEqual(['slot 0: disk full', 'slot 0: disk full']);
    });

    it('is refused before hello', async () => {
      const caller = await stage.launched(0);
      await expectRefused(401, () => caller.heartbeat());
    });

    it('is refused unsigned, by another key, or with a changed body', async () => {
      const caller = await stage.ready(0);
      const body = caller.heartbeatBody();
      const envelope = caller.envelope(HEARTBEAT_PATH, 5);
      const { [HEADER.signature]: _none, ...unsigned } = envelopeHeaders(envelope, '');
      await expectRefused(400, () => caller.send(envelope, body, unsigned));
      await expectRefused(401, () => caller.post(envelope, body, 'rubbish'));
      const foreign = signMessage(createKeyPair().privateKey, envelope, body);
      await expectRefused(401, () => caller.post(envelope, body, foreign));
      const mac = macMessage(caller.options.token, envelope, body);
      await expectRefused(401, () => caller.post(envelope, body, mac));
      const own = signMessage(caller.keys.privateKey, envelope, body);
      await expectRefused(401, () => caller.post(envelope, body.replace('"pending":1', '"pending":0'), own));
      expect(await caller.post(envelope, body, own)).toMatchObject({ status: 200, authentic: true });
    });

    it('is refused when it is moved to another path, slot, epoch, run or counter', async () => {
      const caller = await stage.ready(0);
      await stage.ready(1);
      await stage.ready(0, 2);
      const body = caller.heartbeatBody();
      const own = caller.envelope(HEARTBEAT_PATH, 5);
      const signature = signMessage(caller.keys.privateKey, own, body);
      for (const [move, status] of [
        [{ path: COMPLETION_PATH }, 401],
        [{ slot: 1 }, 401],
        [{ epoch: 2 }, 401],
        [{ epoch: 3 }, 401],
        [{ run: 'other' }, 401],
        [{ counter: 6 }, 401],
      ] satisfies [Partial<Envelope>, number][]) {
        await expectRefused(status, () => caller.post({ ...own, ...move }, body, signature));
      }
    });

    it('is refused with a counter that has been used, or a lower one', async () => {
      const caller = await stage.ready(0);
      const body = caller.heartbeatBody({ offered: ['1-1'] });
      const beat = (counter: number) => {
        const envelope = caller.envelope(HEARTBEAT_PATH, counter);
        return caller.post(envelope, body, signMessage(caller.keys.privateKey, envelope, body));
      };
      expect(await beat(7)).toMatchObject({ status: 200 });
      await stage.clock.advance(10);
      await expectRefused(409, () => beat(7));
      await expectRefused(409, () => beat(3));
      expect(await beat(8)).toMatchObject({ status: 200 });
    });

    it('of a given-up epoch is answered with a fence, and changes nothing', async () => {
      const caller = await stage.ready(0);
      await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost');
      await stage.look();
      const before = await stage.core.fleet.get({ slot: 0, epoch: 1 });
      const orders = await caller.orders({ offered: ['1-1'], parts: [caller.part(0)], problem: 'x', pending: 7 });
      expect(orders).toMatchObject({ fenced: true, grants: [], drops: ['1-1'], partsAck: -1 });
      expect(await stage.core.fleet.get({ slot: 0, epoch: 1 })).toEqual(before);
      expect(await stage.core.results.parts()).toEqual([]);
      expect(await stage.core.work.counts()).toMatchObject({ granted: 0 });
    });

    it('returns transferred chunks to the queue once, however often it lists them', async () => {
      const caller = await stage.ready(0);
      await caller.orders({ offered: ['1-1', '2-1'] });
      for (let i = 0; i < 2; i++) {
        const orders = await caller.orders({ transferred: ['2-1', '7-7'], pending: 1 });
        expect(orders).toMatchObject({ transferredAck: ['2-1', '7-7'], sealed: false });
        const waiting = await stage.core.work.waiting(99, new Set());
        expect(waiting.map((c) => c.id)).toContain('2-2');
        expect(waiting.map((c) => c.id)).not.toContain('1-2');
      }
      const told = await stage.core.run.events(50);
      expect(told.filter((e) => e.kind === 'chunk')).toHaveLength(1);
    });

    it('of an old epoch is answered with a fence as soon as the slot has a newer one', async () => {
      const caller = await stage.ready(0);
      await stage.claim(0, 2);
      await stage.look();
      const orders = await caller.orders({ offered: ['1-1'], parts: [caller.part(0)], pending: 0 });
      expect(orders).toMatchObject({ fenced: true, grants: [], partsAck: -1 });
      expect(await stage.core.results.parts()).toEqual([]);
      expect(await stage.record(caller)).toMatchObject({ sealed: false });
    });

    it('orders every instance to drain when a person requests a stop', async () => {
      const caller = await stage.ready(0);
      await stage.core.run.setRequest('stop');
      expect(await caller.orders()).toMatchObject({ drain: true, sealed: true, fenced: false });
    });
  });
});
