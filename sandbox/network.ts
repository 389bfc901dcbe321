/**
 * A sandbox's network: 127.A.0.0/16, exclusive on this machine. Linux routes all of 127/8 to the local machine without
 * setup, so every instance and every load balancer gets an address that it can listen on.
 */
import { createServer } from 'node:net';
import { AppError } from '../shared/domain/errors.ts';
import { closeServer, listen } from '../shared/adapters/http/listening.ts';

/** Listening on this port at 127.A.0.1 locks the network: the kernel releases it with the process, however it dies. */
const LOCK_PORT = 3737;
/** 127.0 to 127.15 stay free for other programs (resolvers use 127.0.0.53 and 127.0.1.1). */
const FIRST_NETWORK = 16;
const LAST_NETWORK = 254;

export interface Network {
  /** `127.37.0.0/16` */
  readonly cidr: string;
  /** The address at an offset into the network: 256 * x + y gives 127.A.x.y. */
  address(offset: number): string;
  /** Releases the network. */
  release(): Promise<void>;
}

/**
 * Takes the first free network, starting the search at `start` so that sandboxes started together rarely collide.
 * Throws AppError `platform` where 127.x addresses are not available.
 */
export async function takeNetwork(start: number, platform: NodeJS.Platform = process.platform): Promise<Network> {
  if (platform !== 'linux')
    throw new AppError('platform', `The sandbox gives each instance an address in 127.x.y.z, which ${platform} lacks`, {
      hint: 'Run it on Linux (a container or a virtual machine will do), or set aws.endpoint to another AWS endpoint.',
    });
  const count = LAST_NETWORK - FIRST_NETWORK + 1;
  for (let i = 0; i < count; i++) {
    const a = FIRST_NETWORK + ((start + i) % count);
    const lock = createServer((socket) => socket.destroy());
    const isOurs = await listen(lock, { host: `127.${a}.0.1`, port: LOCK_PORT, exclusive: true }).then(
      () => true,
      (cause: NodeJS.ErrnoException) => {
        if (cause.code === 'EADDRINUSE') return false;
        throw new AppError('platform', `Cannot listen on 127.${a}.0.1:${LOCK_PORT}`, {
          hint: 'The sandbox needs the addresses 127.16.0.0 to 127.254.255.255 of the loopback interface.',
          cause,
        });
      },
    );
    if (!isOurs) continue;
    return {
      cidr: `127.${a}.0.0/16`,
      address: (offset) => `127.${a}.${offset >> 8}.${offset & 255}`,
      release: () => closeServer(lock),
    };
  }
  throw new AppError('platform', `All ${count} sandbox networks of this machine are taken`, {
    hint: `End sandboxes that are not needed any more, or a program that listens on port ${LOCK_PORT} of all addresses.`,
  });
}

/** Allocates the addresses of one range, longest unused first, so that a new instance rarely receives old traffic. */
export class AddressPool {
  readonly #network: Network;
  readonly #first: number;
  readonly #size: number;
  readonly #taken = new Set<number>();
  #next = 0;

  constructor(network: Network, first: number, size: number) {
    this.#network = network;
    this.#first = first;
    this.#size = size;
  }

  get free(): number {
    return this.#size - this.#taken.size;
  }

  /** Takes a free address; null when every address is in use. */
  take(): string | null {
    if (this.free === 0) return null;
    while (this.#taken.has(this.#next)) this.#next = (this.#next + 1) % this.#size;
    const offset = this.#next;
    this.#taken.add(offset);
    this.#next = (offset + 1) % this.#size;
    return this.#network.address(this.#first + offset);
  }

  give(address: string): void {
    const [, , x = 0, y = 0] = address.split('.').map(Number);
    this.#taken.delete(256 * x + y - this.#first);
  }
}
