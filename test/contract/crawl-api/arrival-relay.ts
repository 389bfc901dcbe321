/** A relay before a stub that records when requests arrive: a pause of the test must not falsify their gaps. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Contains the arrival time, in milliseconds, of every request that came through a relay. */
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
