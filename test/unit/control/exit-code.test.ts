import { describe, expect, it } from 'vitest';
import { endOf } from '../../../orchestrator/control/exit-code.ts';
import type { EndInput } from '../../../orchestrator/control/exit-code.ts';

const fine: EndInput = {
  planned: 100,
  stored: 96,
  gone: 2,
  failed: 2,
  reasons: { 'http-status': 2 },
  request: null,
  onTime: true,
  maxFailed: 0.05,
  noInstances: null,
};

describe('endOf', () => {
  it.each<[string, Partial<EndInput>, string, number]>([
    ['all well', {}, 'completed', 0],
    ['failures within the share', { failed: 5, stored: 93 }, 'completed', 0],
    ['failures above the share', { failed: 6, stored: 92 }, 'completed', 12],
    ['no products at all', { planned: 0, stored: 0, gone: 0, failed: 0, reasons: {} }, 'completed', 0],
    ['products left at the deadline', { reasons: { deadline: 1 } }, 'completed', 15],
    ['late, before failures', { onTime: false, failed: 50 }, 'completed', 15],
    ['stopped by a person, before everything else', { request: 'stop', onTime: false }, 'cancelled', 11],
    [
      'EC2 gave nothing',
      { stored: 0, gone: 0, failed: 100, reasons: { 'lost-instance': 100 }, noInstances: 'capacity' },
      'failed',
      19,
    ],
    [
      'AWS allows no launch',
      { stored: 0, gone: 0, failed: 100, reasons: { 'lost-instance': 100 }, noInstances: 'rights' },
      'failed',
      4,
    ],
    ['nobody ever crawled', { stored: 0, gone: 0, failed: 100, reasons: { 'lost-instance': 100 } }, 'failed', 12],
  ])('%s', (_name, change, state, exitCode) => {
    expect(endOf({ ...fine, ...change })).toMatchObject({ state, exitCode });
  });
});
