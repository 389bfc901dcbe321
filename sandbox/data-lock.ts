/** One sandbox per data folder: two would remove each other's half-received objects. */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { AppError } from '../shared/domain/errors.ts';

/**
 * Holds the folder until `release`, or until this process ends: an abstract socket is a name in the kernel, so a killed
 * sandbox leaves nothing behind. Throws AppError `sandbox-failed` when another sandbox holds it.
 */
export async function lockDataFolder(folder: string): Promise<{ release: () => Promise<void> }> {
  const name = createHash('sha256').update(realpathSync(folder)).digest('hex');
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path: `\0crawlfleet-sandbox-${name}` }, resolve);
  }).catch((cause: unknown) => {
    throw new AppError('sandbox-failed', `Another sandbox is using the data folder ${folder}`, {
      hint: 'Give each sandbox its own --data folder, or end the other one.',
      cause,
    });
  });
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}
