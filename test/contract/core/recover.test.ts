import { expect, it } from 'vitest';
import { ANY_HOST } from '../../../shared/domain/domains.ts';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { manifestKey } from '../../../shared/domain/keys.ts';
import { createKeyPair, importPrivateKey, importPublicKey, type KeyPair } from '../../../shared/wire/signature.ts';
import { buildReport, publishRun } from '../../../orchestrator/core/act/results/finish.ts';
import {
  closeRebuilt,
  isOver,
  listEpochs,
  loadEpochs,
  noteUnknownEpochs,
  noteUnproven,
  provenEpochs,
} from '../../../orchestrator/core/act/results/recover.ts';
import {
  readProductList,
  readRunDescription,
  writeRunDescription,
} from '../../../orchestrator/core/act/results/run-description.ts';
import { rebuiltRun } from '../../../orchestrator/core/model/rebuilt-run.ts';
import type { NewRun } from '../../../orchestrator/core/model/stores.ts';
import { createResultTable } from '../../../orchestrator/core/db/result-table.ts';
import { onBothEngines } from './db/harness.ts';
import { ResultsStage, aNewRun, idsOf, titled, unreadable } from './results-stage.ts';
import { features } from '../../support/features.ts';

/** The run's own key, as the main server signs with it. */
const importedPair = (run: NewRun): KeyPair => ({
  privateKey: importPrivateKey(run.privateKey),
  publicKey: importPublicKey(run.publicKey),
});

/** Results of a run over many hosts: the record is known by its URL. */
const found = (n: number, id: string, title: string): ItemResult => ({ ...titled(n, title), id, url: id });
const led = (n: number, id: string, page: string): ItemResult => ({
  ...(unreadable(n) as Extract<ItemResult, { outcome: 'failed' }>),
  id,
  url: id,
  reason: 'redirect',
  moved: { page },
});

