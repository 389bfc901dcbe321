/** What stays of a run of many hosts when its records and its bucket are gone: when it asked which of them. */
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import type { Database } from '../db/connect.ts';
import { storeHostRequests } from '../db/host-requests.ts';
import type { Core } from '../model/core.ts';
import type { RunRecord } from '../model/stores.ts';
import { readHostRequests } from '../verify/host-requests.ts';

/**
 * Sums the request logs of a run that is over up in the database. Of a run of one site it reads nothing. Repeated, it
 * stores what is missing. Never throws: an alarm says what is not there.
 */
export async function keepHostRequests(
  { objects, fleet, alarm }: Pick<Core, 'objects' | 'fleet' | 'alarm'>,
  { database, run, signal }: { database: Database; run: RunRecord; signal: AbortSignal },
): Promise<void> {
  if (!isAnyHost(run.settings.site.productUrl)) return;
  try {
    const instances = await fleet.instances();
    for await (const asked of readHostRequests({ run, objects }, instances, signal))
      await storeHostRequests(database, run.id, asked);
  } catch (error) {
    await alarm(
      `orchestrator hosts show does not tell all that this run has asked, which the request logs in the bucket do: ${describeError(error)}`,
    );
  }
}
