/** The mail of a notice. docs/example-mail.txt is the one of the night below: `vitest run -u` writes it anew. */
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { endNotice } from '../../../../orchestrator/features/notify/announce.ts';
import type { RunReport } from '../../../../orchestrator/core/model/report.ts';
import { NO_RESULT } from '../../../../orchestrator/core/read/run-result.ts';
import { finalReasons } from '../../../../orchestrator/core/decide/end/reasons.ts';
import { mailOf } from '../../../../orchestrator/features/notify/mail-text.ts';
import { alarmNotice, endedNotice, type Sender, testNotice } from '../../../../orchestrator/features/notify/notice.ts';
import { describeMissingField, describePoorPage } from '../../../../shared/domain/failure-kind.ts';
import { aRun } from '../../core/builders.ts';

const MINUTE = 60_000;
const DUE = Date.UTC(2026, 10, 21, 17);
const SENDER: Sender = {
  name: 'nightly',
  timezone: 'Asia/Tokyo',
  dryRun: false,
  hosts: ['shop.example.jp'],
  table: 'product_snapshots',
  owner: 'main-1',
  mainServer: 'ip-10-0-0-7',
  folder: '/srv/shop',
  configName: 'fleet.yaml',
  pageUrl: 'https://crawl.example.jp/',
};

/** 174 products failed for two reasons, an address was banned, the end was late. */
function badNight() {
  const { settings, ...rest } = aRun();
  const site = { ...settings.site, productUrl: 'https://shop.example.jp/item/{id}' };
  const run = {
    ...rest,
    id: '20261121-170004-k3v9',
    dryRun: false,
    settings: { ...settings, site, results: { ...settings.results, table: 'product_snapshots' }, dueAtMs: DUE },
    startedAtMs: DUE + 4_000,
    deadlineAtMs: DUE + 240 * MINUTE,
    finishedAtMs: DUE + 252 * MINUTE,
  };
  const poor = describePoorPage(describeMissingField('title'), { isScriptBuilt: true, filled: [] });
  const ledger = [
    { reason: 'parse' as const, detail: `field-missing, HTTP 200: ${poor}`, products: 147, example: 'A-1043' },
    { reason: 'http-status' as const, detail: 'http-status, HTTP 500: status 500', products: 27, example: 'K-77' },
  ];
  const products = { stored: 826, gone: 0, failed: 174, reasons: { parse: 147, 'http-status': 27 } };
  const report = {
    run: run.id,
    state: 'completed',
    exitCode: 15,
    reason: 'deadline missed: published late',
    onTime: false,
    deadline: new Date(run.deadlineAtMs).toISOString(),
    finishedAt: new Date(run.finishedAtMs).toISOString(),
    products: { planned: 1_000, ...products },
    reasons: finalReasons(run, [], ledger, products),
    bans: [{ address: '203.0.113.7', rule: 'status-429', atMs: DUE + 92 * MINUTE, overAtMs: DUE + 122 * MINUTE }],
    cost: { actual: 0.94 },
    notes: ['slot 3 was lost (heartbeat-lost); a replacement has crawled its products'],
  };
  const values = {
    schedule: { name: 'nightly', timezone: 'Asia/Tokyo' },
    server: { page_url: SENDER.pageUrl },
    aws: { owner: 'main-1' },
    site: {},
    results: {},
  };
  const notice = endNotice(report as unknown as RunReport, run, { values, file: '/srv/shop/fleet.yaml' } as Config);
  return { ...notice, mainServer: SENDER.mainServer };
}

describe('the mail of a notice', () => {
  it('is understood without a terminal', async () => {
    const { subject, text } = mailOf(badNight());
    const mail = `Subject: ${subject}\n\n${text}`;
    for (const told of [
      /deadline missed.*12m late/,
      /^parse field-missing title +147 .*https:\/\/shop\.example\.jp\/item\/A-1043\n.*set site\.render: auto/m,
      /^http-status 500 +27 /m,
      /^203\.0\.113\.7 +status-429 +2026-11-22 03:32:00 Asia\/Tokyo/m,
      /cd \/srv\/shop && orchestrator explain 20261121-170004-k3v9$/m,
      /https:\/\/crawl\.example\.jp\/runs\/20261121-170004-k3v9$/m,
    ])
      expect(mail).toMatch(told);
    expect(mail).not.toContain('{"');
    // Advice is given once.
    expect(mail.split('set site.render: auto')).toHaveLength(2);
    await expect(mail).toMatchFileSnapshot('../../../../docs/example-mail.txt');
  });

  it('has the advice that is not in the table, and nothing that is not known', () => {
    const times = { dueAtMs: null, startedAtMs: null, endedAtMs: null };
    const result = { ...NO_RESULT, exitCode: 17 as const, reason: 'no answer', hint: 'Try later.' };
    const { subject, text } = mailOf(endedNotice(result, times, { ...SENDER, dryRun: true, pageUrl: null }));
    expect(subject).toBe('DRY-RUN crawlfleet nightly (shop.example.jp): the site is down');
    expect(text).toContain('\n\nWhat to do\nTry later.\n\nShop ');
    expect(text).toContain('cd /srv/shop && orchestrator doctor --dry-run');
    expect(text).not.toMatch(/null|undefined|^(Page|Run|Due|Cost|Bans|Notes)/m);
  });

  it('of an alarm has the reasons so far; of a test it says so', () => {
    const reason = { reason: 'timeout', sign: null, products: 4, waiting: 9, share: 0.5, url: null } as const;
    const reasons = [{ ...reason, evidence: null, todo: 'wait' }];
    const alarm = mailOf(alarmNotice('x', { alarms: [{ kind: 'late', text: 'it will be late' }], reasons }, SENDER));
    expect(alarm.subject).toBe('crawlfleet nightly (shop.example.jp): late');
    expect(alarm.text).toMatch(/^timeout +4 +9 /m);
    expect(mailOf(testNotice(SENDER)).subject).toMatch(/: test$/);
  });

  it('names no shop where records are at any hosts', () => {
    const { subject, text } = mailOf(testNotice({ ...SENDER, hosts: [] }));
    expect(subject).toContain('nightly (any hosts)');
    expect(text).toMatch(/^Shop +any hosts$/m);
  });

  it('escapes what could pass for a line of ours', () => {
    const times = { dueAtMs: null, startedAtMs: null, endedAtMs: null };
    const { text } = mailOf(endedNotice({ ...NO_RESULT, exitCode: 1, reason: 'a\u001b[2Jb' }, times, SENDER));
    expect(text).toContain('a\\u001b[2Jb');
  });
});
