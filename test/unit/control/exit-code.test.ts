import { describe, expect, it } from 'vitest';
import { endOf } from '../../../orchestrator/control/results/exit-code.ts';
import type { EndInput } from '../../../orchestrator/control/results/exit-code.ts';

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

describe('endOf', () => {
  it.each<[string, Partial<EndInput>, string, number]>([
    ['all well', {}, 'completed', 0],
    ['failures within the share', { failed: 5, stored: 93 }, 'completed', 0],
    ['failures above the share', { failed: 6, stored: 92 }, 'completed', 12],
    ['no products at all', { planned: 0, stored: 0, gone: 0, failed: 0, reasons: {} }, 'completed', 0],
    ['products left at the deadline', { reasons: { deadline: 1 } }, 'completed', 15],
    ['results that could not be uploaded by the deadline', { reasons: { upload: 1 } }, 'completed', 15],
    [
      'products left because robots.txt could not be read',
      { uncrawledReason: 'robots', reasons: { robots: 1 } },
      'completed',
      15,
    ],
    ['the circuit open', { request: 'banned', uncrawledReason: 'banned', reasons: { banned: 1 } }, 'banned', 18],
    [
      'the circuit open with nothing left',
      { request: 'banned', uncrawledReason: 'banned', reasons: {} },
      'completed',
      0,
    ],
    [
      'the site changed',
      { request: 'site-changed', uncrawledReason: 'site-changed', reasons: { 'site-changed': 1 } },
      'failed',
      12,
    ],
    ['late, before failures', { onTime: false, failed: 50 }, 'completed', 15],
    ['the budget spent', { uncrawledReason: 'budget', reasons: { budget: 3 } }, 'completed', 14],
    [
      'the budget spent, and late',
      { uncrawledReason: 'budget', reasons: { budget: 3 }, onTime: false },
      'completed',
      14,
    ],
    ['rows held', { suspicion: 'blank' }, 'held', 13],
    [
      'rows held, late: nothing is published, so "published late" would be wrong',
      { suspicion: 'blank', onTime: false },
      'held',
      13,
    ],
    ['rows held, products left', { suspicion: 'blank', reasons: { deadline: 1 } }, 'held', 13],
    ['rows held, before failures', { suspicion: 'blank', failed: 50 }, 'held', 13],
    ['rows held of a run that was stopped', { suspicion: 'blank', request: 'stop' }, 'held', 13],
    ['a cancelled run, which publishes nothing', { suspicion: 'blank', request: 'cancel' }, 'cancelled', 11],
    [
      'banned before held',
      { suspicion: 'blank', request: 'banned', uncrawledReason: 'banned', reasons: { banned: 1 } },
      'held',
      18,
    ],
    ['the budget before held', { suspicion: 'blank', uncrawledReason: 'budget', reasons: { budget: 1 } }, 'held', 14],
    ['stopped by a person, before everything else', { request: 'stop', onTime: false }, 'cancelled', 11],
    [
      'EC2 provided no instance',
      {
        stored: 0,
        gone: 0,
        failed: 100,
        reasons: { 'lost-instance': 100 },
        noInstances: { cause: 'capacity', reason: 'EC2 gave no instance' },
      },
      'failed',
      19,
    ],
    [
      'AWS allows no launch',
      {
        stored: 0,
        gone: 0,
        failed: 100,
        reasons: { 'lost-instance': 100 },
        noInstances: { cause: 'rights', reason: 'AWS refuses to launch' },
      },
      'failed',
      4,
    ],
    [
      'the site down until it ended the run',
      { request: 'site-down', uncrawledReason: 'network', reasons: { network: 50 }, failed: 52 },
      'failed',
      17,
    ],
    ['the site down, but no products left', { request: 'site-down', uncrawledReason: 'network' }, 'completed', 0],
    [
      'the bucket lost',
      { request: 'lost-bucket', uncrawledReason: 'upload', reasons: { upload: 50 }, failed: 52 },
      'failed',
      4,
    ],
    [
      'the balancer unreachable, and no product crawled',
      {
        request: 'unreachable',
        uncrawledReason: 'lost-instance',
        stored: 0,
        gone: 0,
        failed: 100,
        reasons: { 'lost-instance': 100 },
      },
      'failed',
      4,
    ],
    [
      'no progress, for no known cause',
      { request: 'no-progress', uncrawledReason: 'lost-instance', reasons: { 'lost-instance': 9 } },
      'failed',
      12,
    ],
    ['the site down while every product failed', { siteDown: true, stored: 0, gone: 0, failed: 100 }, 'completed', 17],
    ['the site down at the end, after nearly all', { siteDown: true }, 'completed', 0],
    ['the site down before held', { siteDown: true, failed: 50, suspicion: 'blank' }, 'held', 17],
    ['the site down before the deadline', { siteDown: true, failed: 50, reasons: { deadline: 40 } }, 'completed', 17],
    [
      'banned before the site down',
      { siteDown: true, failed: 50, request: 'banned', uncrawledReason: 'banned', reasons: { banned: 1 } },
      'banned',
      18,
    ],
    ['no instance ever crawled', { stored: 0, gone: 0, failed: 100, reasons: { 'lost-instance': 100 } }, 'failed', 12],
  ])('%s', (_name, change, state, exitCode) => {
    expect(endOf({ ...fine, ...change })).toMatchObject({ state, exitCode });
  });
});
