/** The settings of the target that only the user can supply. */
import { chooseTarget } from '../target.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';

export const settings: Check = {
  id: 'settings',
  title: 'settings for where a run goes',
  kinds: ['aws', 'dry'],
  alongside: true,
  run({ config, target, environment }) {
    // Throws one message with everything that is missing.
    const { region, bucket, endpoint } = chooseTarget(config, target.dryRun, environment);
    const where = target.dryRun && endpoint === null ? 'this machine, in the built-in sandbox' : (endpoint ?? 'AWS');
    return Promise.resolve([ok(`${where}, region ${region}, bucket ${bucket}`)]);
  },
};
