import { describe, expect, it } from 'vitest';
import { AddressWatch, type Advice } from '../../../crawl-api/politeness/address-watch.ts';
import { accused, type Judgement, type JudgementKind, unremarkable } from '../../../crawl-api/politeness/judgement.ts';
import { LatencyWatch } from '../../../crawl-api/queue/domain-crawl.ts';
import { RenderChoice } from '../../../crawl-api/politeness/render-choice.ts';

function judgement(kind: JudgementKind, product = 1): Judgement {
  return kind === 'odd' || kind === 'refusal' || kind === 'banned'
    ? accused(kind, 'a-rule', `http://shop/${product}`, null)
    : unremarkable(kind);
}

const see = (watch: AddressWatch, kinds: JudgementKind[], canAsk: boolean, held = 0): Advice[] =>
  kinds.map((kind, i) => watch.seen(judgement(kind, i), { canAsk, held }));

const times = (count: number, kind: JudgementKind): JudgementKind[] => Array.from({ length: count }, () => kind);

describe('AddressWatch', () => {
  it.each<[string, JudgementKind[], boolean, Advice[]]>([
    ['a certain ban', ['banned'], true, ['ban']],
    ['a refusal, with a canary page', ['refusal'], true, ['ask']],
    ['two refusals in a row, without a canary page', ['refusal', 'refusal'], false, ['hold', 'ban']],
    ['refusals with a right page between', ['refusal', 'right', 'refusal'], false, ['hold', 'accept', 'hold']],
    ['refusals with a failure between', ['refusal', 'failed', 'refusal'], false, ['hold', 'accept', 'ban']],
    ['odd pages', times(3, 'odd'), true, ['hold', 'hold', 'ask']],
    ['odd pages, not in a row', ['odd', 'odd', 'right', 'odd'], true, ['hold', 'hold', 'accept', 'hold']],
    ['odd pages, without a canary page', times(5, 'odd'), false, ['hold', 'hold', 'hold', 'hold', 'suspect']],
    ['inconclusive results', ['failed', 'wait'], true, ['accept', 'accept']],
    ['a product that is gone', ['gone', 'gone'], true, ['hold', 'hold']],
  ])('%s', (_what, kinds, canAsk, advice) => {
    expect(see(new AddressWatch(), kinds, canAsk)).toEqual(advice);
  });

  it('counts only refusals of different products', () => {
    const watch = new AddressWatch();
    const seen = (product: number): Advice => watch.seen(judgement('refusal', product), { canAsk: false, held: 0 });
    expect([seen(1), seen(1), seen(1), seen(2)]).toEqual(['hold', 'hold', 'hold', 'ban']);
  });

  it('requests a canary page when many unproven results have accumulated', () => {
    expect(see(new AddressWatch(), ['gone'], true, 49)).toEqual(['hold']);
    expect(see(new AddressWatch(), ['gone'], true, 50)).toEqual(['ask']);
    expect(see(new AddressWatch(), ['gone'], false, 5_000)).toEqual(['hold']);
  });

  it.each<[JudgementKind, Advice]>([
    ['right', 'accept'],
    ['refusal', 'ban'],
    ['banned', 'ban'],
    ['odd', 'suspect'],
    ['gone', 'suspect'],
    ['failed', 'ask'],
  ])('a canary page that is %s leads to %s', (kind, advice) => {
    expect(new AddressWatch().answered(judgement(kind))).toBe(advice);
  });

  it('stops requesting canary pages that give no answer', () => {
    const watch = new AddressWatch();
    expect([1, 2, 3].map(() => watch.answered(judgement('failed')))).toEqual(['ask', 'ask', 'suspect']);
  });

  it('waits longer after each fine canary page before odd pages lead to the next one', () => {
    const watch = new AddressWatch();
    const oddUntilAsked = (): number => {
      for (let pages = 1; pages <= 1_000; pages++) if (see(watch, ['odd'], true)[0] === 'ask') return pages;
      return Infinity;
    };
    const waits = [1, 2, 3, 4].map(() => {
      const pages = oddUntilAsked();
      watch.answered(judgement('right'));
      return pages;
    });
    expect(waits).toEqual([3, 20, 40, 80]);
    expect(see(watch, ['refusal'], true)).toEqual(['ask']);
  });

  it('requests a canary page when the site has become slow', () => {
    const watch = new AddressWatch();
    const slow = (): Advice => watch.seen(judgement('right'), { canAsk: true, held: 0 }, true);
    expect([slow(), slow(), slow()]).toEqual(['accept', 'accept', 'ask']);
    const alone = new AddressWatch();
    for (let i = 0; i < 10; i++)
      expect(alone.seen(judgement('right'), { canAsk: false, held: 0 }, true)).toBe('accept');
  });
});

describe('LatencyWatch', () => {
  const feed = (waits: number[]): boolean => {
    const watch = new LatencyWatch();
    return waits.map((ms) => watch.note(ms)).at(-1)!;
  };
  it.each<[string, number[], boolean]>([
    ['five slow pages after fast ones', [...Array(10).fill(200), ...Array(5).fill(2_500)], true],
    ['two slow pages', [...Array(10).fill(200), 9_000, 9_000], false],
    ['slower, but less than five times', [...Array(10).fill(800), ...Array(5).fill(3_000)], false],
    ['five times slower, but still fast', [...Array(10).fill(20), ...Array(5).fill(1_500)], false],
    ['slow from the beginning', Array(20).fill(5_000), false],
    ['too few pages', [10, 10, 10, 10, 5_000, 5_000, 5_000, 5_000, 5_000], false],
  ])('%s', (_what, waits, slow) => {
    expect(feed(waits)).toBe(slow);
  });
});

describe('RenderChoice', () => {
  it('learns that a site needs a browser, rechecks, and unlearns it', () => {
    const choice = new RenderChoice('auto');
    for (let i = 0; i < 5; i++) {
      expect(choice.first()).toBe('http');
      choice.browserNeeded();
    }
    const next = Array.from({ length: 100 }, () => choice.first());
    expect(next.filter((via) => via === 'http')).toHaveLength(2);
    expect(next[49]).toBe('http');
    choice.httpSufficed();
    expect(choice.first()).toBe('http');
  });

  it('does not learn from single pages', () => {
    const choice = new RenderChoice('auto');
    for (let i = 0; i < 20; i++) {
      choice.browserNeeded();
      choice.httpSufficed();
    }
    expect(choice.first()).toBe('http');
  });

  it.each(['http', 'browser'] as const)('follows the setting: %s', (mode) => {
    const choice = new RenderChoice(mode);
    expect([choice.first(), choice.mayRender]).toEqual([mode, false]);
  });
});
