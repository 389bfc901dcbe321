/**
 * From which seed properties draw their inputs. It is a set-up file of the unit tests: the same inputs each time, so that what
 * fails is what was changed. FC_SEED is for searching: a number for other inputs, `random` for some that nobody has tried.
 */
import fc from 'fast-check';

/** Any number would do. */
const USUAL = 20_261_122;

/** Undefined: fast-check draws one, and names it in what it says of a failure. */
export function propertySeed(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return USUAL;
  if (text === 'random') return undefined;
  const seed = Number(text);
  if (!Number.isInteger(seed)) throw new Error(`FC_SEED is a whole number or random, not ${text}`);
  return seed;
}

const seed = propertySeed(process.env.FC_SEED);
fc.configureGlobal(seed === undefined ? {} : { seed });
