import { describe, expect, it } from 'vitest';
import { renderProgress, renderScreen } from '../../../orchestrator/cli/progress.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { aRun, aWorld, anInstance } from '../core/builders.ts';

const crawling = (pending: number) =>
  anInstance(0, { phase: 'crawling', progress: { ...NO_PROGRESS, assigned: 20, pending, stored: 20 - pending } });

const waiting = () => {
  const detail = 'http-status, HTTP 500: status 500';
  const misses = [{ reason: 'http-status', detail, products: 0, waiting: 3, url: 'http://shop/\u001b[2J' } as const];
  return anInstance(0, { phase: 'crawling', progress: { ...NO_PROGRESS, assigned: 20, pending: 20, misses } });
};

describe('the progress line', () => {
  it('counts no product twice when another instance crawls those of a lost one again', () => {
    const shown = (stored: number) => ({
      ...anInstance(0).progress!,
      stored,
      gone: 0,
      failed: 1,
    });
    const world = aWorld({
      run: aRun({ planned: 150 }),
      instances: [
        anInstance(0, { epoch: 1, phase: 'lost', progress: shown(66) }),
        anInstance(0, { epoch: 2, progress: shown(99) }),
      ],
    });
    expect(renderProgress(world)).toMatch(/ 150\/150 {2}148 stored {2}2 failed /);
  });

  it('has no estimate while nothing is granted', () => {
    expect(renderProgress(aWorld({}))).not.toContain('ETA');
    expect(renderProgress(aWorld({ instances: [crawling(10)] }))).toContain('ETA');
  });

  it('has no estimate when the rest waits for something other than the crawl', () => {
    expect(renderProgress(aWorld({ instances: [crawling(0)] }))).not.toContain('ETA');
  });

  it('counts what waits after a first try, and says why', () => {
    const text = renderProgress(aWorld({ instances: [waiting()] }));
    expect(text).toMatch(/ 0 stored {2}3 waiting after a first try /);
    expect(text).toMatch(/no row: 3 http-status 500$/);
  });

  it('says how far past the deadline it is', () => {
    const run = aRun();
    const at = (ms: number): string => renderProgress(aWorld({ run, nowMs: run.deadlineAtMs + ms }));
    expect(at(-60_000)).toContain('1m to deadline');
    expect(at(120_000)).toContain('2m past the deadline');
  });
});

describe('the block on a terminal', () => {
  const incident = {
    verdict: 'banned',
    rule: 'status-429',
    atMs: 0,
    untilMs: null,
    returnedAtMs: null,
    overAtMs: null,
  } as const;
  const fleet = (count: number) =>
    aWorld({
      run: aRun({ planned: 1_000 }),
      instances: Array.from({ length: count }, (_, slot) =>
        anInstance(slot, {
          phase: 'crawling',
          progress: { ...NO_PROGRESS, assigned: 20, pending: 10, stored: 10, requests: 10, minGapMs: 10_001 },
          ...(slot === 7 ? { incident } : {}),
        }),
      ),
    });
  const screen = (columns: number, rows: number) => ({ columns, rows, paint: (_tone: string, text: string) => text });

  it('shows nothing of an instance that could control the terminal, and no line is wider for it', () => {
    const problem = '\u001b[2J\u009d0;owned\u0007'.repeat(20);
    const odd = anInstance(0, { phase: 'crawling', problem, progress: { ...NO_PROGRESS, assigned: 20 } });
    const lost = anInstance(1, { phase: 'lost', reason: `${'😀'.repeat(50)}\u202e` });
    const lines = renderScreen(aWorld({ instances: [odd, lost] }), screen(80, 24)).split('\n');
    expect(lines.join('')).toContain(String.raw`\u001b[2J`);
    expect(lines.join('')).not.toMatch(/[\p{Cc}\p{Cs}\u202e]/u);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it.each([
    [60, 24],
    [80, 24],
    [200, 60],
    [40, 14],
  ])('fits %i columns and leaves room for messages in %i rows', (columns, rows) => {
    const lines = renderScreen(fleet(126), screen(columns, rows)).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(lines.length).toBeLessThanOrEqual(rows * 0.6);
  });

  it.each([
    [60, 24],
    [40, 6],
  ])('says in %i columns why products have no row, within its part of %i rows', (columns, rows) => {
    const lines = renderScreen(aWorld({ instances: [waiting()] }), screen(columns, rows)).split('\n');
    expect(lines.filter((line) => line.startsWith('  3 http-status 500: '))).toHaveLength(rows === 24 ? 1 : 0);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(lines.join('')).not.toContain('\u001b');
  });

  it('shows every figure at 60 columns, in several lines where one is too narrow', () => {
    const text = renderScreen(fleet(3), screen(60, 24));
    for (const figure of ['30 stored', '3 %', '30/1000', 'pages/s', 'gap >= 10001ms', 'to deadline', '$'])
      expect(text).toContain(figure);
  });

  it('puts the worst instance first, and counts those that do not fit', () => {
    const lines = renderScreen(fleet(126), screen(80, 24)).split('\n');
    expect(lines.find((line) => line.includes('crawling') && line.includes('10/20'))).toMatch(
      /^ +7 crawling .* banned by status-429$/,
    );
    expect(lines.at(-1)).toMatch(/^ {2}… and 1\d\d more: 126 crawling$/);
  });

  it('says in words what its colours say', () => {
    const tones: string[] = [];
    const paint = (tone: string, text: string): string => {
      tones.push(tone);
      return `<${tone}>${text}`;
    };
    expect(renderScreen(fleet(8), { columns: 80, rows: 40, paint })).toContain('<bad>1 BANNED');
    expect(new Set(tones)).toEqual(new Set(['good', 'bad']));
  });
});
