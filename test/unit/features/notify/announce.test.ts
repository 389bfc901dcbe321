import { mailOf } from '../../../../orchestrator/features/notify/mail-text.ts';
import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { alarmsNotice, endNotice } from '../../../../orchestrator/features/notify/announce.ts';
import type { RunReport } from '../../../../orchestrator/core/model/report.ts';
import type { ExitCode } from '../../../../shared/domain/exit-codes.ts';
import type { ReasonRow } from '../../../../shared/domain/reason-row.ts';
import { NO_PROGRESS } from '../../../../shared/wire/callbacks.ts';
import { anInstance, aRun, aWorld, START_MS } from '../../core/builders.ts';

const values = {
  schedule: { name: 'shop', timezone: 'UTC' },
  results: { table: 't' },
  site: { product_url: 'https://new.example/{id}' },
  server: { page_url: null },
  aws: { owner: 'us' },
};
const config = { values, file: '/srv/shop/fleet.yaml' } as unknown as Config;
const row = (change: Partial<ReasonRow>): ReasonRow => {
  return {
    reason: 'parse',
    sign: null,
    products: 1,
    waiting: 0,
    share: 0.1,
    url: null,
    evidence: null,
    todo: '',
    ...change,
  };
};
const ROWS = [
  row({ sign: 'field-missing title', products: 147, evidence: '147 of 147 lack title', todo: 'set site.render: auto' }),
  row({ reason: 'http-status', sign: '500\u001b[2J', products: 27, todo: 'open one in a browser' }),
];

function notice(exitCode: ExitCode, change: Partial<RunReport> = {}) {
  const times = { deadlineAtMs: START_MS, finishedAtMs: START_MS + 90_000 };
  const run = { ...aRun(), ...(change.onTime === false && times) };
  const products = { planned: 1_000, stored: 826, gone: 0, failed: 174 };
  const report = { run: run.id, state: 'completed', exitCode, reason: null, onTime: true, products };
  const rest = { cost: { actual: 1 }, bans: [], notes: [], ...change };
  return endNotice({ ...report, ...rest } as unknown as RunReport, run, config);
}

describe('the notice of an alarm', () => {
  it('says why products have no row so far, and where', () => {
    const misses = [{ reason: 'timeout' as const, detail: null, products: 4, waiting: 2, url: null }];
    const progress = { ...NO_PROGRESS, failed: 4, misses };
    const world = aWorld({ instances: [anInstance(0, { phase: 'crawling', progress })] });
    expect(alarmsNotice(world, [{ kind: 'late', text: 'it will be late' }], config)).toMatchObject({
      dryRun: true,
      kinds: ['late'],
      hosts: ['127.0.0.1:1'],
      reasons: [{ reason: 'timeout', products: 4, waiting: 2 }],
    });
  });
});

describe('the notice of an end', () => {
  it('names shop and table of the run, and where its main server is', () => {
    expect(notice(0)).toMatchObject({
      hosts: ['127.0.0.1:1'],
      table: aRun().settings.results.table,
      owner: 'us',
      mainServer: hostname(),
      folder: '/srv/shop',
      command: `orchestrator explain ${aRun().id}`,
      link: null,
    });
  });

  it('says how late it was, and how often the site has refused an address', () => {
    const ban = { address: null, rule: 'status-403', atMs: START_MS, overAtMs: null } as RunReport['bans'][number];
    const { text, bans, lateMs } = notice(15, {
      onTime: false,
      bans: Array.from({ length: 9 }, () => ban),
    });
    expect(text).toContain(', 9 bans, 1m 30s late, $1.00.');
    expect([bans!.count, bans!.first.length, lateMs]).toEqual([9, 5, 90_000]);
  });

  it('names the products that were left at the deadline, as the page does', () => {
    const products = { planned: 10, stored: 6, gone: 0, failed: 4, reasons: { deadline: 4 } };
    const late = notice(15, { onTime: false, products: products as unknown as RunReport['products'] });
    expect(late.text).toContain(', 4 products not crawled in time, $1.00.');
    expect(late).toMatchObject({ lateMs: 90_000, uncrawled: 4 });
  });

  it('says how many reasons there are besides', () => {
    const reasons = ['a', 'b', 'c', 'd', 'e'].map((sign) => row({ sign, products: 2 }));
    const told = notice(12, { reasons });
    expect(told).toMatchObject({ reasons: reasons.slice(0, 3), moreReasons: 2 });
    expect(told.text).toContain('2 parse c, 2 more reasons)');
    expect(mailOf(told).text).toContain('\n2 more reasons: see the command below\n');
    expect(notice(12, { reasons: ROWS })).not.toHaveProperty('moreReasons');
  });

  it('says why products have no row, and what to do about it', () => {
    const { text, hint, reasons } = notice(12, { reasons: ROWS });
    expect(text).toContain('174 failed (147 parse field-missing title, 27 http-status 500');
    expect(hint).toContain('parse field-missing title: 147 of 147 lack title: set site.render: auto.');
    expect(text).toContain(hint);
    expect(text).not.toContain('\u001b');
    expect(reasons).toEqual(ROWS);
  });

  it('says so in short after a good end, too, without advice', () => {
    expect(notice(0, { reasons: ROWS })).toMatchObject({
      good: true,
      hint: '',
      text: expect.stringContaining('(147 parse') as string,
    });
  });

  it('keeps the advice of an end that has another cause than the products', () => {
    expect(notice(13, { reasons: ROWS }).hint).toContain('orchestrator publish');
  });

  it('sends no discovery to retry', () => {
    const discovery = { waiting: 3 } as NonNullable<RunReport['discovery']>;
    for (const exitCode of [11, 12, 14, 15, 17, 18] as const) {
      expect(notice(exitCode).hint).toContain('orchestrator retry');
      expect(notice(exitCode, { discovery }).hint).not.toContain('retry');
    }
  });
});
