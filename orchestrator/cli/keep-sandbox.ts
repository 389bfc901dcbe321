/** Keeps the sandbox of a run alive while the run is worked on: when its process has died, another takes its place. */
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { SandboxHandle, SandboxOptions } from './sandbox-process.ts';
import { isAlive, sandboxPid, startSandbox } from './sandbox-process.ts';

const LOOK_EVERY_MS = 1_000;
/** After a start that failed. */
const TRY_AGAIN_MS = 5_000;

/**
 * Watches the process. A replacement has the same folder, port and control token, so everything that was told of the old
 * one finds it; buckets are still there, instances and balancer are gone and are made again by the control loop.
 * `handle.pid` follows. Resolves to a function that ends the watch.
 */
export function keepSandbox(
  handle: SandboxHandle,
  options: Omit<SandboxOptions, 'dataDir' | 'port' | 'controlToken'>,
  say: (text: string) => void,
): () => Promise<void> {
  const stop = new AbortController();
  const watch = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await systemClock.sleep(LOOK_EVERY_MS, stop.signal);
      if (stop.signal.aborted || isAlive(handle.pid)) continue;
      // Somebody else may have put another one in its place already.
      const pid = await sandboxPid(handle);
      if (pid !== null) {
        handle.pid = pid;
        continue;
      }
      say('the sandbox has died, and its instances with it; another one takes its place');
      const port = Number(new URL(handle.endpoint).port);
      try {
        const { pid } = await startSandbox({
          ...options,
          dataDir: handle.dataDir,
          port,
          controlToken: handle.controlToken,
        });
        handle.pid = pid;
      } catch (error) {
        say(`the sandbox cannot be started again: ${describeError(error)}`);
        await systemClock.sleep(TRY_AGAIN_MS, stop.signal);
      }
    }
  };
  const watching = watch();
  return async () => {
    stop.abort();
    await watching;
  };
}
