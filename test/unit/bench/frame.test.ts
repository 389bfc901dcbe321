/** The statistics of the benches, and the page that shows them. */
import { describe, expect, it } from 'vitest';
import { compare } from '../../../bench/against/against.ts';
import { measureInTurn, median } from '../../../bench/frame.ts';
import { renderPage } from '../../../bench/results.ts';

describe('median', () => {
  it.each([
    [[3], 3],
    [[9, 1, 5], 5],
    [[10, 2, 4, 1], 3],
  ])('of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it('refuses an empty list', () => {
    expect(() => median([])).toThrow('median');
  });
});

describe('measureInTurn', () => {
  it('measures the cases in turn, round by round', async () => {
    const order: string[] = [];
    const measure = (name: string) => async () => order.push(name);
    const results = await measureInTurn({ a: measure('a'), b: measure('b') }, 2);
    expect(order).toEqual(['a', 'b', 'a', 'b']);
    expect(results).toEqual({ a: [1, 3], b: [2, 4] });
  });
});

describe('compare', () => {
  it('takes the ratio round by round, so that a slow minute of the machine counts for both trees', () => {
    const before = [{ cpuMs: 100 }, { cpuMs: 400 }, { cpuMs: 100 }];
    const now = [{ cpuMs: 50 }, { cpuMs: 200 }, { cpuMs: 60 }];
    expect(compare(before, now)).toEqual({ cpuMs: { before: 100, now: 60, ratio: 0.5, range: [0.5, 0.6] } });
  });

  it('leaves out figures that only one tree has', () => {
    expect(Object.keys(compare([{ a: 1, b: 1 }], [{ b: 1, c: 1 }]))).toEqual(['b']);
  });
});

describe('renderPage', () => {
  it('shows ratios with their targets, and the figures of every case', () => {
    const page = renderPage([
      {
        name: 'x',
        title: 'X against Y',
        about: 'About it.',
        measuredAt: '2026-01-02T03:04:05.000Z',
        tookMs: 1,
        machine: { cpu: 'CPU', cores: 2, memoryGb: 4, system: 'Linux', node: '24.0.0' },
        rows: [
          { name: 'x', figures: { perSecond: 1234.5 } },
          { name: 'y', figures: { perSecond: 61.25, rssMb: 0.5 } },
        ],
        ratios: [{ name: 'x / y', value: 20.155, target: 'at least 10' }],
      },
    ]);
    expect(page).toContain('## X against Y');
    expect(page).toContain('2026-01-02, Node 24.0.0, CPU, 2 cores, 4 GB, Linux.');
    expect(page).toMatch(/\| x \/ y +\| 20\.2 +\| at least 10 +\|/);
    expect(page).toMatch(/\| x +\| 1235 +\| - +\|/);
    expect(page).toMatch(/\| y +\| 61\.3 +\| 0\.5 +\|/);
  });
});
