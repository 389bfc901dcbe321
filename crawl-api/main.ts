/**
 * The program that runs on each instance. All settings come from the machine's user data; state that must survive a
 * restart is in STATE_DIRECTORY. Exit code 0: the machine is no longer needed and should power off. Any other: start
 * the program again.
 */
import './heap-limits.ts';
import pino from 'pino';
import { systemRandom } from '../shared/adapters/random.ts';
import { AppError, describeError } from '../shared/domain/errors.ts';
import { systemClock } from '../shared/adapters/system-clock.ts';
import { type AnyUserData, parseUserData } from '../shared/wire/settings.ts';
import { AWS_METADATA, readMetadata } from './callbacks/metadata.ts';
import { readSettings } from './callbacks/read-settings.ts';
import { StateFolder } from './process/state-folder.ts';
import { runInstance } from './instance.ts';

// Synchronous, so that the last line before a crash still reaches the console.
const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ fd: 1, sync: true }));

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
process.once('SIGINT', () => stop.abort());
process.on('uncaughtException', (error) => fail(error));
process.on('unhandledRejection', (error) => fail(error));

function fail(error: unknown): never {
  const hint = error instanceof AppError ? error.hint : undefined;
  log.fatal(
    { problem: describeError(error), hint, stack: error instanceof Error ? error.stack : undefined },
    'the instance has failed',
  );
  process.exit(1);
}

function readUserData(userData: string): AnyUserData | null {
  try {
    return parseUserData(userData);
  } catch (error) {
    log.fatal({ problem: describeError(error) }, 'the user data is invalid');
    return null;
  }
}

const metadataEndpoint = process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT ?? AWS_METADATA;
const stateDirectory = process.env.STATE_DIRECTORY;
if (stateDirectory === undefined || stateDirectory === '')
  fail(
    new AppError('platform', 'STATE_DIRECTORY is not set', {
      hint: 'Start the program with a folder that survives its restart.',
    }),
  );

try {
  const metadata = await readMetadata(metadataEndpoint, systemClock);
  const userData = readUserData(metadata.userData);
  if (userData !== null) {
    const { run, slot, epoch } = userData;
    log.info({ run, slot, epoch, instanceId: metadata.instanceId, node: process.version }, 'starting');
    const folder = new StateFolder(stateDirectory, { run, slot, epoch }, systemClock.now());
    const { address } = metadata;
    const settings = await readSettings({ userData, file: folder.crawlSettingsPath, address, clock: systemClock });
    const openStore = async () => {
      const { S3ObjectStore } = await import('../shared/adapters/s3-object-store.ts');
      return new S3ObjectStore({ ...settings.s3, localAddress: address });
    };
    const parts = {
      settings,
      metadata,
      metadataEndpoint,
      folder,
      chromiumPath: process.env.CRAWLFLEET_CHROMIUM ?? null,
      openStore,
      readUserId: async () => {
        using store = await openStore();
        return await store.userId();
      },
      clock: systemClock,
      random: systemRandom,
      log,
    };
    const end = await runInstance(parts, stop.signal);
    log.info({ end }, 'no longer needed');
  }
} catch (error) {
  fail(error);
}
process.exit(0);
