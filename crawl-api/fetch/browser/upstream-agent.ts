/** Keeps the browser's plain-HTTP connections to the site open between requests, all of them made through the guard. */
import { Agent } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectOptions } from './guarded-connect.ts';
import { connectGuarded } from './guarded-connect.ts';

/** As many as a browser itself would open to one host. */
const MAX_PER_HOST = 6;
/** Shorter than what web servers use, so that a request does not meet a connection that is being closed. */
const IDLE_MS = 4_000;

export class UpstreamAgent extends Agent {
  readonly #options: ConnectOptions;

  constructor(options: ConnectOptions) {
    super({ keepAlive: true, maxSockets: MAX_PER_HOST, maxFreeSockets: MAX_PER_HOST, timeout: IDLE_MS });
    this.#options = options;
  }

  override createConnection(target: { host?: string | null; port?: number | string | null }): Duplex {
    return connectGuarded(target.host ?? '', Number(target.port ?? 80), this.#options);
  }
}
