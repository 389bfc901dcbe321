/**
 * The sandbox's log: one JSON line per event, in a file of the data folder. Never stdout, which is for the ready line.
 */
import { createWriteStream } from 'node:fs';
import type { Clock } from '../shared/ports/clock.ts';

export interface Log {
  write: (event: string, fields?: Record<string, unknown>) => void;
  close(): Promise<void>;
}

export function openLog(path: string, clock: Clock): Log {
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 });
  // A full disk must not end the sandbox; the log is expendable.
  stream.on('error', () => {});
  return {
    write: (event, fields = {}) => {
      stream.write(`${JSON.stringify({ at: new Date(clock.now()).toISOString(), event, ...fields })}\n`);
    },
    close: () => new Promise((resolve) => stream.end(() => resolve())),
  };
}
