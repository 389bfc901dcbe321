import { describe, expect, it } from 'vitest';
import { type EndInput, endOf, productsOf } from '../../../orchestrator/core/decide/end/exit-code.ts';

const fine: EndInput = {
  planned: 100,
  stored: 96,
  gone: 2,
  failed: 2,
  reasons: { 'http-status': 2 },
  request: null,
  uncrawledReason: 'deadline',
  onTime: true,
  maxFailed: 0.05,
  siteDown: false,
  noInstances: null,
};
const NOTHING = { stored: 0, gone: 0, failed: 100, reasons: { 'lost-instance': 100 } };
const BANNED = { request: 'banned', uncrawledReason: 'banned', reasons: { banned: 1 } } as const;
const TOO_DEAR = { uncrawledReason: 'budget', reasons: { budget: 3 } } as const;
/** Of the hundred URLs of a discovery, ninety are pages of links. */
const linked = (products: Partial<EndInput>, pages: Partial<EndInput> = {}): Partial<EndInput> => {
  const linkPages = { planned: 90, stored: 90, gone: 0, failed: 0, reasons: {}, ...pages };
  const own = { planned: 10, stored: 0, gone: 0, failed: 0, ...products };
  const sum = (of: 'planned' | 'stored' | 'gone' | 'failed'): number => own[of] + linkPages[of];
  const counts = { planned: sum('planned'), stored: sum('stored'), gone: sum('gone'), failed: sum('failed') };
  return { ...counts, reasons: {}, linkPages };
};
const HELD = { suspicion: 'blank' };
const DOWN = { siteDown: true, failed: 50 };

/** The state and exit code of a run, and how it went. */
const ENDS: Record<string, Record<string, Partial<EndInput>>> = {
  'completed 0': {
    'all well': {},
    'failures within the share': { failed: 5, stored: 93 },
    'records that are left alone above the share': { failed: 40, stored: 58, leftAlone: 38 },
    'no products at all': { planned: 0, stored: 0, gone: 0, failed: 0, reasons: {} },
    'nothing stored of a few due products': { mayStoreNothing: true, stored: 0, gone: 100, failed: 0, reasons: {} },
    'a discovery that finds no new product': linked({ planned: 0 }),
    'a discovery whose products are stored': linked({ stored: 10 }, { stored: 88, gone: 2 }),
    'a few new products, all gone': { ...linked({ gone: 10 }), mayStoreNothing: true },
    'the circuit open with nothing left': { ...BANNED, reasons: {} },
    'the site down, but no products left': { request: 'site-down', uncrawledReason: 'network' },
    'the site down at the end, after nearly all': { siteDown: true },
  },
  'completed 12': {
    'failures above the share': { failed: 6, stored: 92 },
    'failures above the share of what is not left alone': { failed: 43, stored: 55, leftAlone: 38 },
    'all left alone': { stored: 0, gone: 0, failed: 100, leftAlone: 100 },
    'nothing stored, everything gone': { stored: 0, gone: 100, failed: 0, reasons: {} },
    'too many products failed, hidden by pages of links': linked({ stored: 8, failed: 2 }),
    'too many pages of links failed': linked({ stored: 10 }, { stored: 80, failed: 10 }),
    'nothing stored but pages of links': linked({ gone: 10 }),
    'nothing stored of the only product': { planned: 1, stored: 0, gone: 1, failed: 0, reasons: {} },
  },
  'completed 14': { 'the budget spent': TOO_DEAR, 'the budget spent, and late': { ...TOO_DEAR, onTime: false } },
  'completed 15': {
    'products left at the deadline': { reasons: { deadline: 1 } },
    'results that could not be uploaded by the deadline': { reasons: { upload: 1 } },
    'products left because robots.txt could not be read': { uncrawledReason: 'robots', reasons: { robots: 1 } },
    'late, before failures': { onTime: false, failed: 50 },
  },
  'completed 17': {
    'the site down while every product failed': { siteDown: true, stored: 0, gone: 0, failed: 100 },
    'the site down before the deadline': { ...DOWN, reasons: { deadline: 40 } },
  },
  'cancelled 11': {
    'stopped by a person, before everything else': { request: 'stop', onTime: false },
    'a cancelled run, which publishes nothing': { ...HELD, request: 'cancel' },
  },
  'held 13': {
    'rows held': HELD,
    'rows held, late: nothing is published, so "published late" would be wrong': { ...HELD, onTime: false },
    'rows held, products left': { ...HELD, reasons: { deadline: 1 } },
    'rows held, before failures': { ...HELD, failed: 50 },
    'rows held of a run that was stopped': { ...HELD, request: 'stop' },
  },
  'held 14': { 'the budget before held': { ...HELD, ...TOO_DEAR } },
  'held 17': { 'the site down before held': { ...HELD, ...DOWN } },
  'held 18': { 'banned before held': { ...HELD, ...BANNED } },
  'banned 18': { 'the circuit open': BANNED, 'banned before the site down': { ...DOWN, ...BANNED } },
  'failed 4': {
    'AWS allows no launch': { ...NOTHING, noInstances: { cause: 'rights', reason: 'AWS refuses to launch' } },
    'no load balancer': { ...NOTHING, request: 'no-balancer', uncrawledReason: 'lost-instance' },
    'the bucket lost': { request: 'lost-bucket', uncrawledReason: 'upload', reasons: { upload: 50 }, failed: 52 },
    'the balancer unreachable, and no product crawled': {
      ...NOTHING,
      request: 'unreachable',
      uncrawledReason: 'lost-instance',
    },
  },
  'failed 12': {
    'the site changed': { request: 'site-changed', uncrawledReason: 'site-changed', reasons: { 'site-changed': 1 } },
    'no progress, for no known cause': {
      request: 'no-progress',
      uncrawledReason: 'lost-instance',
      reasons: { 'lost-instance': 9 },
    },
    'no instance ever crawled': NOTHING,
  },
  'failed 17': {
    'the site down until it ended the run': {
      request: 'site-down',
      uncrawledReason: 'network',
      reasons: { network: 50 },
      failed: 52,
    },
  },
  'failed 19': {
    'EC2 provided no instance': { ...NOTHING, noInstances: { cause: 'capacity', reason: 'EC2 gave no instance' } },
  },
};
const CASES = Object.entries(ENDS).flatMap(([end, runs]) =>
  Object.entries(runs).map(([what, change]) => ({ what, change, end })),
);

