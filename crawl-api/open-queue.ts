/** Opens the queue in the state in which the previous process left it. */
import { productUrl } from '../shared/domain/product.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import type { Log } from './control/log.ts';
import type { StateFolder } from './control/state-folder.ts';
import { toFailure } from './queue/item-result.ts';
import { JournalFile } from './queue/journal-file.ts';
import { QueueState } from './queue/queue-state.ts';
import { Queue } from './queue/queue.ts';
import { ReserveFile } from './queue/reserve-file.ts';

export function openQueue(
  { settings, clock, log }: { settings: InstanceSettings; clock: Clock; log: Log },
  folder: Pick<StateFolder, 'journalPath' | 'reservePath'>,
): { queue: Queue; journal: JournalFile } {
  const { site, deadline } = settings;
  const state = new QueueState();
  const { file, replay } = JournalFile.open(folder.journalPath, (record) => state.apply(record));
  const defaults = { intervalMs: site.intervalMs, deadlineMs: Date.parse(deadline) };
  const queue = new Queue(state, file, clock, defaults, new ReserveFile(folder.reservePath));
  if (replay.lostBytes > 0) log.warn({ ...replay }, 'the journal was truncated after its last valid record');
  if (replay.damaged) queue.recordDamage();
  const died = queue.recoverDeath((item) =>
    toFailure(
      item,
      productUrl(site.productUrl, item.id),
      'poison',
      `the crawler died ${item.deaths} times while crawling this product`,
      clock.now(),
    ),
  );
  if (died) log.warn({ id: died.id, deaths: died.deaths }, 'the previous process died while crawling this product');
  if (replay.records > 0) log.info({ records: replay.records, ...queue.progress(null) }, 'resuming from the journal');
  return { queue, journal: file };
}
