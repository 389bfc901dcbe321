/** Notices against a real listener: what it gets, how often it is asked again, and who learns of a failure. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunResult } from '../../../../orchestrator/core/read/run-result.ts';
import {
  alarmNotice,
  endedNotice,
  type Notice,
  NOTICE_KINDS,
  type Sender,
  stuckNotice,
  testNotice,
  unstartedNotice,
} from '../../../../orchestrator/features/notify/notice.ts';
import {
  deliver,
  type Delivery,
  notify,
  notifyPatiently,
  ping,
  signBody,
  type Target,
} from '../../../../orchestrator/features/notify/deliver.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { existsSync, readFileSync } from 'node:fs';
import { SMTPServer } from 'smtp-server';
import { makeSelfSigned } from '../../../support/self-signed.ts';
import { waitFor } from '../../../support/processes.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const SENDER: Sender = {
  name: 'product_snapshots',
  timezone: 'Asia/Tokyo',
  dryRun: false,
  hosts: ['shop.example'],
  table: 'products_now',
  owner: 'main-1',
  mainServer: 'host-1',
  folder: "/srv/it's mine",
  configName: 'shop.yaml',
  pageUrl: 'https://crawl.example',
};
const RESULT: RunResult = {
  run: '20261121-020001-abcd',
  state: 'completed',
  exitCode: 0,
  reason: null,
  onTime: true,
  products: { planned: 3, stored: 2, gone: 1, failed: 0 },
  cost: 0.123,
  hint: '',
};
const DUE = Date.UTC(2026, 10, 20, 17);
const STUCK = { runId: 'x', dueAtMs: DUE, sentence: 'run x does not end', hint: 'Look at it' };
const ended = (more: Partial<RunResult> = {}, dueAtMs: number | null = DUE): Notice =>
  endedNotice({ ...RESULT, ...more }, { dueAtMs, startedAtMs: DUE + 1_000, endedAtMs: null }, SENDER);

let server: Server;
let url: string;
let answers: (number | 'hang' | 'cut' | { status: number; retryAfter: string })[];
let got: { body: string; request: IncomingMessage }[];

beforeEach(async () => {
  [answers, got] = [[], []];
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      got.push({ body, request });
      const answer = answers.shift() ?? 200;
      if (answer === 'cut') request.socket.destroy();
      else if (typeof answer === 'object')
        response.writeHead(answer.status, { 'retry-after': answer.retryAfter }).end('later');
      else if (answer !== 'hang') response.writeHead(answer, answer === 302 ? { location: '/other' } : {}).end('ok');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/secret-path`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

type Webhook = Extract<Target, { kind: 'webhook' }>;
const target = (more: Partial<Webhook> = {}): Webhook => ({
  kind: 'webhook',
  url,
  secret: null,
  on: NOTICE_KINDS,
  dryRuns: false,
  ...more,
});
const delivery = (more: Partial<Delivery> = {}): Delivery => {
  return { clock: systemClock, signal: new AbortController().signal, firstPauseMs: 1, timeoutMs: 20_000, ...more };
};

describe('the webhook', () => {
  it('gets one POST with JSON whose text is a whole sentence', async () => {
    expect(await deliver(target(), ended(), delivery())).toBeNull();
    expect(got).toHaveLength(1);
    const { body, request } = got[0]!;
    expect(request).toMatchObject({ method: 'POST', url: '/hook/secret-path' });
    expect(request.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(request.headers['x-crawlfleet-signature']).toBeUndefined();
    const summary =
      'crawlfleet product_snapshots: run 20261121-020001-abcd of 2026-11-21 02:00:00 Asia/Tokyo is complete; 2 of 3 products stored, 0 failed, $0.12.';
    const command = 'orchestrator explain 20261121-020001-abcd --config shop.yaml';
    const link = 'https://crawl.example/runs/20261121-020001-abcd';
    expect(JSON.parse(body)).toEqual({
      text: `${summary}\nshop.example, table products_now, owner main-1. ${link} On host-1: cd '/srv/it'\\''s mine' && ${command}`,
      summary,
      command,
      link,
      exit: 'complete',
      hosts: ['shop.example'],
      table: 'products_now',
      owner: 'main-1',
      mainServer: 'host-1',
      folder: "/srv/it's mine",
      timezone: 'Asia/Tokyo',
      event: 'ended',
      kinds: ['ended', 'finished'],
      good: true,
      schedule: 'product_snapshots',
      dryRun: false,
      due: ['2026-11-20T17:00:00.000Z'],
      startedAt: '2026-11-20T17:00:01.000Z',
      endedAt: null,
      ...RESULT,
    });
  });

  it.each([
    [
      'a run that has not gone well, with what to do',
      ended({ exitCode: 15, reason: 'deadline', onTime: false, hint: 'Retry.' }),
      /^crawlfleet product_snapshots: run \S+ of .* ended with exit code 15, deadline missed \(deadline\); .*, not on time, \$0\.12\. Retry\.\nshop\.example, .* https:\/\/crawl\.example\/runs\/\S+ On .* && orchestrator explain \S+ --config shop\.yaml$/,
    ],
    ['a run by hand', ended({}, null), /: run 20261121-020001-abcd is complete; 2 of 3/],
    [
      'a process without a run',
      ended({ run: null, exitCode: null, products: null, cost: null, reason: 'killed' }),
      /: the run of 2026-11-21 02:00:00 Asia\/Tokyo ended with exit code unknown \(killed\)\.\n.* https:\/\/crawl\.example\/ On .* && orchestrator doctor --config shop\.yaml$/,
    ],
    [
      'a skipped due time',
      unstartedNotice('skipped', [DUE], 'the run of x is at work', SENDER),
      /: skipped 2026-11-21 02:00:00 Asia\/Tokyo: the run of x is at work\.\n.* && orchestrator status --config/,
    ],
    [
      'several missed ones',
      unstartedNotice('missed', Array.from<number>({ length: 9 }).fill(DUE), 'asleep', SENDER),
      /: missed 9 due times, the last ones .*: asleep\. Start it by hand .*: orchestrator run\n.* && orchestrator run --config shop\.yaml$/,
    ],
    [
      'a missed one of a dry run',
      unstartedNotice('missed', [DUE], 'asleep', { ...SENDER, dryRun: true }),
      /: orchestrator run --dry-run\n.* && orchestrator run --dry-run --config shop\.yaml$/,
    ],
    ['a stuck run', stuckNotice(STUCK, SENDER), /: run x does not end\. Look at it\n.* && orchestrator explain x /],
  ])('says in a sentence what happened to %s', (_what, { text }, expected) => {
    expect(text).toMatch(expected);
  });

  it('signs the body when there is a secret', async () => {
    await deliver(target({ secret: 'key' }), ended(), delivery());
    expect(got[0]!.request.headers['x-crawlfleet-signature']).toBe(signBody('key', got[0]!.body));
    // RFC 4231 does not cover it, so the value is one of openssl dgst -sha256 -hmac key.
    expect(signBody('key', 'The quick brown fox jumps over the lazy dog')).toBe(
      'sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8',
    );
  });

  it.each([
    ['an error', 500],
    ['a wish for patience', 429],
    ['a cut connection', 'cut'],
    ['no answer', 'hang'],
  ] as const)('is asked again after %s', async (_what, answer) => {
    answers = [answer, answer];
    // Short where it is waited for; even so the third try has to be answered within it.
    const limit = answer === 'hang' ? { timeoutMs: 2_000 } : {};
    expect(await deliver(target(), ended(), delivery(limit))).toBeNull();
    expect(got).toHaveLength(3);
  });

  describe('that asks for a pause', () => {
    let pauses: number[];
    let nowMs: number;
    const clock: Clock = {
      now: () => nowMs,
      monotonic: () => nowMs,
      sleep: (ms) => {
        pauses.push(ms);
        nowMs += ms;
        return Promise.resolve();
      },
    };
    beforeEach(() => {
      [pauses, nowMs] = [[], DUE];
    });

    it('is asked again after it, or after our own pause where that is longer', async () => {
      const date = new Date(DUE + 30_000).toUTCString();
      answers = [
        { status: 429, retryAfter: '20' },
        { status: 503, retryAfter: date },
        { status: 429, retryAfter: '0' },
      ];
      expect(await deliver(target(), ended(), delivery({ clock, withinMs: 45_000, firstPauseMs: 500 }))).toBeNull();
      expect(pauses).toEqual([20_000, 10_000, 2_000]);
    });

    it('that is longer than the notice may take is not waited for, and named', async () => {
      answers = [{ status: 429, retryAfter: '3600' }];
      expect(await deliver(target(), ended(), delivery({ clock, withinMs: 45_000 }))).toBe(
        'it answered 429 and asks for a pause of 1h',
      );
      expect(got).toHaveLength(1);
      answers = [{ status: 429, retryAfter: '40' }];
      expect(await ping(url, 'end', delivery({ clock, withinMs: 30_000 }))).toMatch(/asks for a pause of 40s$/);
      expect(pauses).toEqual([]);
    });

    it('gets it from the daemon, for a day in all', async () => {
      answers = [{ status: 429, retryAfter: '7200' }];
      const alarms: string[] = [];
      await notifyPatiently([target()], ended(), delivery({ clock }), (text) => alarms.push(text));
      expect([pauses, alarms.length, got.length]).toEqual([[7_200_000], 1, 2]);
      answers = [{ status: 429, retryAfter: '604800' }];
      await notifyPatiently([target()], ended(), delivery({ clock }), (text) => alarms.push(text));
      expect([pauses.length, alarms.at(-1)]).toEqual([1, expect.stringMatching(/a pause of 168h$/)]);
    });
  });

  it.each([
    ['four times at most', 503, 4],
    ['once, where the request is at fault', 404, 1],
    ['once, where it sends us elsewhere', 302, 1],
  ])('is tried %s; the line about it does not name its path', async (_what, status, times) => {
    answers = [status, status, status, status];
    const host = new URL(url).host;
    expect(await notify([target()], ended(), delivery())).toEqual([
      `the webhook at ${host} did not take a notice: it answered ${status}`,
    ]);
    expect(got).toHaveLength(times);
  });

  it('is sent user and password of its URL as a header, and no line names them', async () => {
    const withKey = target({ url: url.replace('//', '//bot:p%40ss@') });
    expect(await notify([withKey], ended(), delivery())).toEqual([]);
    const key = Buffer.from('bot:p@ss').toString('base64');
    expect(got[0]!.request.headers.authorization).toBe(`Basic ${key}`);
    server.closeAllConnections();
    server.close();
    const [line] = await notify([withKey], ended(), delivery({ tries: 1 }));
    expect(line).toContain('did not take a notice');
    expect(line).not.toMatch(/p(%40|@)ss|secret-path/);
  });

  it.each([
    [ended(), 'finished'],
    [ended({ exitCode: 12 }), 'failed'],
    [unstartedNotice('skipped', [DUE], null, SENDER), 'skipped'],
    [unstartedNotice('missed', [DUE], null, SENDER), 'missed'],
    [stuckNotice(STUCK, SENDER), 'stuck'],
  ] as const)('gets only what its `on` names: %#', async (notice, kind) => {
    expect(
      await deliver(target({ on: NOTICE_KINDS.filter((k) => !notice.kinds.includes(k)) }), notice, delivery()),
    ).toBeNull();
    expect(got).toEqual([]);
    await deliver(target({ on: [kind] }), notice, delivery());
    expect(got).toHaveLength(1);
  });

  it('gets notices of dry runs only where it has asked for them, marked in the first word', async () => {
    const dry = { ...SENDER, dryRun: true };
    const times = { dueAtMs: null, startedAtMs: null, endedAtMs: null };
    const alarm = alarmNotice('x', { alarms: [{ kind: 'late', text: 'it will be late' }], reasons: [] }, dry);
    const notices = [endedNotice(RESULT, times, dry), alarm, stuckNotice(STUCK, dry)];
    for (const notice of [...notices, unstartedNotice('missed', [DUE], null, dry)]) {
      got.length = 0;
      expect(await notify([target(), target({ dryRuns: true })], notice, delivery())).toEqual([]);
      await notifyPatiently([target()], notice, delivery(), () => undefined);
      expect(got.map(({ body }) => JSON.parse(body) as Notice)).toEqual([
        expect.objectContaining({ dryRun: true, text: expect.stringMatching(/^DRY-RUN crawlfleet /) as string }),
      ]);
    }
  });

  it('gets a test whatever its `on` says, of dry runs too', async () => {
    await deliver(target({ on: ['stuck'] }), testNotice({ ...SENDER, dryRun: true }), delivery());
    expect(JSON.parse(got[0]!.body)).toMatchObject({ event: 'test', good: true, run: null, due: [] });
  });

  it('does not suffer from another target, and gives up at once when it is aborted', async () => {
    const dead = target({ url: 'http://127.0.0.1:1/' });
    expect(await notify([dead, target()], ended(), delivery({ tries: 1 }))).toHaveLength(1);
    expect(got).toHaveLength(1);
    answers = ['hang'];
    const leave = new AbortController();
    const told = deliver(target(), ended(), delivery({ signal: leave.signal }));
    leave.abort();
    expect(await told).toContain('abort');
  });

  it('gets the notice from the daemon until it takes it, with an alarm for each round', async () => {
    answers = Array.from<number>({ length: 9 }).fill(503);
    const alarms: string[] = [];
    const pauses: number[] = [];
    const clock = {
      ...systemClock,
      sleep: (ms: number) => Promise.resolve(void pauses.push(ms)),
    };
    await notifyPatiently([target()], ended(), delivery({ clock }), (text) => alarms.push(text));
    expect(got).toHaveLength(10);
    expect(alarms).toHaveLength(2);
    expect(pauses.filter((ms) => ms > 60_000)).toEqual([300_000, 600_000]);
  });
});

describe('Slack', () => {
  it('gets the text alone, with nothing in it that it would read as markup', async () => {
    const reason = '<!channel> & <https://evil.example|click>';
    const notice = ended({ exitCode: 18, reason });
    expect(await deliver({ kind: 'slack', url, on: ['banned'], dryRuns: false }, notice, delivery())).toBeNull();
    const { text, ...rest } = JSON.parse(got[0]!.body) as { text: string };
    expect(rest).toEqual({});
    expect(text).toContain('(&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;)');
  });
});

describe('a mail', () => {
  const password = 'p@ss/word';
  let mails: { to: string[]; text: string; user: string | undefined }[];
  let refuse: { responseCode: number } | null;
  /** What each recipient is answered, one reply a try. */
  let refusals: Record<string, number[]>;
  let smtp: SMTPServer;

  beforeEach(async () => {
    [mails, refuse, refusals] = [[], null, {}];
    smtp = new SMTPServer({
      ...makeSelfSigned('127.0.0.1'),
      onAuth: ({ username, password: given }, _session, done) =>
        given === password ? done(null, { user: username }) : done(new Error('Invalid user or password')),
      onRcptTo({ address }, _session, done) {
        const responseCode = refusals[address]?.shift();
        done(responseCode === undefined ? null : Object.assign(new Error('not here'), { responseCode }));
      },
      onData(stream, session, done) {
        let text = '';
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
        stream.on('end', () => {
          if (refuse) return done(Object.assign(new Error('not now'), refuse));
          mails.push({ to: session.envelope.rcptTo.map(({ address }) => address), text, user: session.user as string });
          done();
        });
      },
    });
    smtp.listen(0, '127.0.0.1');
    await once(smtp.server, 'listening');
  });
  afterEach(() => new Promise<void>((resolve) => smtp.close(() => resolve())));

  const mail = (secret = password): Extract<Target, { kind: 'email' }> => ({
    kind: 'email',
    smtp: `smtp://ops:${encodeURIComponent(secret)}@127.0.0.1:${(smtp.server.address() as AddressInfo).port}/?tls.rejectUnauthorized=false`,
    from: 'crawl@shop.example',
    to: ['a@shop.example', 'b@shop.example'],
    on: NOTICE_KINDS,
    dryRuns: false,
  });

  it('goes to everybody, over TLS where it is offered, as text', async () => {
    expect(await deliver(mail(), ended({ exitCode: 17, reason: 'site-down' }), delivery())).toBeNull();
    const [{ to, text, user } = mails[0]!] = mails;
    expect(to).toEqual(['a@shop.example', 'b@shop.example']);
    expect(user).toBe('ops');
    expect(text).toMatch(
      /^Subject: crawlfleet product_snapshots \(shop\.example\): the site is down, 2\r\n of 3 products stored\r$/m,
    );
    expect(text).toContain('ended with exit code 17');
    expect(text).not.toContain('"event"');
  });

  it('counts each recipient that is refused, and is not sent twice to those that took it', async () => {
    refusals = { 'b@shop.example': [550] };
    expect(await notify([mail()], ended(), delivery())).toEqual([
      expect.stringMatching(/^the mail to .* did not take a notice: b@shop\.example is refused: 550 not here$/),
    ]);
    refusals = { 'a@shop.example': [550, 550], 'b@shop.example': [450, 550] };
    expect(await deliver(mail(), ended(), delivery())).toBe(
      'a@shop.example is refused: 550 not here; b@shop.example is refused: 550 not here',
    );
    refusals = { 'b@shop.example': [450] };
    expect(await deliver(mail(), ended(), delivery())).toBeNull();
    expect(mails.map(({ to }) => to)).toEqual([['a@shop.example'], ['a@shop.example'], ['b@shop.example']]);
  });

  it('says which form of the URL the port wants', async () => {
    const smtps = { ...mail(), smtp: mail().smtp.replace('smtp:', 'smtps:') };
    const fault = await deliver(smtps, ended(), delivery({ tries: 1 }));
    expect(fault).toMatch(/: this port does not begin with TLS, write smtp:\/\/ instead of smtps:\/\/$/);
    expect(mails).toEqual([]);
  });

  it('goes from the daemon to each recipient once, whoever else is refused', async () => {
    refusals = { 'b@shop.example': [550, 550] };
    const alarms: string[] = [];
    const clock = { ...systemClock, sleep: () => Promise.resolve() };
    await notifyPatiently([mail()], ended(), delivery({ clock }), (text) => alarms.push(text));
    expect(alarms).toHaveLength(2);
    expect(mails.map(({ to }) => to)).toEqual([['a@shop.example'], ['b@shop.example']]);
  });

  it('is tried again when the server asks for it, and not when it refuses; no line names the password', async () => {
    refuse = { responseCode: 451 };
    expect(await deliver(mail(), ended(), delivery({ tries: 2 }))).toContain('not now');
    const fault = await deliver(mail('wrong'), ended(), delivery());
    expect(fault).toContain('Invalid user or password');
    expect(fault).not.toContain('wrong');
    expect(mails).toEqual([]);
  });
});

