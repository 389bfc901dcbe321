/**
 * The seed of property tests; a setup file of the unit tests. The inputs are the same in every run, so that a failure
 * points to a code change. Set FC_SEED to search: a number for other inputs, `random` for a new seed each time.
 */
import fc from 'fast-check';

/** Any number would do. */
const USUAL = 20_261_122;

/** Undefined: fast-check draws one and names it when a property fails. */
export function propertySeed(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return USUAL;
  if (text === 'random') return undefined;
  const seed = Number(text);
  if (!Number.isInteger(seed)) throw new Error(`FC_SEED is a whole number or random, not ${text}`);
  return seed;
}

const seed = propertySeed(process.env.FC_SEED);
fc.configureGlobal(seed === undefined ? {} : { seed });
