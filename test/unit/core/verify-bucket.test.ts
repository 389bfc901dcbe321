/** Checks of manifests and parts in the bucket. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { InstanceRecord, PartRecord, RunRecord } from '../../../orchestrator/core/model/stores.ts';
import { checkManifests, checkParts } from '../../../orchestrator/core/verify/verify.ts';
import { REBUILT } from '../../../orchestrator/core/act/results/run-description.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { manifestKey, partKey } from '../../../shared/domain/keys.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { encodeManifest, type Manifest } from '../../../shared/wire/part.ts';
import { createKeyPair, exportPublicKey, sha256Hex } from '../../../shared/wire/signature.ts';
import { anInstance } from './builders.ts';

const run = { id: 'r', publicKey: 'none' } as RunRecord;

function part(seq: number, state: PartRecord['state'] = 'loaded'): PartRecord {
  const sha256 = String(seq).padStart(64, '0');
  const counts = { products: 1, stored: 1, gone: 0, failed: 0 };
  return {
    slot: 0,
    epoch: 1,
    seq,
    key: partKey('r', { slot: 0, epoch: 1, seq, sha256 }),
    sha256,
    sizeBytes: 1,
    state,
    ...counts,
  };
}

async function differences(
  listed: readonly PartRecord[],
  ledger: PartRecord[],
  more: Partial<Manifest> = {},
): Promise<string[]> {
  const keys = createKeyPair();
  const objects = new MemoryObjectStore();
  const key = manifestKey('r', 0, 1);
  const parts = listed.map(({ seq, key: name, sha256, sizeBytes, products }) => ({
    seq,
    key: name,
    sha256,
    sizeBytes,
    products,
  }));
  const place = { run: 'r', slot: 0, epoch: 1, instanceId: 'i-1' };
  const closed = { closedBy: 'instance', closedAt: '2026-01-01T00:00:00.000Z' } as const;
  const manifest = { version: 1, ...place, ...closed, parts, progress: { ...NO_PROGRESS }, ...more } as const;
  await objects.putIfAbsent(key, encodeManifest(manifest, keys.privateKey));
  const publicKey = exportPublicKey(keys.publicKey);
  const instance = anInstance(0, { epoch: 1, publicKey, manifestKey: key, manifestSha256: null });
  const checked = await checkManifests({ run, instances: [instance], parts: ledger, objects });
  return checked.differences.map(({ check }) => check);
}

describe('A manifest', () => {
  const NOT_LOADED = ['every part of a manifest is loaded'];
  const NOT_LISTED = ['every loaded part is in the manifest of its epoch'];
  const both = [part(0), part(1)];

  it.each([
    ['agrees with a ledger in which all its parts are loaded', both, both, []],
    ['does not agree when one of them is not loaded yet', both, [part(0), part(1, 'seen')], NOT_LOADED],
    ['does not agree when one of them is missing', both, [part(0)], NOT_LOADED],
    ['agrees when one of them was set aside as unreadable', both, [part(0), part(1, 'failed')], []],
    ['does not agree when it does not list a loaded part', [part(0)], both, NOT_LISTED],
  ])('%s', async (_what, listed, ledger, checks) => {
    expect(await differences(listed, ledger)).toEqual(checks);
  });

  it('may lack parts that were reported before the journal was damaged', async () => {
    expect(await differences([part(0)], both, { damaged: true })).toEqual([]);
  });
});

describe('A manifest that is none', () => {
  const keys = createKeyPair();
  const signed = (manifest: unknown): Buffer =>
    Buffer.from(JSON.stringify({ manifest: JSON.stringify(manifest), signature: '' }));

  it.each<[string, Buffer, RegExp]>([
    ['no JSON', Buffer.from('rubbish\u001b[2J'), /not valid JSON$/],
    ['no object', Buffer.from('[]'), /^Invalid input: expected object/],
    ['nested deep', Buffer.from('['.repeat(1e6)), /^it is nested more than 16 deep$/],
    ['unsigned', signed({ version: 1 }), /^the manifest is not signed by its instance$/],
  ])('is one sentence for verify when it is %s', async (_what, bytes, fault) => {
    const found = await foundIn(bytes, { publicKey: exportPublicKey(keys.publicKey) });
    expect(found).toMatch(fault);
    expect(found).toMatch(/^\P{Cc}*$/u);
  });

  it.each<[string, unknown, RegExp]>([
    ['other fields', { version: 1, parts: [] }, /^run: Invalid input/],
    ['no parts', { version: 1, parts: Array(50_000).fill(0) }, /^run: Invalid input/],
  ])('does not stop verify where its key was lost and it has %s', async (_what, manifest, fault) => {
    expect(await foundIn(signed(manifest), { publicKey: null, reason: REBUILT })).toMatch(fault);
  });

  /** What `verify` says of these bytes as the manifest of the only epoch. */
  async function foundIn(bytes: Buffer, more: Partial<InstanceRecord>): Promise<string> {
    const objects = new MemoryObjectStore();
    const key = manifestKey('r', 0, 1);
    await objects.putIfAbsent(key, bytes);
    const instance = anInstance(0, { epoch: 1, manifestKey: key, manifestSha256: null, ...more });
    const given = { ...run, publicKey: exportPublicKey(createKeyPair().publicKey) };
    const { differences } = await checkManifests({ run: given, instances: [instance], parts: [], objects });
    expect(differences).toMatchObject([{ check: 'every manifest is whole and signed', expected: key }]);
    return differences[0]!.found;
  }
});

describe('The parts', () => {
  async function broken(bytes: Uint8Array | null, more: Partial<PartRecord> = {}): Promise<string[]> {
    const objects = new MemoryObjectStore();
    const sha256 = sha256Hex(bytes ?? new Uint8Array());
    const sizeBytes = bytes?.length ?? 0;
    // More than are read in parallel.
    const whole = Array.from({ length: 20 }, (_, seq) => ({ ...part(seq), products: 3, sha256, sizeBytes }));
    for (const { key } of whole) if (bytes) await objects.putIfAbsent(key, bytes);
    const parts = whole.map((p, i) => (i === 13 ? { ...p, ...more } : p));
    const differences = await checkParts({ run, instances: [], parts, objects });
    return differences.flatMap(({ examples }) => examples.map((text) => text.replace(/^.*ndjson\.gz ?/, '')));
  }
  const three = gzipSync('{"n":1}\n\n{"n":2}\n{"n":3}');

  it('are valid when each has its hash and one line per product', async () => {
    expect(await broken(three)).toEqual([]);
  });

  it('are invalid when one has another number of lines or another hash', async () => {
    expect(await broken(three, { products: 4 })).toEqual([': 3 products, the ledger says 4']);
    expect(await broken(three, { sha256: '0'.repeat(64) })).toEqual(['does not have the hash in its name']);
  });

  it('are not read when they were set aside, and are otherwise reported when missing', async () => {
    expect(await broken(three, { key: 'elsewhere', state: 'failed' })).toEqual([]);
    expect(await broken(three, { key: 'elsewhere' })).toEqual([expect.stringMatching(/no object elsewhere$/)]);
    expect(await broken(null)).toHaveLength(20);
  });

  it('are read whatever size their gzip trailer claims, and refused when they are not gzip', async () => {
    // Two members: the trailer only has the size of the last one.
    const joined = Buffer.concat([gzipSync(`1\n${'x'.repeat(100_000)}\n`), gzipSync('3')]);
    expect(await broken(joined)).toEqual([]);
    for (const bytes of [Buffer.from('no'), Buffer.from('no gzip at all')])
      expect((await broken(bytes))[0]).toMatch(/is not a part/);
  });
});
