/** The secrets among the headers and cookies of a run's site, as its main server hands them to instances. */
import { randomUUID } from 'node:crypto';
import { describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Heartbeat, Orders } from '../../../shared/wire/callbacks.ts';
import { encryptSecrets, type Secrets } from '../../../shared/wire/secrets.ts';
import type { InstanceRecord } from '../model/stores.ts';

/** A `.env` is a small file, but a large fleet sends hundreds of heartbeats a second. */
const REREAD_MS = 1_000;

export interface RunSecretsOptions {
  runId: string;
  /** Reads them as they are now; throws when one has no value, or none that can be sent. */
  read: () => Secrets;
  clock: Clock;
  alarm: (detail: string) => Promise<void>;
}

/**
 * Read again while the run goes on, so that a changed one reaches each instance with its next heartbeat. While they
 * cannot be read, those read last stand.
 */
export class RunSecrets {
  readonly #options: RunSecretsOptions;
  /** The version is drawn at random: a hash would let a reader of callbacks try values. */
  #current: { version: string; secrets: Secrets } | null = null;
  #readMs = -Infinity;
  #fault: string | null = null;

  constructor(options: RunSecretsOptions) {
    this.#options = options;
  }

  /** What the reply to this heartbeat has for its sender; nothing when it has the current ones, or has named no key. */
  encryptedFor(
    { slot, epoch, secretsKey }: Pick<InstanceRecord, 'slot' | 'epoch' | 'secretsKey'>,
    heartbeat: Pick<Heartbeat, 'secrets'>,
  ): Pick<Orders, 'secrets'> {
    const current = this.#read();
    if (current === null || secretsKey === null || heartbeat.secrets === current.version) return {};
    const { version, secrets } = current;
    const recipient = { run: this.#options.runId, slot, epoch };
    return { secrets: { version, encrypted: encryptSecrets(secrets, secretsKey, recipient) } };
  }

  #read(): { version: string; secrets: Secrets } | null {
    const { clock, read } = this.#options;
    if (clock.monotonic() - this.#readMs < REREAD_MS) return this.#current;
    this.#readMs = clock.monotonic();
    try {
      const secrets = read();
      const isSame = JSON.stringify(secrets) === JSON.stringify(this.#current?.secrets);
      if (!isSame) this.#current = { version: randomUUID(), secrets };
      this.#fault = null;
    } catch (error) {
      this.#tell(describeError(error));
    }
    return this.#current;
  }

  #tell(fault: string): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    const { alarm } = this.#options;
    const stand = this.#current === null ? 'instances that lack them wait' : 'those read last stand';
    // An alarm that cannot be stored is in the log.
    alarm(`the secrets of site.headers and site.cookies cannot be read, and ${stand}: ${fault}`).catch(() => undefined);
  }
}
