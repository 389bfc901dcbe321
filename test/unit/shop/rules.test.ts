/** Which products misbehave, how, and how often. */
import { describe, expect, it } from 'vitest';
import { type Rule, Rules } from '../../support/shop/rules.ts';
import { behaviourOfPrefix } from '../../support/shop/prefixes.ts';

function rulesOf(...rules: Rule[]): Rules {
  const set = new Rules();
  set.set(rules);
  return set;
}

describe('Rules', () => {
  it('does not affect products without a rule', () => {
    expect(rulesOf({ id: 'b', do: { type: 'captcha' } }).take('a')).toBeNull();
  });

  it('applies a rule at most the given number of times', () => {
    const rules = rulesOf({ id: 'a', times: 2, do: { type: 'status', status: 500 } });
    expect([1, 2, 3].map(() => rules.take('a')?.type)).toEqual(['status', 'status', undefined]);
  });

  it('applies the next rule when the first is used up', () => {
    const rules = rulesOf(
      { id: 'a', times: 1, do: { type: 'status', status: 500 } },
      { prefix: '', do: { type: 'captcha' } },
    );
    expect([rules.take('a')?.type, rules.take('a')?.type]).toEqual(['status', 'captcha']);
  });

  it('prefers a rule over the prefix of the ID', () => {
    expect(rulesOf({ id: '500-a', do: { type: 'captcha' } }).take('500-a')).toEqual({ type: 'captcha' });
  });

  it('makes a once- product misbehave only on its first request, until it is reset', () => {
    const rules = new Rules();
    expect(rules.take('once-500-a')).toMatchObject({ status: 500 });
    expect(rules.take('once-500-a')).toBeNull();
    rules.clear();
    expect(rules.take('once-500-a')).toMatchObject({ status: 500 });
  });

  it.each([
    [[{ do: { type: 'captcha' } }]],
    [[{ id: 'a', prefix: 'a', do: { type: 'captcha' } }]],
    [[{ id: 'a', do: { type: 'nonsense' } }]],
    [[{ id: 'a', do: { type: 'status', status: 200 } }]],
    [[{ id: 'a', times: 0, do: { type: 'captcha' } }]],
    ['captcha'],
  ])('refuses %j', (rules) => {
    expect(() => new Rules().set(rules)).toThrow();
  });
});

describe('behaviourOfPrefix', () => {
  it.each([
    ['404-x', { type: 'status', status: 404 }],
    ['410-', { type: 'status', status: 410 }],
    ['reset-1', { type: 'reset' }],
    ['unpriced-1', { type: 'missing-field', fields: ['price'] }],
  ])('%s misbehaves without a rule', (id, behaviour) => {
    expect(behaviourOfPrefix(id)).toEqual({ behaviour, once: false });
  });

  it.each(['P00001', '404', 'x404-a', 'unknown-a', 'once-a', 'constructor-a', '-a'])('%s does not', (id) => {
    expect(behaviourOfPrefix(id)).toBeNull();
  });
});
