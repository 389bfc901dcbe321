/** The machine's own names, usually /etc/hosts: read again when the file has changed. */
import type { LookupAddress } from 'node:dns';
import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Clock } from '../../ports/clock.ts';

const LOOK_EVERY_MS = 1_000;

type Names = ReadonlyMap<string, readonly LookupAddress[]>;

export class HostsFile {
  readonly #path: string;
  readonly #clock: Clock;
  #names: Names = new Map();
  /** What the file was when it was read. */
  #version = '';
  #lookedMs = -Infinity;
  #looking: Promise<void> | null = null;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /**
   * The addresses of a name in lower case and without a dot at its end, of both families; null where DNS is to be
   * asked. Empty for a name below `localhost` that the file does not have: DNS is not asked for those (RFC 6761).
   */
  async addressesOf(name: string): Promise<readonly LookupAddress[] | null> {
    await this.#look();
    const own = this.#names.get(name);
    if (own !== undefined) return own;
    return name === 'localhost' || name.endsWith('.localhost') ? (this.#names.get('localhost') ?? []) : null;
  }

  async #look(): Promise<void> {
    if (this.#looking === null && this.#clock.monotonic() - this.#lookedMs < LOOK_EVERY_MS) return;
    this.#looking ??= this.#readAgain().finally(() => (this.#looking = null));
    await this.#looking;
  }

  async #readAgain(): Promise<void> {
    this.#lookedMs = this.#clock.monotonic();
    try {
      // Looked at before it is read: what is written meanwhile is seen the next time.
      const { mtimeNs, size, ino } = await stat(this.#path, { bigint: true });
      const version = `${ino} ${size} ${mtimeNs}`;
      if (version === this.#version) return;
      this.#names = parseHosts(await readFile(this.#path, 'utf8'));
      this.#version = version;
    } catch (error) {
      // Any other fault says nothing about the names, and the next look may succeed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return;
      this.#names = new Map();
      this.#version = '';
    }
  }
}

/** A name on several lines has the addresses of all of them. */
export function parseHosts(text: string): Map<string, LookupAddress[]> {
  const names = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...others] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const other of others) {
      const name = plainName(other);
      const own = names.get(name) ?? [];
      if (!own.some((known) => known.address === address)) own.push({ address, family });
      names.set(name, own);
    }
  }
  return names;
}

/** How a name is compared: in lower case, and without the dot of the root. */
export const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '');
