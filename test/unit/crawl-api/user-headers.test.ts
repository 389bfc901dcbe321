/** Which requests of an instance get the headers of the user, and what is masked. */
import { describe, expect, it } from 'vitest';
import { UserHeaders } from '../../../crawl-api/fetch/user-headers.ts';
import { maskRecord } from '../../../crawl-api/queue/mask-records.ts';
import type { JournalRecord } from '../../../crawl-api/queue/records.ts';

const ORIGIN = 'https://shop.example';
const SECRET = 'marked/secret&1';
const site = {
  userHeaders: [
    { origin: ORIGIN, headers: { 'x-a': '1', 'x-key': { secret: 'Key ${A}' } }, cookies: { c: { secret: '${A}' } } },
  ],
};
const taken = (): UserHeaders => {
  const headers = new UserHeaders(site);
  headers.take('v1', { values: { 'Key ${A}': `Key ${SECRET}`, '${A}': SECRET }, masked: [SECRET] });
  return headers;
};

describe('UserHeaders', () => {
  it('go to their scheme, host and port, on any path', () => {
    const sends = { origin: ORIGIN, headers: { 'x-a': '1', 'x-key': `Key ${SECRET}` } };
    for (const url of [`${ORIGIN}/item/1`, `${ORIGIN}:443/reviews?page=2`, 'HTTPS://SHOP.example/%2E%2E'])
      expect(taken().at(url)).toMatchObject(sends);
    expect(taken().at(ORIGIN)!.cookies).toEqual([{ name: 'c', value: SECRET, isSecret: true }]);
  });

  it.each([
    'http://shop.example/item/1',
    'https://shop.example:8443/item/1',
    'https://www.shop.example/item/1',
    'https://other.example/?https://shop.example/',
    'https://shop.example@other.example/',
    'https://shop.example.other.example/',
    'nonsense',
  ])('do not go to %s', (url) => {
    expect(taken().at(url)).toBeUndefined();
  });

  it('are incomplete until the secrets have come, and change with them', () => {
    const headers = new UserHeaders(site);
    expect([headers.needsSecrets, headers.isComplete, headers.version]).toEqual([true, false, null]);
    headers.take('v1', { values: { 'Key ${A}': 'Key one', '${A}': 'one' }, masked: ['one'] });
    expect(headers.at(ORIGIN)!.headers['x-key']).toBe('Key one');
    headers.take('v2', { values: { 'Key ${A}': 'Key two', '${A}': 'two' }, masked: ['two'] });
    expect([headers.isComplete, headers.version, headers.at(ORIGIN)!.headers['x-key']]).toEqual([
      true,
      'v2',
      'Key two',
    ]);
  });

  it('need nothing without secrets', () => {
    const plain = new UserHeaders({ userHeaders: [{ origin: ORIGIN, headers: { 'x-a': '1' }, cookies: {} }] });
    expect([plain.needsSecrets, plain.isComplete, new UserHeaders({}).isComplete]).toEqual([false, true, true]);
    expect(new UserHeaders({}).at(ORIGIN)).toBeUndefined();
  });

  it.each([
    SECRET,
    encodeURIComponent(SECRET),
    encodeURIComponent(SECRET).toLowerCase(),
    'marked/secret&amp;1',
    Buffer.from(SECRET).toString('base64'),
  ])('mask a secret that is spelt %s', (spelt) => {
    expect(taken().mask(`https://x.example/?k=${spelt}#end`)).toBe('https://x.example/?k=***#end');
  });

  it('mask an earlier secret after a change, and no short value', () => {
    const headers = taken();
    headers.take('v2', { values: {}, masked: ['EUR', 'the-second'] });
    expect(headers.mask(`${SECRET} the-second EUR`)).toBe('*** *** EUR');
  });
});

describe('maskRecord', () => {
  const evidence = {
    rule: 'r',
    url: `https://x.example/${SECRET}`,
    status: 302,
    headers: { location: `/${SECRET}` },
    body: SECRET,
  };
  const failed = {
    n: 1,
    id: SECRET,
    url: `/${SECRET}`,
    at: 'now',
    attempts: 1,
    outcome: 'failed',
    reason: 'network',
    detail: SECRET,
    evidence,
  };

  it('masks what it quotes of replies, and keeps ID and rows', () => {
    const stored = {
      ...failed,
      outcome: 'stored',
      finalUrl: `/${SECRET}`,
      rows: [{ key: null, row: { t: SECRET } }],
      links: [SECRET],
    };
    for (const t of ['result', 'postponed', 'held'])
      expect(maskRecord({ t, result: failed } as JournalRecord, taken())).toMatchObject({
        result: {
          id: SECRET,
          url: '/***',
          detail: '***',
          evidence: { url: 'https://x.example/***', headers: { location: '/***' }, body: '***' },
        },
      });
    expect(maskRecord({ t: 'result', result: stored } as unknown as JournalRecord, taken())).toMatchObject({
      result: { id: SECRET, finalUrl: '/***', rows: stored.rows, links: [SECRET] },
    });
    const incident = { verdict: 'banned', sinceMs: 1, untilMs: 2, evidence } as const;
    expect(JSON.stringify(maskRecord({ t: 'incident', incident }, taken()))).not.toContain(SECRET);
  });

  it('changes no other record', () => {
    const offered: JournalRecord = { t: 'offered', chunk: 'c', products: [{ n: 1, id: SECRET }] } as never;
    expect(maskRecord(offered, taken())).toBe(offered);
  });
});
