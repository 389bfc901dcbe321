/** What a main server hands to the instances of a run whose site needs secrets. */
import { describe, expect, it } from 'vitest';
import { RunSecrets } from '../../../orchestrator/core/callbacks/run-secrets.ts';
import { createSecretsKey, decryptSecrets, type Secrets } from '../../../shared/wire/secrets.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const AT = { slot: 1, epoch: 2 };
const RECIPIENT = { ...AT, run: 'r' };
const secretsOf = (value: string): Secrets => ({ values: { '${A}': value }, masked: [value] });

function stage() {
  const clock = new VirtualClock(0);
  const alarms: string[] = [];
  const source = { value: 'first' as string | null, reads: 0 };
  const read = (): Secrets => {
    source.reads++;
    if (source.value === null) throw new Error('the variable A is not set');
    return secretsOf(source.value);
  };
  const alarm = (detail: string): Promise<void> => {
    alarms.push(detail);
    return Promise.resolve();
  };
  return { clock, alarms, source, secrets: new RunSecrets({ runId: 'r', read, clock, alarm }) };
}

describe('RunSecrets', () => {
  const key = createSecretsKey();
  const record = { ...AT, secretsKey: key.key };

  it('encrypts them to the key of the hello, until the instance has them', () => {
    const { secrets } = stage();
    const { version, encrypted } = secrets.encryptedFor(record, { secrets: null }).secrets!;
    expect(decryptSecrets(encrypted, key, RECIPIENT)).toEqual(secretsOf('first'));
    expect(secrets.encryptedFor(record, { secrets: version })).toEqual({});
  });

  it('gives nothing to an instance that has named no key', () => {
    expect(stage().secrets.encryptedFor({ ...AT, secretsKey: null }, {})).toEqual({});
  });

  it('gives a changed secret with the next heartbeat, and reads at most once a second', async () => {
    const { clock, source, secrets } = stage();
    const first = secrets.encryptedFor(record, { secrets: null }).secrets!.version;
    source.value = 'second';
    for (let i = 0; i < 100; i++) secrets.encryptedFor(record, { secrets: first });
    expect(source.reads).toBe(1);
    await clock.advance(1_000);
    const { version, encrypted } = secrets.encryptedFor(record, { secrets: first }).secrets!;
    expect(version).not.toBe(first);
    expect(decryptSecrets(encrypted, key, RECIPIENT)).toEqual(secretsOf('second'));
    await clock.advance(1_000);
    expect(secrets.encryptedFor(record, { secrets: version })).toEqual({});
  });

  it('keeps those read last while they cannot be read, and says so once', async () => {
    const { clock, source, secrets, alarms } = stage();
    const { version } = secrets.encryptedFor(record, { secrets: null }).secrets!;
    source.value = null;
    for (let i = 0; i < 3; i++) {
      await clock.advance(1_000);
      expect(secrets.encryptedFor(record, { secrets: version })).toEqual({});
      expect(secrets.encryptedFor(record, { secrets: null }).secrets?.version).toBe(version);
    }
    expect(alarms).toEqual([
      'the secrets of site.headers and site.cookies cannot be read, and those read last stand: the variable A is not set',
    ]);
  });

  it('lets instances wait while there are none yet', async () => {
    const { clock, source, secrets, alarms } = stage();
    source.value = null;
    expect(secrets.encryptedFor(record, { secrets: null })).toEqual({});
    expect(alarms[0]).toContain('instances that lack them wait');
    source.value = 'found';
    await clock.advance(1_000);
    expect(secrets.encryptedFor(record, { secrets: null }).secrets).toBeDefined();
  });
});
