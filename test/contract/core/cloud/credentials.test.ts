/** AWS keys that change while the program runs: the SDK's own chain and its own client, on files of the test. */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { STSClient } from '@aws-sdk/client-sts';
import { keysReadAgain, readKeys } from '../../../../orchestrator/core/cloud/credentials.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;

describe('keys in the credentials file', () => {
  let folder: TempDir;
  const write = (id: string): void =>
    writeFileSync(folder.file('credentials'), `[default]\naws_access_key_id = ${id}\naws_secret_access_key = s\n`);

  beforeEach(() => {
    folder = tempDir('crawlfleet-keys-');
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_PROFILE'])
      vi.stubEnv(name, undefined);
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', folder.file('credentials'));
    vi.stubEnv('AWS_CONFIG_FILE', folder.file('config'));
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    folder.remove();
  });

  it('are read again after the file was rewritten', async () => {
    write('AKIAFIRST');
    expect(await readKeys()).toMatchObject({ accessKeyId: 'AKIAFIRST' });
    write('AKIASECOND');
    expect(await readKeys()).toMatchObject({ accessKeyId: 'AKIASECOND' });
  });

  it('reach an SDK client that already exists', async () => {
    write('AKIAFIRST');
    // With a clock two minutes slow, the expiry that the keys are given falls within the SDK's five minutes.
    const client = new STSClient({
      region: 'us-east-1',
      credentials: keysReadAgain(readKeys, () => Date.now() - 120_000),
    });
    expect(await client.config.credentials()).toMatchObject({ accessKeyId: 'AKIAFIRST' });
    write('AKIASECOND');
    await vi.waitFor(async () =>
      expect(await client.config.credentials()).toMatchObject({ accessKeyId: 'AKIASECOND' }),
    );
    client.destroy();
  });
});

describe('keysReadAgain', () => {
  const keys = { accessKeyId: 'a', secretAccessKey: 's' };

  it('has keys without an expiry requested again a minute later', async () => {
    const provider = keysReadAgain(
      async () => keys,
      () => NOW,
    );
    // The SDK requests new ones five minutes ahead.
    expect((await provider()).expiration).toEqual(new Date(NOW + 360_000));
  });

  it('keeps valid keys while no others can be read, but not after they expire', async () => {
    let nowMs = NOW;
    let fails = false;
    const read = async () => {
      if (fails) throw new Error('no token');
      return { ...keys, expiration: new Date(NOW + HOUR_MS) };
    };
    const provider = keysReadAgain(read, () => nowMs);
    await provider();
    fails = true;
    nowMs = NOW + HOUR_MS - 1;
    expect(await provider()).toMatchObject(keys);
    nowMs = NOW + HOUR_MS;
    await expect(provider()).rejects.toThrow('no token');
  });
});
