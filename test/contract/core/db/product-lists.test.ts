import { expect, it } from 'vitest';
import type { RunPhase } from '../../../../shared/domain/states.ts';
import type { RunReport } from '../../../../orchestrator/core/model/report.ts';
import { NO_PROGRESS } from '../../../../shared/wire/callbacks.ts';
import { at, bound, createInstance, createRun, onBothEngines, settings, toLoading } from './harness.ts';

onBothEngines('Runs over a product list', (bench, engine) => {
  it('are those that have ended, newest first: not the held, the cancelled, or runs of other products', async () => {
    const { runs } = bench().stores;
    const aRun = async (products: number, end: RunPhase | null, key: string | null = 'list', accepted = false) => {
      const list = key === null ? {} : { list: { key, usual: null, accepted } };
      const { id, run } = await createRun(bench(), products, { settings: { ...settings(`lists_${engine}`), ...list } });
      if (end === 'held') {
        await toLoading(bench(), id);
        await run.move('loading', 'held');
      } else if (end !== null) await run.move('planned', end);
      return id;
    };
    await aRun(1, 'completed');
    await aRun(2, 'completed', 'list', true);
    const cancelled = await aRun(3, null);
    await runs.setRequest(cancelled, 'cancel');
    await bound(bench(), cancelled).run.move('planned', 'cancelled');
    const stopped = await aRun(4, null);
    await runs.setRequest(stopped, 'stop');
    await bound(bench(), stopped).run.move('planned', 'cancelled');
    await aRun(5, 'held');
    await aRun(6, null);
    await aRun(7, 'completed', 'another');
    await aRun(8, 'completed', null);
    const all = [
      { products: 4, accepted: false },
      { products: 2, accepted: true },
      { products: 1, accepted: false },
    ];
    expect(await runs.listedRuns('list', 5)).toEqual(all);
    expect(await runs.listedRuns('list', 2)).toEqual(all.slice(0, 2));
    expect(await runs.listedRuns('unknown', 5)).toEqual([]);
  });

  it('tell how long a page took in the newest one that rendered alike', async () => {
    const { runs } = bench().stores;
    const aRun = async (render: 'http' | 'browser', pagesMs: (number | null)[]) => {
      const own = settings(`times_${engine}`);
      const list = { key: 'times', usual: null, accepted: false };
      const { id, run } = await createRun(bench(), 1, {
        settings: { ...own, site: { ...own.site, render }, list },
      });
      for (const [slot, pageMs] of pagesMs.entries()) {
        await createInstance(bench(), id, slot);
        const progress = { ...NO_PROGRESS, pageMs };
        expect(await bound(bench(), id).fleet.heartbeat(at(slot), { counter: 1, progress, problem: null })).toBe(true);
      }
      await run.move('planned', 'completed');
    };
    await aRun('browser', [100]);
    await aRun('browser', [700, null, 3_000, 900]);
    await aRun('http', [50]);
    expect(await runs.measuredPageMs('times', 'browser', 5)).toBe(900);
    expect(await runs.measuredPageMs('times', 'browser', 1)).toBe(null);
    expect(await runs.measuredPageMs('times', 'auto', 5)).toBe(null);
  });

  it('tell how many requests a record took in the newest one with enough of them', async () => {
    const { runs } = bench().stores;
    const aRun = async (products: { stored: number; reasons?: object }, tried: readonly number[]) => {
      const list = { key: 'requests', usual: null, accepted: false };
      const { id, run } = await createRun(bench(), 1, { settings: { ...settings(`requests_${engine}`), list } });
      for (const [slot, count] of tried.entries()) {
        await createInstance(bench(), id, slot);
        const progress = { ...NO_PROGRESS, tried: count, unavailable: 20 };
        await bound(bench(), id).fleet.heartbeat(at(slot), { counter: 1, progress, problem: null });
      }
      await run.setReport({ products: { gone: 10, failed: 0, reasons: {}, ...products } } as unknown as RunReport);
      await run.move('planned', 'completed');
    };
    expect(await runs.measuredRequests('requests', 5)).toBe(null);
    // Of 200 records that were read; those of dead and denied hosts have got no page.
    await aRun({ stored: 150, reasons: { parse: 40, network: 900, redirect: 300 } }, [270, 170]);
    await aRun({ stored: 20 }, [500]);
    expect(await runs.measuredRequests('requests', 5)).toBe(2);
    expect(await runs.measuredRequests('requests', 1)).toBe(null);
    await aRun({ stored: 190 }, [150]);
    expect(await runs.measuredRequests('requests', 5)).toBe(1);
  });

  it('tell which share of the hosts gave no answer in the newest one with enough of them', async () => {
    const { runs } = bench().stores;
    const aRun = async (hosts?: RunReport['hosts']) => {
      const list = { key: 'silence', usual: null, accepted: false };
      const { run } = await createRun(bench(), 1, { settings: { ...settings(`silence_${engine}`), list } });
      await run.setReport({ hosts } as unknown as RunReport);
      await run.move('planned', 'completed');
    };
    expect(await runs.measuredSilence('silence', 5)).toBe(null);
    await aRun({ done: 150, givenUp: { network: 40, redirect: 10 }, open: 0 });
    await aRun({ done: 20, givenUp: { network: 70 }, open: 0 });
    await aRun();
    expect(await runs.measuredSilence('silence', 5)).toBe(0.2);
    expect(await runs.measuredSilence('silence', 2)).toBe(null);
    await aRun({ done: 100, givenUp: {}, open: 0 });
    expect(await runs.measuredSilence('silence', 5)).toBe(0);
  });
});