onBothEngines('A run that the database has lost', (bench, engine) => {
  let tables = 0;

  /** Its description and three parts are in the bucket; slot 0 is closed by its instance, slot 1 was never closed. */
  async function inBucket(): Promise<{ stage: ResultsStage; run: NewRun }> {
    const stage = new ResultsStage(bench());
    const run = aNewRun(`lost_${engine}_${++tables}`, 6);
    await writeRunDescription(stage.objects, run, idsOf(run), systemClock);
    const parts = [
      await stage.putPart(run, { slot: 0, seq: 0 }, [titled(1, 'one'), titled(2, 'two')]),
      await stage.putPart(run, { slot: 0, seq: 1 }, [unreadable(3)]),
    ];
    await stage.putManifest(run, 0, parts);
    await stage.putPart(run, { slot: 1, seq: 0 }, [titled(4, 'four')]);
    return { stage, run };
  }

  /** What `load` does; `dies` ends it after this many steps. */
  async function recover(stage: ResultsStage, runId: string, dies = Infinity): Promise<void> {
    const { stores, db, fence } = bench();
    const description = (await readRunDescription(stage.objects, runId))!;
    const listed = await listEpochs(stage.objects, runId);
    const epochs = await provenEpochs(stage.objects, rebuiltRun(description), listed);
    const core = stage.core(runId);
    const steps = [
      async () => {
        if (await stores.runs.get(runId)) return;
        const run = rebuiltRun(description);
        const { ids, ...products } = await readProductList(stage.objects, description);
        await createResultTable(db, run.settings.results, run.settings.mapping, features);
        await stores.runs.create({ ...run, ...products }, ids, fence, stage.clock.now());
      },
      async () => {
        await noteUnproven(core, listed, epochs);
        await loadEpochs(core, epochs);
      },
      async () => closeRebuilt(core, (await stores.runs.get(runId))!, epochs),
      () => publishRun(core),
    ];
    for (const step of steps.slice(0, dies)) await step();
  }

  it('is rebuilt from the bucket with its rows, its counts and a proof that holds', async () => {
    const { stage, run } = await inBucket();
    await recover(stage, run.id);
    expect(await stage.rows(run)).toEqual([
      ['p1', 'one', run.id],
      ['p2', 'two', run.id],
      ['p4', 'four', run.id],
    ]);
    const report = await buildReport(stage.core(run.id));
    expect(report).toMatchObject({
      products: { planned: 6, stored: 3, gone: 0, failed: 3, reasons: { parse: 1, 'lost-instance': 2 } },
      politeness: { minGapMs: 10_050 },
      state: 'completed',
      exitCode: 12,
    });
    expect(stage.alarms.join()).toContain('the signatures of 1 manifests could not be checked');
    expect(await stage.verdict(run.id)).toMatchObject({ holds: true, differences: [], manifests: 2, parts: 3 });
  });

  it.each([1, 2, 3])('F46: is loaded to the end when a first load died after step %i, each row once', async (step) => {
    const { stage, run } = await inBucket();
    await recover(stage, run.id, step);
    await recover(stage, run.id);
    await recover(stage, run.id);
    expect((await stage.rows(run)).map((r) => r[0])).toEqual(['p1', 'p2', 'p4']);
    expect(await stage.verdict(run.id)).toMatchObject({ holds: true });
  });

  it('has the records that have moved, whatever number each has now, and in which order the parts are found', async () => {
    const stage = new ResultsStage(bench());
    const run = aNewRun(`moved_${engine}_${++tables}`, 4);
    run.settings.site.productUrl = ANY_HOST;
    const [a, b, c, d] = [
      'https://a.example/',
      'https://b.example/',
      'https://c.example/',
      'https://d.example/',
    ] as const;
    const urls = new Map([a + 1, a + 2, b + 3, c + 4].map((url, i) => [`p${i + 1}`, url]));
    await writeRunDescription(stage.objects, { ...run, urls }, idsOf(run), systemClock);
    // As the lost database had numbered them: p2 and p3 are 6 and 5 at one page, p4 is 7 at b, and then 8 at d.
    const epochs = [
      [found(1, a + 1, 'one'), found(8, d + 4, 'four')],
      [led(7, b + 4, d + 4), found(6, c + 2, 'two and three'), found(5, c + 2, 'two and three')],
      [led(2, a + 2, c + 2), led(3, b + 3, c + 2), led(4, c + 4, b + 4)],
    ];
    for (const [slot, results] of epochs.entries())
      await stage.putManifest(run, slot, [await stage.putPart(run, { slot, seq: 0 }, results)]);
    const listed = await listEpochs(stage.objects, run.id);
    expect(await isOver(stage.objects, run, listed, stage.clock.now())).toBe(true);
    await recover(stage, run.id);
    await recover(stage, run.id);
    expect(await stage.rows(run)).toEqual([
      ['p1', 'one', run.id],
      ['p2', 'two and three', run.id],
      ['p3', 'two and three', run.id],
      ['p4', 'four', run.id],
    ]);
    expect(await stage.verdict(run.id)).toMatchObject({ holds: true, differences: [] });
  });

  it('is not over while a record that has moved has no result', async () => {
    const stage = new ResultsStage(bench());
    const run = aNewRun(`moving_${engine}_${++tables}`, 1);
    run.settings.site.productUrl = ANY_HOST;
    const [old, now] = ['https://a.example/1', 'https://b.example/1'];
    await stage.putManifest(run, 0, [await stage.putPart(run, { slot: 0, seq: 0 }, [led(1, old, now)])]);
    const isItOver = async (): Promise<boolean> =>
      isOver(stage.objects, run, await listEpochs(stage.objects, run.id), stage.clock.now());
    expect(await isItOver()).toBe(false);
    await stage.putManifest(run, 1, [await stage.putPart(run, { slot: 1, seq: 0 }, [found(2, now, 'one')])]);
    expect(await isItOver()).toBe(true);
  });

  it('leaves a broken part out with an alarm', async () => {
    const { stage, run } = await inBucket();
    const part = await stage.putPart(run, { slot: 1, seq: 1 }, [titled(5, 'five')]);
    stage.objects.objects.set(part.key, Buffer.from('rubbish'));
    await recover(stage, run.id);
    expect(stage.alarms.join()).toContain(part.key);
    expect((await stage.rows(run)).map((r) => r[0])).toEqual(['p1', 'p2', 'p4']);
    expect((await stage.verdict(run.id)).differences).toEqual([]);
  });

  /**
   * The same with keys: slot 0 is closed by its instance, slot 1 was never closed. Besides, without its key: parts in
   * both places, a whole epoch of slot 2, and a manifest in the place of slot 1.
   */
  async function signedInBucket(session?: string): Promise<{ stage: ResultsStage; run: NewRun; forged: PartRef[] }> {
    const folder = session === undefined ? {} : { session };
    const stage = new ResultsStage(bench());
    const run = aNewRun(`signed_${engine}_${++tables}`, 6);
    Object.assign(run.settings, { partsSigned: true, grantsKept: true });
    await writeRunDescription(stage.objects, run, idsOf(run), systemClock);
    const [first, second, stranger] = [createKeyPair(), createKeyPair(), createKeyPair()];
    await stage.putKey(run, 0, first);
    await stage.putKey(run, 1, second);
    const parts = [
      await stage.putPart(run, { slot: 0, seq: 0, keys: first, ...folder }, [titled(1, 'one'), titled(2, 'two')]),
    ];
    await stage.putManifest(run, 0, parts, { keys: first, ...folder });
    await stage.putPart(run, { slot: 1, seq: 0, keys: second, ...folder }, [titled(4, 'four')]);
    const everything = idsOf(run).map((_, i) => titled(i + 1, 'forged'));
    const forged = [
      await stage.putPart(run, { slot: 0, seq: 1 }, everything),
      await stage.putPart(run, { slot: 1, seq: 1, keys: first }, everything),
      await stage.putPart(run, { slot: 2, seq: 0, keys: stranger }, everything),
    ];
    await stage.putManifest(run, 1, forged.slice(1, 2), { keys: stranger });
    await stage.putManifest(run, 2, forged.slice(2), { keys: stranger });
    return { stage, run, forged };
  }

  it.each([
    ['without folders of role sessions', undefined],
    ['in those folders', 'AROA1:i-1'],
  ])(
    'F58: counts only what instances have signed whose keys the run has stored, and says what it cannot prove, %s',
    async (_where, session) => {
      const { stage, run, forged } = await signedInBucket(session);
      if (session !== undefined) await stage.objects.putIfAbsent(manifestKey(run.id, 0, 1), Buffer.from('{}'));
      for (let i = 0; i < 2; i++) await recover(stage, run.id);
      expect(await stage.rows(run)).toEqual([
        ['p1', 'one', run.id],
        ['p2', 'two', run.id],
        ['p4', 'four', run.id],
      ]);
      expect(await stage.verdict(run.id)).toMatchObject({ holds: true, differences: [], manifests: 2, parts: 2 });
      const said = stage.alarms.join('\n');
      for (const { key } of forged.slice(0, 2)) expect(said).toContain(`part ${key} is ignored`);
      expect(said).toContain('slot 2 epoch 1 is ignored, with 1 parts in the bucket');
      expect(said).toContain(`the object ${manifestKey(run.id, 1, 1)} is neither from slot 1 epoch 1`);
      expect(said.includes(`the object ${manifestKey(run.id, 0, 1)} is neither`)).toBe(session !== undefined);
      expect(said).not.toContain('could not be checked');
      const report = await buildReport(stage.core(run.id));
      expect(report.notes.join('\n')).toContain('which products each instance was granted was lost with the database');
      expect(report.instances.launched).toBe(2);
    },
  );

  it.each([1, 2, 3])('F46, F58: is loaded to the end likewise when a first load died after step %i', async (step) => {
    const { stage, run } = await signedInBucket();
    await recover(stage, run.id, step);
    await recover(stage, run.id);
    expect((await stage.rows(run)).map((r) => r[1])).toEqual(['one', 'two', 'four']);
    expect(await stage.verdict(run.id)).toMatchObject({ holds: true, manifests: 2, parts: 2 });
  });

  it('is not over because of parts and manifests that no instance has signed, nor kept waiting by them', async () => {
    const { stage, run } = await signedInBucket();
    const [third, now] = [createKeyPair(), stage.clock.now()];
    const isItOver = async (): Promise<boolean> =>
      isOver(stage.objects, run, await provenEpochs(stage.objects, run, await listEpochs(stage.objects, run.id)), now);
    expect(await isItOver()).toBe(false);
    stage.objects.objects.delete(manifestKey(run.id, 1, 1));
    await stage.putManifest(run, 1, [], { keys: importedPair(run) });
    expect(await isItOver()).toBe(false);
    await stage.putKey(run, 3, third);
    await stage.putPart(
      run,
      { slot: 3, seq: 0, keys: third },
      [3, 5, 6].map((n) => titled(n, 'rest')),
    );
    expect(await isItOver()).toBe(false);
    await stage.putManifest(run, 3, [], { keys: third });
    // Slot 2 has a part and no proven manifest, but no instance of the run is there.
    stage.objects.objects.delete(manifestKey(run.id, 2, 1));
    expect(await isItOver()).toBe(true);
  });

  it('is not over while an instance may still upload', async () => {
    const { stage, run } = await inBucket();
    const epochs = await listEpochs(stage.objects, run.id);
    const now = stage.clock.now();
    expect(await isOver(stage.objects, run, epochs, now)).toBe(false);
    expect(await isOver(stage.objects, run, epochs, run.deadlineAtMs + run.settings.run.graceMs + 1)).toBe(true);
    await stage.putManifest(run, 1, []);
    // Every known epoch is closed, but two products have no result: a replacement may be crawling them.
    expect(await isOver(stage.objects, run, await listEpochs(stage.objects, run.id), now)).toBe(false);
    const part = await stage.putPart(run, { slot: 1, seq: 1 }, [titled(5, 'five'), titled(6, 'six')]);
    expect(await isOver(stage.objects, run, await listEpochs(stage.objects, run.id), now)).toBe(true);
    stage.objects.objects.set(part.key, Buffer.from('rubbish'));
    expect(await isOver(stage.objects, run, await listEpochs(stage.objects, run.id), now)).toBe(false);
  });

  it('is loaded although a manifest is damaged, with an alarm', async () => {
    const { stage, run } = await inBucket();
    stage.objects.objects.set(manifestKey(run.id, 0, 1), Buffer.from('rubbish'));
    await recover(stage, run.id);
    await recover(stage, run.id);
    expect(stage.alarms.join()).toContain(`the object ${manifestKey(run.id, 0, 1)} is not a manifest`);
    expect((await stage.rows(run)).map((r) => r[0])).toEqual(['p1', 'p2', 'p4']);
    expect(await bench().stores.runs.get(run.id)).toMatchObject({ phase: 'completed' });
    expect((await bench().stores.of(run.id).fleet.instances()).map((i) => i.phase)).toEqual([
      'terminated',
      'terminated',
    ]);
  });

  it('F36: is described in a bucket that answers SlowDown for a while, and not in one that always does', async () => {
    const { stage, run } = await inBucket();
    const other = { ...aNewRun('y', 1), settings: run.settings };
    const pauses: number[] = [];
    const clock = { ...systemClock, sleep: async (ms: number) => void pauses.push(ms) };
    let refusals = 6;
    stage.objects.onCall = (operation) => {
      if (operation === 'put' && refusals-- > 0) throw new Error('SlowDown');
    };
    await writeRunDescription(stage.objects, other, ['a'], clock);
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000]);
    expect(await readRunDescription(stage.objects, other.id)).toMatchObject({ planned: other.planned });
    refusals = Infinity;
    await expect(writeRunDescription(stage.objects, aNewRun('z', 1), ['a'], clock)).rejects.toThrow('SlowDown');
  });

  it('has the URLs of products that have their own', async () => {
    const { stage, run } = await inBucket();
    const urls = new Map([
      ['a', 'https://shop.example/x'],
      ['b', 'https://b.example/y'],
    ]);
    const other = { ...aNewRun('u', 2), settings: run.settings };
    await writeRunDescription(stage.objects, { ...other, urls }, ['a', 'b'], systemClock);
    const description = (await readRunDescription(stage.objects, other.id))!;
    expect(await readProductList(stage.objects, description)).toEqual({ ids: ['a', 'b'], urls });
  });

  it('has a description without secrets, complete and signed, and lists that name every product', async () => {
    const { stage, run } = await inBucket();
    const secret = { pid: 1, controlToken: 'secret-token', dataDir: '/d' };
    const other = { ...aNewRun('x', 3), settings: { ...run.settings, sandbox: secret } };
    await writeRunDescription(stage.objects, other, ['a', '日本\n"x"', 'c '], systemClock);
    const description = (await readRunDescription(stage.objects, other.id))!;
    expect(await readProductList(stage.objects, description)).toEqual({ ids: ['a', '日本\n"x"', 'c '] });
    expect(rebuiltRun(description)).toEqual({
      ...other,
      privateKey: '',
      settings: { ...other.settings, sandbox: null },
    });
    const text = Buffer.from(stage.objects.objects.get(`runs/${other.id}/run.json`)!).toString();
    expect(text).not.toContain('secret-token');
    expect(text).not.toContain(other.privateKey);
    expect(importPublicKey(description.publicKey).export({ type: 'spki', format: 'der' })).toEqual(
      importPublicKey(other.publicKey).export({ type: 'spki', format: 'der' }),
    );
    expect(importPrivateKey(other.privateKey).type).toBe('private');
    stage.objects.objects.set(
      `runs/${other.id}/run.json`,
      Buffer.from(text.replace('\\"planned\\":6', '\\"planned\\":7').replace('\\"planned\\":3', '\\"planned\\":4')),
    );
    await expect(readRunDescription(stage.objects, other.id)).rejects.toMatchObject({ code: 'object-corrupt' });
    expect(await readRunDescription(stage.objects, 'nobody')).toBeNull();
  });
});

