import { describe, expect, it } from 'vitest';
import {
  describeMissingField,
  describePoorPage,
  type FailureKind,
  failureKind,
  ledgerDetail,
  type MissReason,
  signOf,
} from '../../../shared/domain/failure-kind.ts';

const page = (rule: string, detail: string, status: number | null = 200) =>
  ledgerDetail({ outcome: 'failed', detail, evidence: { rule, status } });
const bare = { isScriptBuilt: true, filled: [] };
const full = { isScriptBuilt: false, filled: ['title', 'brand'] };

describe('failureKind reads from a line of the ledger what ledgerDetail and describePoorPage have put there', () => {
  it.each<[MissReason, string | null, string | null, Partial<FailureKind>]>([
    ['gone', ledgerDetail({ outcome: 'gone', status: 404 }), '404', { status: 404 }],
    ['http-status', page('http-status', 'status 500', 500), '500', { status: 500, rule: null }],
    ['http-status', page('status-403', 'status 403', 403), '403', { status: 403, rule: null }],
    ['http-status', page('captcha', 'status 404, judged captcha', 404), '404 captcha', { rule: 'captcha' }],
    ['redirect', page('redirect-home', '302 to https://a.example/: x', 302), '302 redirect-home', { status: 302 }],
    ['network', 'nothing listens on that port: connect ECONNREFUSED 10.0.0.1:80', null, { status: null, rule: null }],
    ['timeout', 'no reply in 30s', null, {}],
    ['deadline', null, null, { field: null, isScriptBuilt: false }],
    [
      'parse',
      page('field-missing', describePoorPage(describeMissingField('title'), bare)),
      'field-missing title',
      { field: 'title', isScriptBuilt: true, filled: null, status: null },
    ],
    [
      'parse',
      page('field-missing', describePoorPage(describeMissingField('price'), full)),
      'field-missing price',
      { field: 'price', isScriptBuilt: false, filled: 'title, brand' },
    ],
    ['parse', page('no-values', describePoorPage('no field has a value', bare)), 'no-values', { isScriptBuilt: true }],
  ])('%s: %s', (reason, detail, sign, facts) => {
    const kind = failureKind(reason, detail);
    expect(kind).toMatchObject(facts);
    expect(signOf(kind)).toBe(sign);
  });

  it('keeps the facts within what a heartbeat and the ledger may cut, however long the names are', () => {
    const name = 'f'.repeat(64);
    const filled = Array.from({ length: 9 }, () => name);
    const detail = page('field-missing', describePoorPage(describeMissingField(name), { isScriptBuilt: true, filled }));
    expect(failureKind('parse', detail.slice(0, 200))).toMatchObject({ field: name, isScriptBuilt: true });
  });
});
