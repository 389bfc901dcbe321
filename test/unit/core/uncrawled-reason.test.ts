import { describe, expect, it } from 'vitest';
import {
  endNote,
  endedSiteDown,
  openReason,
  uncrawledReason,
} from '../../../orchestrator/core/decide/uncrawled-reason.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { anInstance } from './builders.ts';

const crawled = (slot: number, stored: number, reason: string | null = null) =>
  anInstance(slot, { reason, progress: { ...NO_PROGRESS, assigned: 10, stored } });
const arrived = (slot: number, products: number) => ({ slot, epoch: 1, products });

describe('uncrawled products', () => {
  it('have the reason why the crawl ended', () => {
    expect(uncrawledReason({ reason: 'robots' })).toBe('robots');
    expect(uncrawledReason({ reason: null })).toBe('lost-instance');
    expect(openReason('robots', 3, [crawled(0, 10)], [])).toBe('robots');
  });

  it('keep that reason when the site was down as well', () => {
    expect(uncrawledReason({ reason: endNote('deadline', true) })).toBe('deadline');
    expect(endedSiteDown({ reason: endNote('deadline', true) })).toBe(true);
    expect(endedSiteDown({ reason: endNote(null, true) })).toBe(true);
    expect(endedSiteDown({ reason: endNote('deadline', false) })).toBe(false);
    expect(endNote(null, false)).toBeNull();
  });

  it.each<[string, number, [ReturnType<typeof crawled>[], ReturnType<typeof arrived>[]], string]>([
    ['all were crawled and no result has arrived', 20, [[crawled(0, 10), crawled(1, 10)], []], 'upload'],
    ['some results have arrived', 6, [[crawled(0, 10, 'overdue')], [arrived(0, 3), arrived(0, 1)]], 'upload'],
    ['what has arrived left products open', 6, [[crawled(0, 10)], [arrived(0, 4), arrived(0, 6)]], 'deadline'],
    ['one was not crawled', 11, [[crawled(0, 10)], []], 'deadline'],
    ['the instance was lost', 10, [[crawled(0, 10, 'heartbeat-lost')], []], 'deadline'],
    ['all results have arrived', 5, [[crawled(0, 5)], [arrived(0, 5)]], 'deadline'],
    ['none is left', 0, [[crawled(0, 10)], [arrived(0, 10)]], 'deadline'],
  ])('fail at the deadline: %s', (_what, open, [instances, loaded], reason) => {
    expect(openReason('deadline', open, instances, loaded)).toBe(reason);
  });
});
