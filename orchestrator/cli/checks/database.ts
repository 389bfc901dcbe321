/** Whether the database answers, and what it is. */
import { readServerFacts } from '../../db/server-facts.ts';
import type { Check } from './check.ts';
import { ok, warning } from './check.ts';

/** Rows and deadlines are stored in UTC by our own clock, but lock times come from the server's. */
const SKEW_MS = 5_000;

export const database: Check = {
  id: 'database',
  title: 'database',
  kinds: ['aws', 'dry'],
  alongside: true,
  limitMs: 15_000,
  async run({ facts }) {
    const db = await facts.database();
    const server = await readServerFacts(db);
    const zone =
      server.timeZone === null ? '' : `, its own time zone ${server.timeZone} (every session of ours uses UTC)`;
    const skew = server.skewMs === null ? 0 : Math.abs(server.skewMs);
    return [
      ok(`${db.label}: ${server.version}${zone}`),
      ...(skew > SKEW_MS
        ? [
            warning(
              `the clock of the database server is ${Math.round(skew / 1_000)} s off ours`,
              'Have both machines keep time by NTP (timedatectl set-ntp true)',
            ),
          ]
        : []),
    ];
  },
};
