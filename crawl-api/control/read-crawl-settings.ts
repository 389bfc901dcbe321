/** Reads the instance's further settings: from its state folder after a restart, else by their presigned URL. */
import fs from 'node:fs';
import { Agent } from 'undici';
import { backoffMs } from '../../shared/domain/backoff.ts';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { type CrawlSettings, MAX_CRAWL_SETTINGS_BYTES, unpackCrawlSettings } from '../../shared/wire/crawl-settings.ts';
import type { InstanceSettings } from '../../shared/wire/settings.ts';

const TIMEOUT_MS = 30_000;
const TRIES = 5;
/** The longest pause between two tries. */
const MAX_PAUSE_MS = 8_000;

export interface ReadCrawlSettingsParts {
  /** As the user data names them; undefined: there are none. */
  named: InstanceSettings['crawlSettings'];
  /** File that keeps them: the URL expires. */
  file: string;
  /** Source address of the request. */
  address: string;
  clock: Clock;
}

/** Throws `platform` when they cannot be read within TRIES tries, or are others than the user data names. */
export async function readCrawlSettings({
  named,
  file,
  address,
  clock,
}: ReadCrawlSettingsParts): Promise<CrawlSettings> {
  if (named === undefined) return { version: 1 };
  const kept = fs.existsSync(file) ? unpackCrawlSettings(fs.readFileSync(file), named.sha256) : null;
  if (kept !== null) return kept;
  const agent = new Agent({ connections: 1, localAddress: address });
  try {
    for (let tries = 1; ; tries++) {
      try {
        const bytes = await fetchObject(agent, named.url);
        const settings = unpackCrawlSettings(bytes, named.sha256);
        if (settings === null) throw new Error('they have the wrong hash');
        // A file that is cut off has the wrong hash: they are then fetched again.
        fs.writeFileSync(file, bytes, { mode: 0o600 });
        return settings;
      } catch (cause) {
        if (tries >= TRIES)
          throw new AppError('platform', `the crawl settings cannot be read: ${describeError(cause)}`, { cause });
        await clock.sleep(backoffMs(tries, { firstMs: 500, maxMs: MAX_PAUSE_MS }));
      }
    }
  } finally {
    await agent.close();
  }
}

async function fetchObject(agent: Agent, url: string): Promise<Buffer> {
  const { origin, pathname, search } = new URL(url);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { statusCode, body } = await agent.request({ origin, path: pathname + search, method: 'GET', signal });
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > MAX_CRAWL_SETTINGS_BYTES) throw new Error(`they exceed ${MAX_CRAWL_SETTINGS_BYTES} bytes`);
    pieces.push(piece);
  }
  if (statusCode !== 200) throw new Error(`HTTP ${statusCode}`);
  return Buffer.concat(pieces);
}
