/**
 * What an instance must keep besides its journal: its key pair, whether the main server has accepted it, and its
 * callback counter. One folder per run, slot and epoch, readable by the crawler's user only.
 */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import fs from 'node:fs';
import path from 'node:path';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import {
  createKeyPair,
  exportPrivateKey,
  exportPublicKey,
  importPrivateKey,
  importPublicKey,
  type KeyPair,
} from '../../shared/wire/signature.ts';

const identitySchema = z.object({ privateKey: z.string(), publicKey: z.string() });

/** Counters are reserved in blocks: the file holds the end of the block that may be in use. */
const COUNTER_BLOCK = 10_000;

export class StateFolder {
  readonly #folder: string;
  readonly journalPath: string;
  /** Disk space reserved next to the journal for when the disk is full. */
  readonly reservePath: string;
  /** The folder for data that need not survive, such as a browser's profile. */
  readonly scratchPath: string;
  /** The settings that the instance has fetched. */
  readonly crawlSettingsPath: string;
  readonly privateKey: KeyObject;
  readonly publicKeyText: string;
  #counter: number;
  #reservedTo: number;

  /** Opens or creates the folder of this run, slot and epoch below `base`. */
  constructor(base: string, owner: { run: string } & EpochId, nowMs: number) {
    this.#folder = path.join(base, `${encodeURIComponent(owner.run)}-${owner.slot}-${owner.epoch}`);
    fs.mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.journalPath = path.join(this.#folder, 'journal');
    this.reservePath = path.join(this.#folder, 'reserve');
    this.scratchPath = path.join(this.#folder, 'scratch');
    this.crawlSettingsPath = path.join(this.#folder, 'crawl-settings.json.gz');
    const keys = this.#loadKeys();
    this.privateKey = keys.privateKey;
    this.publicKeyText = exportPublicKey(keys.publicKey);
    const reserved = this.#read('counter');
    // The first counter is the clock's time; a clock that was set back does not lower it.
    this.#counter = Math.max(reserved === null ? 0 : Number(reserved), nowMs);
    this.#reservedTo = this.#counter;
  }

  get helloAccepted(): boolean {
    return this.#read('hello-accepted') !== null;
  }

  markHelloAccepted(): void {
    this.#write('hello-accepted', '1');
  }

  /** The role session as an earlier process has kept it; null: it got no answer; undefined: it has not asked. */
  get roleSession(): string | null | undefined {
    const kept = this.#read('role-session');
    return kept === '' ? null : (kept ?? undefined);
  }

  keepRoleSession(session: string | null): void {
    try {
      this.#write('role-session', session ?? '');
    } catch {
      // The disk is full: a later process asks again.
    }
  }

  /** Greater than every earlier counter, also across restarts. */
  nextCounter(): number {
    this.#counter++;
    if (this.#counter > this.#reservedTo) this.#reserveCounters();
    return this.#counter;
  }

  #reserveCounters(): void {
    const to = this.#counter + COUNTER_BLOCK;
    try {
      this.#write('counter', String(to));
      this.#reservedTo = to;
    } catch {
      // Reporting a full disk needs a counter too. The next call retries the write; a process that starts before that
      // begins at the clock, which is ahead of all counters used.
    }
  }

  #loadKeys(): KeyPair {
    const text = this.#read('identity.json');
    if (text !== null) {
      const { privateKey, publicKey } = identitySchema.parse(JSON.parse(text));
      return { privateKey: importPrivateKey(privateKey), publicKey: importPublicKey(publicKey) };
    }
    const keys = createKeyPair();
    this.#write(
      'identity.json',
      JSON.stringify({ privateKey: exportPrivateKey(keys.privateKey), publicKey: exportPublicKey(keys.publicKey) }),
    );
    return keys;
  }

  #read(name: string): string | null {
    try {
      return fs.readFileSync(path.join(this.#folder, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Atomic, also across a power cut. */
  #write(name: string, text: string): void {
    const file = path.join(this.#folder, name);
    const fd = fs.openSync(`${file}.new`, 'w', 0o600);
    try {
      fs.writeSync(fd, text);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    fs.renameSync(`${file}.new`, file);
  }
}
