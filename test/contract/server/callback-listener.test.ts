/** The call-back listener itself: sizes, shapes, headers, routes, and what it says when it cannot answer. */
import { describe, expect, it } from 'vitest';
import type { Heartbeat } from '../../../shared/wire/callbacks.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH, MAX_CALLBACK_BYTES } from '../../../shared/wire/callbacks.ts';
import { HEADER, envelopeHeaders, macMessage, signMessage } from '../../../shared/wire/signature.ts';
import type { CallbackStage } from './callback-stage.ts';
import { useCallbackStage } from './use-callback-stage.ts';

describe('the call-back listener', () => {
  let stage: CallbackStage;
  const { expectRefused } = useCallbackStage((given) => (stage = given));

  it('refuses bodies that are too large before it looks at their signature', async () => {
    const caller = await stage.ready(0);
    const problem = 'x'.repeat(MAX_CALLBACK_BYTES);
    await expectRefused(413, () => caller.signed(HEARTBEAT_PATH, JSON.stringify({ problem })));
    expect(stage.core.alarms).toEqual([]);
  });

  it.each([
    ['no JSON', '{"phase":'],
    ['nothing', ''],
    ['another shape', '{"phase":"crawling"}'],
    ['a field too many', null],
  ])('refuses a signed body that is %s', async (_what, text) => {
    const caller = await stage.ready(0);
    const body = text ?? caller.heartbeatBody({ extra: 1 } as Partial<Heartbeat>);
    await expectRefused(400, () => caller.signed(HEARTBEAT_PATH, body));
    await expectRefused(400, () => caller.signed(COMPLETION_PATH, text ?? '{"extra":1}'));
  });

  it('refuses a hello that is well MACed but malformed', async () => {
    const caller = await stage.launched(0);
    const envelope = caller.envelope(HELLO_PATH);
    for (const body of ['{"instanceId":', '{}', caller.helloBody({ clock: 'yesterday' })])
      await expectRefused(400, () => caller.post(envelope, body, macMessage(caller.options.token, envelope, body)));
  });

  it.each([HEADER.run, HEADER.slot, HEADER.epoch, HEADER.counter, HEADER.signature])(
    'refuses a heartbeat without %s',
    async (header) => {
      const caller = await stage.ready(0);
      const body = caller.heartbeatBody();
      const envelope = caller.envelope(HEARTBEAT_PATH, 5);
      const { [header]: _left, ...headers } = envelopeHeaders(
        envelope,
        signMessage(caller.keys.privateKey, envelope, body),
      );
      await expectRefused(400, () => caller.send(envelope, body, headers));
    },
  );

  it.each(['-1', '1.5', '0x1', '1e3', '9'.repeat(17), 'NaN', '9007199254740993'])(
    'refuses the counter %s',
    async (counter) => {
      const caller = await stage.ready(0);
      const headers = { ...envelopeHeaders(caller.envelope(HEARTBEAT_PATH, 5), 'x'), [HEADER.counter]: counter };
      await expectRefused(400, () => caller.send(caller.envelope(HEARTBEAT_PATH, 5), '{}', headers));
    },
  );

  it('has no other routes, says nothing of its own make, and takes only POST', async () => {
    const reply = await fetch(`${stage.baseUrl}/v1/instances/other`, { method: 'POST', body: '{}' });
    expect(reply.status).toBe(404);
    expect(await reply.json()).toEqual({ ok: false, error: 'no such route' });
    expect(reply.headers.get('x-powered-by')).toBeNull();
    expect((await fetch(stage.baseUrl + HELLO_PATH)).status).toBe(404);
  });

  it('says "try again" and no more when the database fails', async () => {
    const caller = await stage.ready(0);
    stage.core.fleet = new Proxy(stage.core.fleet, {
      get: () => () => Promise.reject(new Error('secret of the database')),
    });
    const answer = await caller.heartbeat();
    expect(answer).toEqual({ status: 500, body: { ok: false, error: 'try again' }, authentic: false });
  });

  it('answers 503 before the loop has seen the world, and the next heartbeat is as good', async () => {
    const caller = await stage.ready(0);
    const run = stage.core.runs;
    stage.core.runs = new Proxy(run, {
      get: (target, name) => (name === 'get' ? () => Promise.resolve(null) : Reflect.get(target, name, target)),
    });
    expect(await caller.heartbeat({ offered: ['1-1'] })).toMatchObject({ status: 503, authentic: false });
    stage.core.runs = run;
    expect(await caller.orders({ offered: ['1-1'] })).toMatchObject({ grants: ['1-1'] });
  });
});
