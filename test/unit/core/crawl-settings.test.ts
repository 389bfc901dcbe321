import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { putCrawlSettings } from '../../../orchestrator/core/act/launches/crawl-settings.ts';
import type { RunSettings } from '../../../orchestrator/core/model/run-settings.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { crawlSettingsKey } from '../../../shared/domain/keys.ts';
import { unpackCrawlSettings } from '../../../shared/wire/crawl-settings.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import { oneTitle } from '../../support/one-title.ts';

const { site, mapping } = oneTitle('https://shop.example/item/{id}');
const RESULTS = { table: 'snapshots', onGone: 'keep' } as const;
const DISCOVER = {} as NonNullable<RunSettings['discover']>;
const runOf = (settings: Partial<RunSettings> = {}) => ({
  id: 'run-1',
  settings: { site, mapping, results: RESULTS, ...settings },
});

const unpacked = (store: MemoryObjectStore, { key, sha256 }: { key: string; sha256: string }) =>
  unpackCrawlSettings(store.objects.get(key)!, sha256);

describe('putCrawlSettings', () => {
  it('puts what all instances crawl by once, and names the same object afterwards', async () => {
    const store = new MemoryObjectStore();
    const calls: string[] = [];
    store.onCall = (operation) => void calls.push(operation);
    const first = await putCrawlSettings(store, runOf());
    // As the row of a resumed run gives them.
    const again = JSON.parse(JSON.stringify(runOf())) as ReturnType<typeof runOf>;
    expect(await putCrawlSettings(store, again)).toEqual(first);
    expect(calls).toEqual(['exists', 'put', 'exists']);
    expect(first.key).toBe(crawlSettingsKey('run-1', first.sha256));
    expect(unpacked(store, first)).toEqual({ version: 2, site, mapping });
  });

  it('puts the object again that has left the bucket', async () => {
    const store = new MemoryObjectStore();
    const first = await putCrawlSettings(store, runOf());
    store.objects.clear();
    expect(await putCrawlSettings(store, runOf())).toEqual(first);
    expect(store.objects.size).toBe(1);
  });

  it('reads the deny list of a later main server from the object that the row names', async () => {
    const store = new MemoryObjectStore();
    const first = await putCrawlSettings(store, runOf({ discover: DISCOVER }), ['/private/']);
    expect(unpacked(store, first)).toMatchObject({ links: 'report', deny: ['/private/'] });
    expect(await putCrawlSettings(store, runOf({ discover: DISCOVER, crawlSettings: first.sha256 }))).toEqual(first);
  });

  it('makes the object of a run that an earlier version has begun, with its deny list', async () => {
    const store = new MemoryObjectStore();
    const old = gzipSync(JSON.stringify({ version: 1, deny: ['/private/'] }));
    store.objects.set(crawlSettingsKey('run-1', sha256Hex(old)), old);
    const run = runOf({
      discover: DISCOVER,
      crawlSettings: sha256Hex(old),
      // Its row names validators in this place only.
      results: { ...RESULTS, conditional: 'a-fingerprint' },
    });
    expect(unpacked(store, await putCrawlSettings(store, run))).toEqual({
      version: 2,
      site: { ...site, conditional: true },
      mapping,
      links: 'report',
      deny: ['/private/'],
    });
  });

  it('throws for a deny list that is gone: without it the run would follow what the user forbids', async () => {
    const run = runOf({ discover: DISCOVER, crawlSettings: 'a'.repeat(64) });
    await expect(putCrawlSettings(new MemoryObjectStore(), run)).rejects.toMatchObject({ code: 'object-missing' });
  });

  it('refuses settings that no instance would take, before anything is launched', async () => {
    const store = new MemoryObjectStore();
    await expect(putCrawlSettings(store, runOf({ site: { ...site, timeoutMs: 0 } }))).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('site.timeoutMs'),
    });
    expect(store.objects.size).toBe(0);
  });
});
