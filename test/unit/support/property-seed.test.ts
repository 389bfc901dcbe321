/** The seed that properties draw from: the same in every run unless somebody searches. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { propertySeed } from '../../support/property-seed.ts';

describe('the seed of properties', () => {
  it('is the same each time, another one with FC_SEED, and open with FC_SEED=random', () => {
    expect(propertySeed(undefined)).toBe(propertySeed(''));
    expect(propertySeed(undefined)).toEqual(expect.any(Number));
    expect(propertySeed('-7')).toBe(-7);
    expect(propertySeed('random')).toBeUndefined();
    expect(() => propertySeed('often')).toThrow('FC_SEED');
  });

  it('holds for this very test', () => {
    expect(fc.readConfigureGlobal().seed).toBe(propertySeed(process.env.FC_SEED));
  });
});
