/** Secrets in the replies to heartbeats: to whom they go, and encrypted to which key. */
import { sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RunSecrets } from '../../../../orchestrator/core/callbacks/run-secrets.ts';
import type { Hello } from '../../../../shared/wire/callbacks.ts';
import { createSecretsKey, decryptSecrets, secretsKeyText, type Secrets } from '../../../../shared/wire/secrets.ts';
import { createKeyPair, exportPublicKey } from '../../../../shared/wire/signature.ts';
import type { CallbackStage } from './callback-stage.ts';
import type { Caller } from './caller.ts';
import { useCallbackStage } from './use-callback-stage.ts';

const MARKED = 'marked-secret-5c1d';
const SECRETS: Secrets = { values: { '${A}': MARKED }, masked: [MARKED] };

describe('secrets of the site', () => {
  let stage: CallbackStage;
  const { expectRefused } = useCallbackStage((given) => {
    stage = given;
    const { run, clock, core } = given;
    core.secrets = new RunSecrets({ runId: run.id, clock, alarm: (detail) => core.alarm(detail), read: () => SECRETS });
  });

  const recipient = ({ options }: Caller) => ({ run: stage.run.id, slot: options.slot, epoch: options.epoch });
  const signedKeyOf = (caller: Caller, key: string, signer = caller.keys): Partial<Hello> => ({
    secretsKey: key,
    secretsKeySignature: sign(null, secretsKeyText(key, recipient(caller)), signer.privateKey).toString('base64'),
  });
  const secretsFor = async (caller: Caller, has: string | null = null) =>
    (await caller.orders({ secrets: has })).secrets;

  it('come with the next reply, encrypted to the key of the hello, until the instance has them', async () => {
    const [caller, key] = [await stage.launched(0), createSecretsKey()];
    expect((await caller.hello(signedKeyOf(caller, key.key))).status).toBe(200);
    await stage.look();
    const answer = await caller.heartbeat({ secrets: null });
    expect(JSON.stringify(answer)).not.toContain(MARKED);
    const { version, encrypted } = answer.body.secrets as { version: string; encrypted: string };
    expect(answer.authentic).toBe(true);
    expect(decryptSecrets(encrypted, key, recipient(caller))).toEqual(SECRETS);
    expect(await secretsFor(caller, version)).toBeUndefined();
  });

  it('go to the key of its latest process, also by another main server', async () => {
    const [caller, first, second] = [await stage.launched(0), createSecretsKey(), createSecretsKey()];
    for (const { key } of [first, second]) await caller.hello(signedKeyOf(caller, key));
    await stage.look();
    const { encrypted } = (await secretsFor(caller))!;
    expect(decryptSecrets(encrypted, first, recipient(caller))).toBeNull();
    expect(decryptSecrets(encrypted, second, recipient(caller))).toEqual(SECRETS);
    expect((await stage.record(caller)).secretsKey).toBe(second.key);
  });

  it('do not go to who has the token alone: the key needs the signature of the instance', async () => {
    const [caller, stolen] = [await stage.launched(0), createSecretsKey()];
    await caller.hello(signedKeyOf(caller, createSecretsKey().key));
    const thief = createKeyPair();
    const unsigned = { secretsKey: stolen.key };
    for (const named of [signedKeyOf(caller, stolen.key, thief), signedKeyOf(caller, 'AAAA'), unsigned])
      await expectRefused(400, () => caller.hello(named));
    const publicKey = exportPublicKey(thief.publicKey);
    await expectRefused(409, () => caller.hello({ publicKey, ...signedKeyOf(caller, stolen.key, thief) }));
    await stage.look();
    expect(decryptSecrets((await secretsFor(caller))!.encrypted, stolen, recipient(caller))).toBeNull();
  });

  it('are not encrypted for another slot than that of the heartbeat', async () => {
    const [one, other, key] = [await stage.launched(0), await stage.launched(1), createSecretsKey()];
    for (const caller of [one, other]) await caller.hello(signedKeyOf(caller, key.key));
    await stage.look();
    expect(decryptSecrets((await secretsFor(one))!.encrypted, key, recipient(other))).toBeNull();
  });

  it('are in no reply of an instance that has named no key', async () => {
    const caller = await stage.ready(0);
    expect(await secretsFor(caller)).toBeUndefined();
  });
});
