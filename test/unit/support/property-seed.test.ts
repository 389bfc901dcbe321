/** The seed of property tests: the same in every run unless FC_SEED is set. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { propertySeed } from '../../support/property-seed.ts';

describe('the seed of properties', () => {
  it('is the same each time, the number in FC_SEED, or undefined with FC_SEED=random', () => {
    expect(propertySeed(undefined)).toBe(propertySeed(''));
    expect(propertySeed(undefined)).toEqual(expect.any(Number));
    expect(propertySeed('-7')).toBe(-7);
    expect(propertySeed('random')).toBeUndefined();
    expect(() => propertySeed('often')).toThrow('FC_SEED');
  });

  it('applies to this test', () => {
    expect(fc.readConfigureGlobal().seed).toBe(propertySeed(process.env.FC_SEED));
  });
});