/** A process that has ended may still be there for its parent. */
const isGone = (pid: number): boolean => {
  try {
    return /^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
};

describe('a command', () => {
  const script = (code: string): Target => ({
    kind: 'command',
    command: [process.execPath, '-e', code],
    on: NOTICE_KINDS,
    dryRuns: false,
  });

  it('gets the document on stdin', async () => {
    const folder = tempDir('crawlfleet-notify-');
    const file = JSON.stringify(folder.file('got'));
    const code = `require('node:fs').writeFileSync(${file}, require('node:fs').readFileSync(0))`;
    const notice = ended({ reason: '$(touch /tmp/never); `id`' });
    expect(await deliver(script(code), notice, delivery())).toBeNull();
    expect(JSON.parse(readFileSync(folder.file('got'), 'utf8'))).toEqual(notice);
    folder.remove();
  });

  it.each([
    ['fails', `console.error('out of paper'); process.exit(3)`, /ended with 3: out of paper/],
    ['does not end', 'console.error("thinking"); setInterval(() => {}, 1000)', /has not ended within 2s: thinking$/],
    ['cannot be started', null, /ENOENT/],
  ])('that %s is reported, with what it said', async (_what, code, expected) => {
    const target = code === null ? { ...script(''), command: ['/nonexistent/page-me'] } : script(code);
    expect(await deliver(target, ended(), delivery({ tries: 1, timeoutMs: 2_000 }))).toMatch(expected);
  });

  it.each([
    ['that hold its output', 'sleep 600 &', null],
    ['that do not', 'sleep 600 >/dev/null 2>&1 &', null],
    ['that it waits for', 'sleep 600 &', 'it was given up'],
  ])('is ended at the limit with its children %s', async (_what, line, fault) => {
    const folder = tempDir('crawlfleet-notify-');
    const file = folder.file('pids');
    const limit = new AbortController();
    const shell = `cd "$0"; ${line} echo $$ $! > new; mv new pids; ${fault === null ? '' : 'wait'}`;
    const command = ['sh', '-c', shell, folder.file()];
    const sent = deliver({ ...script(''), kind: 'command', command }, ended(), delivery({ signal: limit.signal }));
    await waitFor(() => existsSync(file), { what: 'the child' });
    const [itself, child] = readFileSync(file, 'utf8').trim().split(' ').map(Number);
    if (fault === null) await waitFor(() => !existsSync(`/proc/${itself}`), { what: 'the program to end' });
    expect(isGone(child!)).toBe(false);
    limit.abort();
    expect(await sent).toBe(fault);
    await waitFor(() => isGone(child!), { what: 'the child to end' });
    folder.remove();
  });
});

describe('the ping', () => {
  it('names the state in the path', async () => {
    for (const state of ['start', 'end', 'fail'] as const) expect(await ping(url, state, delivery())).toBeNull();
    expect(got.map(({ request }) => `${request.method} ${request.url}`)).toEqual([
      'GET /hook/secret-path/start',
      'GET /hook/secret-path',
      'GET /hook/secret-path/fail',
    ]);
    answers = [500, 500];
    expect(await ping(url, 'end', delivery({ tries: 2 }))).toMatch(
      /^the ping of 127\.0\.0\.1:\d+ failed: it answered 500$/,
    );
  });
});
