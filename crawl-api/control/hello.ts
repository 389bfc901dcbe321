/** Sends hello until the main server accepts this instance or refuses it permanently. */
import { backoffMs } from '../../shared/domain/backoff.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Random } from '../../shared/ports/random.ts';
import { type Hello, HELLO_PATH } from '../../shared/wire/callbacks.ts';
import type { Log } from './log.ts';
import type { MainServerClient } from './main-server-client.ts';

const RETRY = { firstMs: 250, maxMs: 5_000 };
/**
 * No retry will be answered differently: another instance has the slot. A 401 may be temporary: the main server learns
 * of a claim a moment after its launch.
 */
const FINAL = [403, 409];

/** `refused`: this machine is not wanted and should power off. */
export async function sayHello(
  client: Pick<MainServerClient, 'sendHello'>,
  hello: Omit<Hello, 'clock'>,
  { clock, random, log }: { clock: Clock; random: Random; log: Log },
  stop: AbortSignal,
): Promise<'accepted' | 'refused' | 'stopped'> {
  for (let failures = 0; !stop.aborted; failures++) {
    let problem: string;
    try {
      const reply = await client.sendHello(HELLO_PATH, { ...hello, clock: new Date(clock.now()).toISOString() });
      if (reply.status === 200) return 'accepted';
      problem = `status ${reply.status}: ${reply.body.slice(0, 300)}`;
      if (FINAL.includes(reply.status)) {
        log.error({ problem }, 'the main server refuses this instance');
        return 'refused';
      }
    } catch (error) {
      problem = describeError(error);
    }
    // Log only the first failure and then each doubling: the console holds 64 KB.
    if ((failures & (failures + 1)) === 0) log.warn({ tries: failures + 1, problem }, 'hello not accepted yet');
    await clock.sleep(backoffMs(failures, RETRY, random.next()), stop);
  }
  return 'stopped';
}
