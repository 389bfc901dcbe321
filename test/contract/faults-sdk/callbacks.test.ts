/** F11 and F39 over real HTTP: callbacks that are replayed, duplicated, lost or reordered. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { manifestKey } from '../../../shared/domain/keys.ts';
import { HEARTBEAT_PATH } from '../../../shared/wire/callbacks.ts';
import { createKeyPair, exportPublicKey, signMessage } from '../../../shared/wire/signature.ts';
import type { CallbackStage } from '../core/server/callback-stage.ts';
import type { Caller } from '../core/server/caller.ts';
import { useCallbackStage } from '../core/server/use-callback-stage.ts';

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
  });

  it('F39: a heartbeat that arrives five times counts once', async () => {
    const caller = await stage.ready(0);
    const message = heartbeat(caller, 1, { offered: ['1-1'], parts: [caller.part(0)] });
    const answers = await Promise.all([1, 2, 3, 4, 5].map(message));
    expect(answers.filter((a) => a.status === 200)).toHaveLength(1);
    expect(await stage.core.work.counts()).toMatchObject({ granted: 1 });
    expect(await stage.core.results.parts()).toHaveLength(1);
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
