/** Keeps the sandbox of a run alive while the main server works on the run: replaces a dead process. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { type AppError, describeError } from '../../../shared/domain/errors.ts';
import { unwritable } from './run-lock.ts';
import { isAlive, type SandboxHandle, type SandboxOptions, sandboxPid, startSandbox } from './sandbox-process.ts';

const LOOK_EVERY_MS = 1_000;
/** Pause after a failed start. */
const TRY_AGAIN_MS = 5_000;
/** How long its folder may be missing or unwritable: without it there is no room for objects or machines. */
const GIVE_UP_MS = 30_000;
/** More than fits into the rest of an allocated block. */
const PROBE_BYTES = 8_192;

/**
 * Watches the process. A replacement has the same folder, port and control token, so everything configured for the old
 * one finds it; its buckets survive, its instances and load balancer are gone and the control loop makes them again.
 * Updates `handle.pid`. If the folder cannot be written for half a minute, the watch ends and calls `giveUp` with the
 * reason. Returns a function that ends the watch.
 */
export function superviseSandbox(
  handle: SandboxHandle,
  options: Omit<SandboxOptions, 'dataDir' | 'port' | 'controlToken'>,
  { say, giveUp }: { say: (text: string) => void; giveUp: (error: AppError) => void },
): () => Promise<void> {
  const stop = new AbortController();
  let writtenAtMs = systemClock.monotonic();
  const watch = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await systemClock.sleep(LOOK_EVERY_MS, stop.signal);
      if (stop.signal.aborted) return;
      const fault = findWriteFault(handle.dataDir);
      if (fault === null) writtenAtMs = systemClock.monotonic();
      const unwrittenMs = systemClock.monotonic() - writtenAtMs;
      if (fault !== null && unwrittenMs > GIVE_UP_MS)
        return giveUp(unwritable(`the folder of the sandbox, ${handle.dataDir},`, fault, unwrittenMs));
      if (isAlive(handle.pid)) continue;
      // Another process may have replaced it already.
      const pid = await sandboxPid(handle);
      if (pid !== null) {
        handle.pid = pid;
        continue;
      }
      say('the sandbox has died, and its instances with it; another one takes its place');
      const { dataDir, controlToken, endpoint } = handle;
      try {
        const port = Number(new URL(endpoint).port);
        handle.pid = (await startSandbox({ ...options, dataDir, port, controlToken })).pid;
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

/** Why nothing can be written into the folder now; null when writing works. */
function findWriteFault(folder: string): unknown {
  const file = join(folder, '.probe');
  try {
    writeFileSync(file, Buffer.alloc(PROBE_BYTES, 1));
    return null;
  } catch (error) {
    return error;
  } finally {
    rmSync(file, { force: true });
  }
}
