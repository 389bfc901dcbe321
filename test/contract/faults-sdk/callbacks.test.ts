/** F11, F12 and F39 over real HTTP: callbacks that are forged, replayed, late, reordered, or from a wrong clock. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { manifestKey } from '../../../shared/domain/keys.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH } from '../../../shared/wire/callbacks.ts';
import type { Envelope } from '../../../shared/wire/signature.ts';
import { createKeyPair, exportPublicKey, signMessage } from '../../../shared/wire/signature.ts';
import type { CallbackStage } from '../server/callback-stage.ts';
import type { Caller } from '../server/caller.ts';
import { useCallbackStage } from '../server/use-callback-stage.ts';

const SKEW_MS = 20 * 60_000;
const SHA = 'c'.repeat(64);

describe('callbacks over HTTP', () => {
  let stage: CallbackStage;
  const { expectRefused } = useCallbackStage((given) => (stage = given));

  describe('an enrolment token', () => {
    it('F11: is valid for one instance and one key: a second use is refused, with an alarm', async () => {
      const caller = await stage.ready(0);
      const { publicKey } = await stage.record(caller);
      const stolen = exportPublicKey(createKeyPair().publicKey);
      await expectRefused(409, () => caller.hello({ publicKey: stolen }));
      await expectRefused(409, () => caller.hello({ publicKey: stolen, instanceId: 'i-thief' }));
      expect(await stage.record(caller)).toMatchObject({ publicKey, instanceId: 'i-0-1', phase: 'ready' });
      expect(stage.core.alarms.length).toBeGreaterThan(0);
    });

    it('F11: is refused from an instance that EC2 did not launch for it, or for another slot', async () => {
      const [caller, other] = [await stage.launched(0), await stage.launched(1)];
      await expectRefused(409, () => caller.hello({ instanceId: 'i-wrong' }));
      await expectRefused(401, () => caller.hello({}, other.options.token));
      expect(await caller.hello()).toMatchObject({ status: 200, authentic: true });
    });
  });

  it.each([-SKEW_MS, SKEW_MS])(
    'F12: a clock that is %i ms off is reported, and only our own time counts',
    async (skewMs) => {
      const caller = await stage.launched(0);
      const clock = (): string => new Date(stage.clock.now() + skewMs).toISOString();
      expect(await caller.hello({ clock: clock() })).toMatchObject({ status: 200 });
      expect(stage.core.alarms).toEqual([`the clock of i-0-1 is ${skewMs / 1_000} s off`]);
      await stage.look();
      await stage.clock.advance(2_500);
      const orders = await caller.orders({ clock: clock(), offered: ['1-1'] });
      expect(orders).toMatchObject({ grants: ['1-1'], fenced: false, drain: false });
      const { lastHeartbeatAtMs } = await stage.record(caller);
      expect(lastHeartbeatAtMs).toBe(stage.clock.now());
    },
  );

  it('F39: a heartbeat that arrives five times counts once', async () => {
    const caller = await stage.ready(0);
    const message = heartbeat(caller, 1, { offered: ['1-1'], parts: [caller.part(0)] });
    const answers = await Promise.all([1, 2, 3, 4, 5].map(message));
    expect(answers.filter((a) => a.status === 200)).toHaveLength(1);
    expect(await stage.core.work.counts()).toMatchObject({ granted: 1 });
    expect(await stage.core.results.parts()).toHaveLength(1);
  });

  it('F39: one that arrives half an hour late changes nothing, and the next one is accepted', async () => {
    const caller = await stage.ready(0);
    const late = heartbeat(caller, 1, { offered: ['9-1'], pending: 9 });
    await heartbeat(caller, 2, { offered: ['1-1'], pending: 1 })();
    await stage.clock.advance(30 * 60_000);
    await expectRefused(409, () => late());
    expect((await stage.record(caller)).progress).toMatchObject({ pending: 1 });
    expect(await heartbeat(caller, 3, { offered: ['1-1'] })()).toMatchObject({ status: 200, authentic: true });
  });

  it('F39: one of an epoch that is given up only fences, however late', async () => {
    const caller = await stage.ready(0);
    await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost');
    await stage.look();
    expect((await heartbeat(caller, 1, { offered: ['1-1'], parts: [caller.part(0)] })()).body).toMatchObject({
      fenced: true,
      grants: [],
      partsAck: -1,
    });
    expect(await stage.core.results.parts()).toEqual([]);
  });

  it('F39: forged ones change nothing: another key, path or slot, a changed body, a completion for another slot', async () => {
    const [caller, other] = [await stage.ready(0), await stage.ready(1)];
    const body = caller.heartbeatBody({ offered: ['1-1'] });
    const own = caller.envelope(HEARTBEAT_PATH, 5);
    const signature = signMessage(caller.keys.privateKey, own, body);
    const foreign = signMessage(other.keys.privateKey, own, body);
    const moved: Partial<Envelope>[] = [{ slot: 1 }, { path: COMPLETION_PATH }, { counter: 6 }];
    await expectRefused(401, () => caller.post(own, body, foreign));
    await expectRefused(401, () => caller.post(own, body.replace('1-1', '2-1'), signature));
    for (const move of moved) await expectRefused(401, () => caller.post({ ...own, ...move }, body, signature));
    await expectRefused(401, () => caller.post({ ...own, path: HELLO_PATH }, body, signature));
    await expectRefused(400, () =>
      caller.complete({ manifestKey: manifestKey(stage.run.id, 1, 1), manifestSha256: SHA }),
    );
  });

  it.each([1, 2, 3, 4])('F39: any order, any duplication, any loss ends in the same state (seed %i)', async (seed) => {
    const caller = await stage.ready(0);
    const random = seededRandom(seed);
    const messages = [
      heartbeat(caller, 1, { offered: ['1-1'] }),
      heartbeat(caller, 2, { offered: ['1-1', '2-1'], parts: [caller.part(0)] }),
      heartbeat(caller, 3, { parts: [caller.part(0), caller.part(1)], pending: 2 }),
      heartbeat(caller, 4, { parts: [caller.part(1)], pending: 0 }),
    ];
    const storm = messages
      .flatMap((message) => [message, message, message])
      .filter(() => random.next() > 0.3)
      .map((message) => ({ message, at: random.next() }))
      .sort((a, b) => a.at - b.at);
    for (const { message } of storm) await message();
    // Every heartbeat of the instance lists everything it holds: nothing that was lost stays lost.
    await heartbeat(caller, 5, {
      offered: ['1-1', '2-1'],
      parts: [caller.part(0), caller.part(1)],
      pending: 0,
    })();
    const completion = { manifestKey: manifestKey(stage.run.id, 0, 1), manifestSha256: SHA };
    caller.counter = 5;
    for (let i = 0; i < 3; i++) expect((await caller.complete(completion)).status).toBe(200);
    expect(await stage.record(caller)).toMatchObject({ phase: 'ready', ...completion, progress: { pending: 0 } });
    expect((await stage.core.results.parts()).map((p) => p.seq)).toEqual([0, 1]);
    expect(await stage.core.work.counts()).toMatchObject({ granted: 2 });
    expect(stage.core.alarms).toEqual([]);
  });
});

/** A heartbeat signed now, to be sent at any later time, any number of times. */
function heartbeat(caller: Caller, counter: number, change: Parameters<Caller['heartbeatBody']>[0]) {
  const body = caller.heartbeatBody(change);
  const envelope = caller.envelope(HEARTBEAT_PATH, counter);
  const signature = signMessage(caller.keys.privateKey, envelope, body);
  return () => caller.post(envelope, body, signature);
}