onBothEngines('A run that the database knows in part', (bench, engine) => {
  it('gets the parts it has missed; unknown epochs are lost ones, to be closed', async () => {
    const stage = new ResultsStage(bench());
    const run = aNewRun(`part_${engine}`, 4);
    await stage.create(run);
    await stage.putPart(run, { slot: 0, seq: 0 }, [titled(1, 'one')]);
    await stage.putPart(run, { slot: 0, seq: 0, epoch: 2 }, [titled(2, 'two')]);
    const epochs = await listEpochs(stage.objects, run.id);
    const core = stage.core(run.id);
    const record = (await bench().stores.runs.get(run.id))!;
    for (const expected of [2, 0]) {
      await noteUnknownEpochs(core, record, epochs);
      expect(await loadEpochs(core, epochs)).toMatchObject({ parts: expected, stored: expected });
    }
    expect((await bench().stores.of(run.id).fleet.instances()).map((i) => [i.epoch, i.phase, i.reason])).toEqual([
      [1, 'lost', 'rebuilt'],
      [2, 'lost', 'rebuilt'],
    ]);
  });

  it('takes the keys of epochs that it does not know from the bucket', async () => {
    const stage = new ResultsStage(bench());
    const run = aNewRun(`keys_${engine}`, 4);
    run.settings.partsSigned = true;
    await stage.create(run);
    const keys = createKeyPair();
    await stage.putKey(run, 0, keys);
    await stage.putPart(run, { slot: 0, seq: 0, keys }, [titled(1, 'one')]);
    const { key } = await stage.putPart(run, { slot: 0, seq: 1 }, [titled(2, 'two')]);
    const core = stage.core(run.id);
    const epochs = await listEpochs(stage.objects, run.id);
    await noteUnknownEpochs(core, (await bench().stores.runs.get(run.id))!, epochs);
    expect(await loadEpochs(core, epochs)).toMatchObject({ parts: 1, stored: 1 });
    expect(stage.alarms).toEqual([`part ${key} is ignored: it is not signed by its instance, or damaged`]);
  });

  it('counts nothing of an epoch to which it granted nothing, and says so', async () => {
    const stage = new ResultsStage(bench());
    const run = aNewRun(`unknown_${engine}`, 4);
    run.settings.grantsKept = true;
    await stage.create(run);
    const { key } = await stage.putPart(run, { slot: 7, seq: 0 }, [titled(1, 'one'), titled(2, 'two')]);
    const core = stage.core(run.id);
    const epochs = await listEpochs(stage.objects, run.id);
    await noteUnknownEpochs(core, (await bench().stores.runs.get(run.id))!, epochs);
    expect(await loadEpochs(core, epochs)).toMatchObject({ parts: 1, stored: 0 });
    expect(stage.alarms.join()).toContain(`2 results in ${key} were put aside`);
    expect((await stage.verdict(run.id)).notes.join()).toContain('2 results were put aside');
  });
});
