/** Our clock against the endpoint's: deadlines, tokens and signatures depend on it. */
import type { Check } from './check.ts';
import { failed, ok, warning } from './check.ts';
import { lacksRegion } from './lacks.ts';

/** AWS refuses requests that are five minutes off; our boot deadlines and tokens suffer long before. */
const TOO_FAR_MS = 60_000;
const NOTED_MS = 5_000;

export const endpointClock: Check = {
  id: 'clock',
  title: 'clock of this machine',
  kinds: ['aws'],
  // Does not need the credentials check: a wrong clock is one reason for AWS to refuse them.
  lacks: lacksRegion,
  beforeLaunch: true,
  async run({ facts }) {
    const skewMs = await facts.skewMs();
    if (skewMs === null) return [warning('the endpoint does not say what time it is')];
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    const text = `${seconds} s ${skewMs > 0 ? 'behind' : 'ahead of'} the endpoint's`;
    const remedy = 'Keep time by NTP: timedatectl set-ntp true, or chrony';
    if (Math.abs(skewMs) > TOO_FAR_MS) return [failed('platform', text, remedy)];
    return [Math.abs(skewMs) > NOTED_MS ? warning(text, remedy) : ok('within 5 s of the endpoint')];
  },
};
