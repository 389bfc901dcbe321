/** Notices against a real listener: what it gets, how often it is asked again, and that nothing waits for it. */
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { Notice } from '../../../orchestrator/schedule/notice.ts';
import { noticeOf } from '../../../orchestrator/schedule/notice.ts';
import type { RunResult, Slot } from '../../../orchestrator/schedule/slots.ts';
import type { WebhookOptions } from '../../../orchestrator/schedule/webhook.ts';
import { signBody, SIGNATURE_HEADER, Webhook } from '../../../orchestrator/schedule/webhook.ts';

const NAMED = { name: 'product_snapshots', timezone: 'Asia/Tokyo' };
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

function slot(more: Partial<Slot> = {}): Slot {
  const dueAtMs = Date.UTC(2026, 10, 20, 17);
  const blank = { fence: 1, reason: null, runner: null, runId: null, startedAtMs: null, endedAtMs: null, told: false };
  return { ...blank, dueAtMs, state: 'done', result: RESULT, ...more };
}

let server: Server;
let url: string;
let answers: (number | 'hang' | 'cut')[];
let got: { body: string; request: IncomingMessage }[];
let alarms: string[];
const open: Webhook[] = [];

beforeEach(async () => {
  [answers, got, alarms] = [[], [], []];
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      got.push({ body, request });
      const answer = answers.shift() ?? 200;
      if (answer === 'cut') request.socket.destroy();
      else if (answer !== 'hang') response.writeHead(answer, answer === 302 ? { location: '/other' } : {}).end('ok');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/secret-path`;
});
afterEach(() => {
  for (const hook of open.splice(0)) hook.close();
  server.closeAllConnections();
  server.close();
});

function hook(more: Partial<WebhookOptions> = {}): Webhook {
  const alarm = (text: string): void => void alarms.push(text);
  const options = { url, secret: null, on: 'all', clock: systemClock, alarm, pausesMs: [1, 2, 3] } as const;
  const made = new Webhook({ ...options, timeoutMs: 20_000, ...more });
  open.push(made);
  return made;
}

describe('the webhook', () => {
  it('gets one POST with JSON whose text is a whole sentence', async () => {
    expect(await hook().tell(noticeOf([slot()], NAMED))).toBe(true);
    expect(got).toHaveLength(1);
    const { body, request } = got[0]!;
    expect(request).toMatchObject({ method: 'POST', url: '/hook/secret-path' });
    expect(request.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(request.headers[SIGNATURE_HEADER]).toBeUndefined();
    expect(JSON.parse(body)).toEqual({
      text: 'crawlfleet product_snapshots: run 20261121-020001-abcd of 2026-11-21 02:00:00 Asia/Tokyo is complete; 2 of 3 products stored, 0 failed, $0.12.',
      event: 'ended',
      good: true,
      schedule: 'product_snapshots',
      due: ['2026-11-20T17:00:00.000Z'],
      startedAt: null,
      endedAt: null,
      ...RESULT,
    });
  });

  it('says what happened and what to do when a run has not gone well', () => {
    const bad = { ...RESULT, exitCode: 15, reason: 'deadline', onTime: false, hint: 'Retry.' } as const;
    expect(noticeOf([slot({ result: bad })], NAMED)).toMatchObject({
      good: false,
      text: expect.stringMatching(/ended with exit code 15 \(deadline\); .*, not on time, \$0\.12\. Retry\.$/),
    });
    const killed = { ...RESULT, run: null, exitCode: null, products: null, cost: null, reason: 'killed' };
    expect(noticeOf([slot({ result: killed })], NAMED).text).toContain('ended with exit code unknown (killed)');
    const skipped = slot({ state: 'skipped', result: null, reason: 'the run of x is at work' });
    expect(noticeOf([skipped], NAMED)).toMatchObject({
      event: 'skipped',
      text: 'crawlfleet product_snapshots: skipped 2026-11-21 02:00:00 Asia/Tokyo: the run of x is at work.',
    });
    const missed = Array.from({ length: 9 }, () => slot({ state: 'missed', result: null, reason: 'asleep' }));
    expect(noticeOf(missed, NAMED)).toMatchObject({ event: 'missed', text: expect.stringContaining('9 due times') });
  });

  it('signs the body when there is a secret', async () => {
    await hook({ secret: 'key' }).tell(noticeOf([slot()], NAMED));
    expect(got[0]!.request.headers[SIGNATURE_HEADER]).toBe(signBody('key', got[0]!.body));
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
    expect(await hook(limit).tell(noticeOf([slot()], NAMED))).toBe(true);
    expect(got).toHaveLength(3);
    expect(alarms).toEqual([]);
  });

  it.each([
    ['four times at most', 503, 4],
    ['once, where the request is at fault', 404, 1],
    ['once, where it sends us elsewhere', 302, 1],
  ])('is tried %s, and the alarm does not tell its path', async (_what, status, times) => {
    answers = [status, status, status, status];
    expect(await hook().tell(noticeOf([slot()], NAMED))).toBe(false);
    expect(got).toHaveLength(times);
    expect(alarms).toEqual([expect.stringContaining(`did not take a notice: it answered ${status}`)]);
    expect(alarms[0]).not.toContain('secret-path');
  });

  it('is sent user and password of its URL as a header, and no alarm tells them', async () => {
    const withKey = url.replace('//', '//bot:p%40ss@');
    expect(await hook({ url: withKey }).tell(noticeOf([slot()], NAMED))).toBe(true);
    const key = Buffer.from('bot:p@ss').toString('base64');
    expect(got[0]!.request.headers.authorization).toBe(`Basic ${key}`);
    server.closeAllConnections();
    server.close();
    expect(await hook({ url: withKey, pausesMs: [] }).tell(noticeOf([slot()], NAMED))).toBe(false);
    expect(alarms).toHaveLength(1);
    expect(alarms[0]).not.toMatch(/p(%40|@)ss|secret-path/);
  });

  it('hears only of problems when that is asked for', async () => {
    const quiet = hook({ on: 'problems' });
    expect(await quiet.tell(noticeOf([slot()], NAMED))).toBe(true);
    expect(got).toEqual([]);
    await quiet.tell(noticeOf([slot({ state: 'missed', result: null })], NAMED));
    expect(got).toHaveLength(1);
  });

  it('gets notices in their order, and gives up at once when the daemon ends', async () => {
    answers = [500];
    const busy = hook();
    await Promise.all(
      ['first', 'second'].map((reason) =>
        busy.tell(noticeOf([slot({ state: 'skipped', result: null, reason })], NAMED)),
      ),
    );
    expect(got.map((g) => (JSON.parse(g.body) as Notice).reason)).toEqual(['first', 'first', 'second']);
    answers = ['hang'];
    const told = busy.tell(noticeOf([slot()], NAMED));
    busy.close();
    expect(await told).toBe(false);
    expect(alarms).toEqual([]);
  });
});
