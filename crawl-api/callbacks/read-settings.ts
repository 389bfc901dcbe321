/**
 * Completes the instance's user data by the object that it names: from the state folder after a restart, else by the
 * presigned URL.
 */
import fs from 'node:fs';
import { Agent } from 'undici';
import { backoffMs } from '../../shared/domain/backoff.ts';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { MAX_CRAWL_SETTINGS_BYTES, unpackCrawlSettings } from '../../shared/wire/crawl-settings.ts';
import type { AnyUserData, InstanceSettings, UserData } from '../../shared/wire/settings.ts';

const TIMEOUT_MS = 30_000;
const TRIES = 5;
/** The longest pause between two tries. */
const MAX_PAUSE_MS = 8_000;

export interface ReadSettingsParts {
  userData: AnyUserData;
  /** File that keeps the object: the URL expires. */
  file: string;
  /** Source address of the request. */
  address: string;
  clock: Clock;
}

/** Throws `platform` when the object cannot be read within TRIES tries, or is another than the user data names. */
export async function readSettings({ userData, ...parts }: ReadSettingsParts): Promise<InstanceSettings> {
  if (userData.version === 1) {
    // Of an earlier version: the object, if there is one, has a deny list only.
    const { site, crawlSettings, ...rest } = userData;
    const { links, ...siteSettings } = site;
    const { deny } = crawlSettings === undefined ? {} : await readObject(crawlSettings, parts);
    return {
      ...rest,
      site: { ...siteSettings, maxRatePerSecond: null, onBan: 'cool-down' },
      ...(links === undefined ? {} : { links }),
      ...(deny === undefined ? {} : { deny }),
    };
  }
  const settings = await readObject(userData.crawlSettings, parts);
  if (settings.version === 1) throw new AppError('platform', 'the crawl settings are those of an earlier version');
  return { ...userData, ...settings };
}

async function readObject(
  named: UserData['crawlSettings'],
  { file, address, clock }: Omit<ReadSettingsParts, 'userData'>,
): Promise<NonNullable<ReturnType<typeof unpackCrawlSettings>>> {
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