describe('endOf', () => {
  it('names the load balancer that could not be made', () => {
    const end = endOf({ ...fine, ...NOTHING, request: 'no-balancer', uncrawledReason: 'lost-instance' });
    expect(end.reason).toContain('load balancer');
  });

  it('says that a run is late because the site asked for a slower pace', () => {
    const late = { reasons: { deadline: 30 }, failed: 30, stored: 68 };
    const slowedBy = (left: number): string => `all ${left} because the site asked for a slower pace`;
    expect(endOf({ ...fine, ...late, slowedBy }).reason).toBe(
      'deadline missed: 30 products not crawled, all 30 because the site asked for a slower pace',
    );
    expect(endOf({ ...fine, ...late, slowedBy: () => null }).reason).toBe('deadline missed: 30 products not crawled');
  });

  it.each(CASES)('$what: $end', ({ change, end }) => {
    const { state, exitCode } = endOf({ ...fine, ...change });
    expect(`${state} ${exitCode}`).toBe(end);
  });
});

it('counts no link page as a product', () => {
  const { reasons } = productsOf({
    ...fine,
    reasons: { 'http-status': 2, timeout: 1 },
    linkPages: { planned: 5, stored: 4, gone: 0, failed: 1, reasons: { timeout: 1 } },
  });
  expect(reasons).toEqual({ 'http-status': 2 });
  expect(endOf({ ...fine, ...linked({ stored: 8, failed: 2 }) }).reason).toBe('2 of 10 products failed');
  const { reason } = endOf({ ...fine, failed: 43, stored: 55, leftAlone: 38 });
  expect(reason).toBe('5 of 62 products failed, beside 38 that are left alone');
  const blind = endOf({ ...fine, ...linked({ stored: 10 }, { stored: 80, failed: 10 }) });
  expect(blind.reason).toBe('10 of 90 link pages failed');
});
