/** Stands before a stub and notes when requests arrive there: a test that stands still for a moment must not falsify the gaps between them. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Has the time of arrival, in milliseconds, of every request that came through a relay. */
export const ARRIVED_HEADER = 'x-arrived-ms';

export interface ArrivalRelay {
  url: string;
  close: () => Promise<unknown>;
}

export async function startArrivalRelay({ address, port }: { address: string; port: number }): Promise<ArrivalRelay> {
  const thread = new Worker(new URL('arrival-thread.ts', import.meta.url), {
    workerData: { address, port, header: ARRIVED_HEADER },
    execArgv: [],
  });
  const [ownPort] = (await once(thread, 'message')) as [number];
  return { url: `http://${address}:${ownPort}`, close: () => thread.terminate() };
}
