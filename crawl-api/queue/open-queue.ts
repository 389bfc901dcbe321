/**
 * Opens the queue of an instance: what its journal says, and what the death of an earlier process means for a
 * product.
 */
import { domainOf, isAnyHost, type ProductUrl, templateAt } from '../../shared/domain/domains.ts';
import type { HostKey } from '../../shared/domain/host-key.ts';
import { hostNameOf } from '../../shared/domain/same-site.ts';
import { productUrl as urlOf } from '../../shared/domain/product.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { InstanceSettings } from '../../shared/wire/settings.ts';
import type { Log } from '../process/retry.ts';
import type { UserHeaders } from '../fetch/user-headers.ts';
import { HostNumbers } from './host-numbers.ts';
import { toFailure } from './item-result.ts';
import type { Replay } from './journal-file.ts';
import type { Journal } from './journal-writer.ts';
import { maskRecord } from './mask-records.ts';
import { type Domains, QueueState } from './queue-state.ts';
import { Queue } from './queue.ts';
import type { JournalRecord } from './records.ts';
import type { Reserve } from './reserve-file.ts';

interface QueueFiles<J extends Journal> {
  file: J;
  replay: Replay;
  reserve: Reserve;
}

interface OpenQueueParts {
  settings: InstanceSettings;
  userHeaders: Pick<UserHeaders, 'needsSecrets' | 'maskAll'>;
  clock: Clock;
  log: Log;
}

/** @param open opens the journal, passes its records to `apply` in order, and then takes the reserve */
export function openQueue<J extends Journal>(
  { settings, userHeaders, clock, log }: OpenQueueParts,
  open: (apply: (record: JournalRecord) => void) => QueueFiles<J>,
): { queue: Queue; journal: J } {
  const { site, deadline } = settings;
  const state = new QueueState(domainsOf(site.productUrl, site.hostKey));
  const { file, replay, reserve } = open((record) => state.apply(record));
  const { intervalMs, productUrl: templates, bannedLately } = site;
  const { leaseMs } = settings;
  const deadlineMs = Date.parse(deadline);
  const defaults = { intervalMs, deadlineMs, productUrl: templates, bannedLately, leaseMs, reserve };
  const mask = userHeaders.needsSecrets
    ? { mask: (record: JournalRecord): JournalRecord => maskRecord(record, userHeaders) }
    : {};
  const queue = new Queue(state, file, clock, { ...defaults, ...mask });
  queue.recordProcess();
  if (replay.lostBytes > 0) log.warn({ ...replay }, 'the journal was truncated after its last valid record');
  if (replay.damaged) queue.recordDamage();
  const died = queue.recoverDeath((item) => {
    const url = urlOf(site.productUrl, item.id);
    const detail = `the crawler died ${item.deaths} times while crawling this product`;
    return toFailure({ item, url, nowMs: clock.now() }, 'poison', detail);
  });
  const [only, ...others] = died;
  if (others.length > 0)
    log.warn({ ids: died.map(({ id }) => id) }, 'the previous process died while crawling these products');
  else if (only)
    log.warn({ id: only.id, deaths: only.deaths }, 'the previous process died while crawling this product');
  if (replay.records > 0) log.info({ records: replay.records, ...queue.progress(null) }, 'resuming from the journal');
  return { queue, journal: file };
}

/** Where the products of a run are read: at the domains of a site, or at the hosts that their URLs have. */
export function domainsOf(productUrl: ProductUrl, hostKey?: HostKey): Domains {
  if (isAnyHost(productUrl)) return new HostNumbers(hostKey);
  return {
    of: (id) => domainOf(productUrl, id),
    hostOf: (domain) => hostNameOf(new URL(templateAt(productUrl, domain))),
  };
}
