/** Sends hello until the main server accepts this instance or refuses it permanently. */
import { type Hello, HELLO_PATH } from '../../shared/wire/callbacks.ts';
import type { MainServerClient } from './main-server-client.ts';
import { type Retry, untilDone } from '../process/retry.ts';

const RETRY = { firstMs: 250, maxMs: 5_000 };
/** Another instance has the slot. A 401 may be temporary: a claim is known a moment after its launch. */
const FINAL = [403, 409];

/** `refused`: this machine is not wanted and should power off. */
export async function sayHello(
  client: Pick<MainServerClient, 'sendHello'>,
  hello: Omit<Hello, 'clock'>,
  retry: Retry,
  stop: AbortSignal,
): Promise<'accepted' | 'refused' | 'stopped'> {
  let answer: 'accepted' | 'refused' | 'stopped' = 'stopped';
  const send = async (): Promise<string | null> => {
    const clock = new Date(retry.clock.now()).toISOString();
    const { status, body } = await client.sendHello(HELLO_PATH, { ...hello, clock });
    const problem = `status ${status}: ${body.slice(0, 300)}`;
    if (status !== 200 && !FINAL.includes(status)) return problem;
    answer = status === 200 ? 'accepted' : 'refused';
    if (answer === 'refused') retry.log.error({ problem }, 'the main server refuses this instance');
    return null;
  };
  await untilDone(retry, { ...RETRY, what: 'hello not accepted yet' }, send, stop);
  return answer;
}
