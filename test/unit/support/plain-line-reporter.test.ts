/** The last line of a test run. */
import { describe, expect, it } from 'vitest';
import { formatEnd } from '../../support/plain-line-reporter.ts';

describe('formatEnd', () => {
  it('counts passed and failed tests', () => {
    expect(formatEnd({ passed: 12, failed: 3, skipped: [], nightly: 0 }, 1)).toBe('12 passed, 3 failed\n');
  });

  it('names skipped tests and counts them', () => {
    const text = formatEnd({ passed: 1, failed: 0, skipped: ['a.test.ts > b'], nightly: 0 }, 0);
    expect(text).toContain('SKIPPED');
    expect(text).toContain('a.test.ts > b');
    expect(text.trimEnd().split('\n').at(-1)).toBe('1 passed, 0 failed, 1 skipped');
  });

  it('never says 0 failed for a run that failed for another reason', () => {
    expect(formatEnd({ passed: 5, failed: 0, skipped: [], nightly: 0 }, 1)).toBe('5 passed, 1 failed\n');
  });
});
