/** `notify`, `ping`, and the keys of `schedule` that earlier versions notified by. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { targetsOf } from '../../../../orchestrator/features/notify/announce.ts';
import { NOTICE_KINDS } from '../../../../orchestrator/features/notify/notice.ts';
import { NOTIFY_SECTION, PING_SECTION } from '../../../../orchestrator/features/notify/section.ts';
import { readConfig } from '../../../support/features.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

let folder: TempDir;
beforeEach(() => (folder = tempDir('crawlfleet-notify-')));
afterEach(() => folder.remove());

function configure(schedule: string): string {
  const file = folder.file('fleet.yaml');
  writeFileSync(
    file,
    `site: { product_url: "http://127.0.0.1:1/{id}", mapping: { fields: { title: h1 } } }
products: { query: "select id from products" }
database: { url: "sqlite:./data/fleet.db" }
schedule: { ${schedule} }
`,
  );
  return file;
}

describe('schedule.webhook of earlier versions', () => {
  const read = (text: string, environment = {}) => readConfig(configure(text), environment);
  const note = (place: string): string =>
    `${place} is read as one more target of notify, but not from version 0.2 on: write notify: [{ webhook: … }] instead`;

  it('is one target of notify, with a note', () => {
    const config = read('webhook: "http://h/all", webhook_secret: key');
    expect(NOTIFY_SECTION.of(config)).toEqual([
      { webhook: 'http://h/all', secret: 'key', on: [...NOTICE_KINDS], dry_runs: false },
    ]);
    expect(config.values.schedule).not.toHaveProperty('webhook');
    expect(config.notes).toEqual([note('line 4: schedule.webhook')]);
    const fromEnvironment = read('', { FLEET_SCHEDULE_WEBHOOK: 'http://h/env', FLEET_SCHEDULE_WEBHOOK_ON: 'problems' });
    expect(NOTIFY_SECTION.of(fromEnvironment)).toMatchObject([{ webhook: 'http://h/env', secret: null }]);
    expect(NOTIFY_SECTION.of(fromEnvironment)[0]!.on).not.toContain('finished');
    expect(fromEnvironment.notes).toEqual([note('environment FLEET_SCHEDULE_WEBHOOK')]);
  });

  it('is no target where it is null, and goes from the schema for editors', () => {
    const config = read('webhook: null, webhook_on: all');
    expect(NOTIFY_SECTION.of(config)).toEqual([]);
    expect(config.notes).toEqual([note('line 4: schedule.webhook')]);
    expect(read('').notes).toBeUndefined();
    const schema = readFileSync(new URL('../../../../docs/fleet.schema.json', import.meta.url), 'utf8');
    expect(schema).not.toContain('"webhook_on"');
  });

  it.each([
    ['webhook: "file:///etc/passwd"', 'line 4: schedule.webhook: must be a URL that begins with http'],
    ['webhook: "${NO_SUCH}"', 'line 4: schedule.webhook: '],
    ['webhook: "http://h", webhook_on: sometimes', 'line 4: schedule.webhook_on: must be one of all, problems'],
    ['webhook_secret: ""', 'line 4: schedule.webhook_secret: must not be empty'],
  ])('with %s is refused', (text, fault) => {
    expect(() => read(text)).toThrow(fault);
  });

  it('takes its secret whole from the environment', () => {
    const environment = { FLEET_SCHEDULE_WEBHOOK: 'https://h/', FLEET_SCHEDULE_WEBHOOK_SECRET: 'pa${x} # [y' };
    expect(NOTIFY_SECTION.of(read('', environment))).toMatchObject([{ secret: 'pa${x} # [y' }]);
  });
});

describe('the list notify', () => {
  it('is empty by default', () => {
    expect(NOTIFY_SECTION.of(readConfig(configure(''), {}))).toEqual([]);
  });

  const listed = (notify: string): string =>
    configure(`webhook: "http://h/all", webhook_on: problems } \nnotify: [${notify}]\nresults: {`);

  it('is more targets beside schedule.webhook, and comes from the environment too', () => {
    const problems = NOTICE_KINDS.filter((kind) => kind !== 'ended' && kind !== 'finished');
    const one = '{ webhook: "https://h/one", secret: key, on: [failed] }';
    expect(targetsOf(readConfig(listed(`${one}, { webhook: "https://h/two", dry_runs: true }`), {}))).toEqual([
      { kind: 'webhook', url: 'https://h/one', secret: 'key', on: ['failed'], dryRuns: false },
      { kind: 'webhook', url: 'https://h/two', secret: null, on: [...NOTICE_KINDS], dryRuns: true },
      { kind: 'webhook', url: 'http://h/all', secret: null, on: problems, dryRuns: false },
    ]);
    const environment = { FLEET_NOTIFY: `[${one}]` };
    expect(NOTIFY_SECTION.of(readConfig(configure(''), environment))).toMatchObject([{ webhook: 'https://h/one' }]);
  });

  it.each([
    ['{ webhook: "file:///x" }', 'line 5: notify.0.webhook: must be a URL that begins with http'],
    ['{ webhook: "http://h", on: [sometimes] }', 'line 5: notify.0.on.0: must be one of ended, finished, failed'],
    ['{ webhook: "http://h", on: [] }', 'line 5: notify.0.on: must be at least 1 entries'],
    ['{ webhok: "http://h" }', 'line 5: notify.0.webhok: unknown key; did you mean webhook?'],
    ['{ on: [ended] }', 'line 5: notify.0: must have exactly one of webhook, slack, email and command'],
    ['{ webhook: "http://h", slack: "http://h" }', 'line 5: notify.0: must have exactly one of'],
    ['{ slack: "http://h", secret: key }', 'line 5: notify.0.secret: goes with webhook only'],
    ['{ command: [] }', 'line 5: notify.0.command: must be at least 1 entries'],
    [
      '{ email: { to: a, from: b, smtp: "http://h" } }',
      'line 5: notify.0.email.smtp: must be a URL that begins with smtp://',
    ],
    ['{ webhook: "http://h", secret: "" }', 'line 5: notify.0.secret: must not be empty'],
  ])('with %s is refused', (text, fault) => {
    expect(() => readConfig(listed(text), {})).toThrow(fault);
  });
});

describe('the ping', () => {
  const pinging = (ping: string) => PING_SECTION.of(readConfig(configure(`} \nping: ${ping}\nresults: {`), {}));

  it('is a URL, or one with a word about dry runs', () => {
    expect(pinging('"https://h/p"')).toEqual({ url: 'https://h/p', dry_runs: false });
    expect(pinging('{ url: "https://h/p", dry_runs: true }')).toEqual({ url: 'https://h/p', dry_runs: true });
    expect(PING_SECTION.of(readConfig(configure(''), { FLEET_PING: 'https://h/p' }))?.url).toBe('https://h/p');
    expect(PING_SECTION.of(readConfig(configure(''), {}))).toBeNull();
  });

  it.each([
    ['"file:///x"', 'line 5: ping: must be a URL that begins with http'],
    ['{ dry_runs: true }', 'line 5: ping.url: must be a URL that begins with http'],
    ['{ url: "http://h", dry_run: true }', 'line 5: ping.dry_run: unknown key'],
  ])('with %s is refused', (text, fault) => {
    expect(() => pinging(text)).toThrow(fault);
  });
});
