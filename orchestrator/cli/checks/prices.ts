/** The age of the prices that a plan uses. */
import { PRICES_OF } from '../../plan/price-table.ts';
import { pricesFor } from '../preflight.ts';
import type { Check } from './check.ts';
import { ok, warning } from './check.ts';

export const prices: Check = {
  id: 'prices',
  title: 'prices',
  kinds: ['aws', 'dry'],
  isSlow: true,
  async run({ config, target }) {
    const { list, warnings } = await pricesFor(config, target);
    const remedy = "Allow pricing:GetProducts, or compare the plan's prices with aws.amazon.com/ec2/pricing";
    if (warnings.length > 0) return warnings.map((text) => warning(text, remedy));
    return [ok(list === null ? `those shipped with this version, of ${PRICES_OF}` : `AWS's own, of ${list.of}`)];
  },
};
