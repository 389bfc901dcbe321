import { expect, it } from 'vitest';
import { buildReport, publishRun } from '../../../orchestrator/core/act/results/finish.ts';
import { publishHeld } from '../../../orchestrator/core/act/results/publish-held.ts';
import type { NewRun } from '../../../orchestrator/core/model/stores.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { REQUEST, at, bound, onBothEngines } from './db/harness.ts';
import { ResultsStage, aNewRun, titled, unreadable } from './results-stage.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';

onBothEngines('A suspicious crawl', (bench, engine) => {
  let tables = 0;

  /** A good run of four products, and a second one of the same table with these results, both ended. */
  async function afterGoodRun(results: readonly ItemResult[]) {
    const stage = new ResultsStage(bench());
    const table = `held_${engine}_${++tables}`;
    const good = await loaded(stage, table, four('good'));
    await finish(stage, good);
    const bad = await loaded(stage, table, results);
    await finish(stage, bad);
    return { stage, good, bad, table };
  }

  /** A run of four products that has loaded these results. */
  async function loaded(stage: ResultsStage, table: string, results: readonly ItemResult[]): Promise<NewRun> {
    const run = aNewRun(table, 4);
    await stage.create(run);
    await stage.load(run, results);
    return run;
  }

  async function finish(stage: ResultsStage, run: NewRun): Promise<void> {
    await publishRun(stage.core(run.id));
  }

  const record = async (run: NewRun) => (await bench().stores.runs.get(run.id))!;
  const four = (title: string) => [1, 2, 3, 4].map((n) => titled(n, title));
  const blank = four('');

  it('F35: is held when every product parses empty; the old rows are not overwritten by blanks', async () => {
    const { stage, good, bad } = await afterGoodRun(blank);
    expect(await record(bad)).toMatchObject({ phase: 'held', exitCode: 13 });
    expect((await record(bad)).reason).toContain('field title filled 0 % (before: 100 %)');
    expect(await stage.rows(bad)).toEqual([1, 2, 3, 4].map((n) => [`p${n}`, 'good', good.id]));
    const report = await buildReport(stage.core(bad.id));
    expect(report).toMatchObject({ state: 'held', exitCode: 13, onTime: false });
    expect(report.notes[0]).toContain(`orchestrator publish ${bad.id}`);
    // Publishing again changes nothing.
    await finish(stage, bad);
    expect(await record(bad)).toMatchObject({ phase: 'held' });
  });

  it('is published when it is as full as before, and without a guard', async () => {
    const { stage, bad } = await afterGoodRun([titled(1, 'new'), titled(2, 'new'), titled(3, null), unreadable(4)]);
    expect(await record(bad)).toMatchObject({ phase: 'completed', exitCode: 12 });
    expect((await stage.rows(bad)).map((r) => r[1])).toEqual(['new', 'new', null, 'good']);
    const free = aNewRun(bad.settings.results.table, 4);
    free.settings.results = { ...free.settings.results, guard: null };
    await stage.create(free);
    await stage.load(free, blank);
    await finish(stage, free);
    expect(await record(free)).toMatchObject({ phase: 'completed', exitCode: 0 });
  });

  it('is cancelled, not held, when the cancel came after the loop had last checked', async () => {
    const { stage, table } = await afterGoodRun(blank);
    const next = await loaded(stage, table, blank);
    await bench().stores.runs.setRequest(next.id, 'cancel');
    await publishRun(stage.core(next.id));
    expect(await record(next)).toMatchObject({ phase: 'cancelled', exitCode: 11, reason: 'cancelled' });
    expect((await stage.rows(next)).map((r) => r[1])).toEqual(Array(4).fill('good'));
  });

  it.each([
    ['held', blank],
    ['published', four('next')],
  ])('is cancelled when the cancel arrives during the judgement (else %s)', async (_, results) => {
    const { stage, table } = await afterGoodRun(blank);
    const next = await loaded(stage, table, results);
    const core = stage.core(next.id);
    const setFill: typeof core.results.setFill = async (...fill) => {
      await core.results.setFill(...fill);
      await bench().stores.runs.setRequest(next.id, 'cancel');
    };
    const wishful = new Proxy(core.results, {
      get: (target, name) => {
        if (name === 'setFill') return setFill;
        const value = Reflect.get(target, name, target) as unknown;
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    await publishRun({ ...core, results: wishful });
    expect(await record(next)).toMatchObject({ phase: 'cancelled', exitCode: 11, reason: 'cancelled' });
    expect((await stage.rows(next)).map((r) => r[1])).toEqual(Array(4).fill('good'));
  });

  it('neither blocks publishing of the next run nor counts for it', async () => {
    const { stage, bad, table } = await afterGoodRun(blank);
    const next = await loaded(stage, table, four('next'));
    await finish(stage, next);
    expect(await record(next)).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect((await stage.rows(next)).map((r) => r[1])).toEqual(['next', 'next', 'next', 'next']);
    const late = publishHeld(stage.core(bad.id), await record(bad), false);
    await expect(late).rejects.toMatchObject({ code: 'run-overtaken', exitCode: 13 });
    expect(await record(bad)).toMatchObject({ phase: 'held' });
    expect(await publishHeld(stage.core(bad.id), await record(bad), true)).toEqual({ rows: 4 });
    expect((await stage.rows(bad)).map((r) => r[1])).toEqual(['', '', '', '']);
  });

  it('lists every alarm as a note, whatever happened since, and states how many it omits', async () => {
    const { stage, bad } = await afterGoodRun(blank);
    const { run } = bench().stores.of(bad.id);
    const event = { atMs: 1, slot: null, epoch: null, from: null, to: null };
    await run.addEvent({ ...event, kind: 'alarm', detail: 'part 0 cannot be read' });
    for (let i = 0; i < 201; i++) await run.addEvent({ ...event, kind: 'instance', detail: `${i}` });
    const notes = async () => (await buildReport(stage.core(bad.id))).notes;
    expect(await notes()).toContain('part 0 cannot be read');
    for (let i = 0; i < 200; i++) await run.addEvent({ ...event, kind: 'alarm', detail: `alarm ${i}` });
    const many = (await notes()).filter((n) => /alarm/.test(n));
    expect(many).toHaveLength(201);
    expect(many[0]).toBe('alarm 199');
    expect(many.at(-1)).toContain('more alarms');
  });

  it('gives the true reason why shards differ: chunks were transferred, slots were lost, or neither', async () => {
    const { stage, bad } = await afterGoodRun(blank);
    const { run, fleet } = bound(bench(), bad.id, { nowMs: 1 });
    for (const slot of [0, 1]) {
      await fleet.claim({ slot, epoch: 1, request: REQUEST, token: 't' });
      const progress = { ...NO_PROGRESS, assigned: slot === 0 ? 9 : 1 };
      await fleet.heartbeat(at(slot), { counter: 1, progress, problem: null });
    }
    const why = async () =>
      (await buildReport(stage.core(bad.id))).notes.find((n) => n.startsWith('shards differ by 8 products'));
    expect(await why()).toMatch(/: slots were late, slower or drained$/);
    const event = { atMs: 1, slot: 0, epoch: 1, from: null, to: null };
    await run.addEvent({ ...event, kind: 'chunk', detail: 'slot 0 has given back 8 products' });
    expect(await why()).toMatch(/: chunks were transferred to instances that could crawl them sooner$/);
    await fleet.move(at(1), 'claimed', 'lost', { reason: 'no-hello' });
    expect(await why()).toMatch(/sooner, and slots were lost or banned$/);
  });

  it('is published when a person releases it, once', async () => {
    const { stage, bad } = await afterGoodRun(blank);
    const endedMs = (await record(bad)).finishedAtMs;
    await stage.clock.advance(7_200_000);
    expect(await publishHeld(stage.core(bad.id), await record(bad), false)).toEqual({ rows: 4 });
    expect(await record(bad)).toMatchObject({ phase: 'completed', exitCode: 0, reason: null, finishedAtMs: endedMs });
    expect(await stage.rows(bad)).toEqual([1, 2, 3, 4].map((n) => [`p${n}`, '', bad.id]));
    const again = publishHeld(stage.core(bad.id), await record(bad), false);
    await expect(again).rejects.toMatchObject({ code: 'run-not-held', exitCode: 2 });
  });

  it.each([
    ['robots', null, 15, 'because robots.txt could not be read'],
    ['site-changed', 'site-changed', 12, 'the site or its mapping has changed'],
    ['budget', null, 14, 'run.max_cost reached'],
    ['deadline', null, 15, 'deadline missed'],
  ] as const)(
    'still reports, once published, that the rest was left for: %s',
    async (rest, request, exitCode, reason) => {
      const { stage, good } = await afterGoodRun(blank);
      const held = aNewRun(good.settings.results.table, 4);
      held.settings.run = { ...held.settings.run, maxFailed: 0.5 };
      await stage.create(held);
      if (request !== null) await bound(bench(), held.id).run.setRequest(request);
      await stage.load(held, blank.slice(0, 3), rest);
      await finish(stage, held);
      expect(await record(held)).toMatchObject({ phase: 'held', reason: expect.stringContaining(reason) as string });
      await publishHeld(stage.core(held.id), await record(held), false);
      expect(await record(held)).toMatchObject({ phase: 'completed', exitCode });
      expect((await record(held)).reason).toContain(reason);
      expect((await record(held)).reason).not.toContain('filled');
    },
  );
});
