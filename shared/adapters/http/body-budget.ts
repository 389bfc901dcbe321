/**
 * Reads request bodies within a total byte budget: the bodies in flight over all connections of a listener never exceed
 * it, however many senders stall.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Why a body was not read to its end. The caller answers with `status` and closes the connection: the rest may still
 * arrive.
 */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused';
  readonly status: 400 | 413 | 503;

  constructor(status: 400 | 413 | 503, message: string) {
    super(message);
    this.status = status;
  }
}

interface Reading {
  heldBytes: number;
  refuse(reason: BodyRefused): void;
}

/** Large enough for most bodies. */
const FIRST_BYTES = 4_096;
const BLOCK_BYTES = 65_536;
const BODY_TOO_LARGE = 'the body is too large';
const DISCONNECTED = 'the sender disconnected';

export class BodyBudget {
  readonly #totalBytes: number;
  #heldBytes = 0;
  /** The readings under way by remote address, oldest first. */
  readonly #underWay = new Map<string, Set<Reading>>();

  /** @param totalBytes at least the largest body that is to be read */
  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * The whole body. Rejects with `BodyRefused`: 413 beyond `maxBytes`, at once where the headers announce it; 503 when
   * other bodies need the memory; 400 when the sender disconnected. The address that holds the most bytes loses its
   * oldest body: an honest sender finishes in milliseconds, so this hits senders that stall.
   */
  read(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
    if (Number(request.headers['content-length'] ?? 0) > maxBytes)
      return Promise.reject(new BodyRefused(413, BODY_TOO_LARGE));
    if (request.destroyed) return Promise.reject(new BodyRefused(400, DISCONNECTED));
    const address = request.socket.remoteAddress ?? '';
    return new Promise((resolve, reject) => {
      // Copied into our own blocks: arriving chunks may be a byte each, and each uses far more memory than that.
      const blocks: Buffer[] = [];
      let room: Buffer = Buffer.alloc(0);
      let bytes = 0;
      let isOver = false;
      const reading: Reading = { heldBytes: 0, refuse: (reason) => end(() => reject(reason)) };
      const end = (settle: () => void): void => {
        if (isOver) return;
        isOver = true;
        request.off('data', take).off('end', finish).off('close', onClose).off('error', onClose);
        // Data that still arrives is discarded.
        request.on('error', () => undefined).resume();
        this.#release(address, reading);
        settle();
        blocks.length = 0;
      };
      const take = (piece: Buffer): void => {
        if (bytes + piece.length > maxBytes) return reading.refuse(new BodyRefused(413, BODY_TOO_LARGE));
        bytes += piece.length;
        for (let rest = piece; rest.length > 0;) {
          if (room.length === 0) {
            const size = blocks.length === 0 ? FIRST_BYTES : BLOCK_BYTES;
            this.#hold(reading, size);
            if (isOver) return;
            blocks.push((room = Buffer.allocUnsafeSlow(size)));
          }
          const copied = rest.copy(room);
          room = room.subarray(copied);
          rest = rest.subarray(copied);
        }
      };
      const finish = (): void => end(() => resolve(Buffer.concat(blocks, bytes)));
      const onClose = (): void => reading.refuse(new BodyRefused(400, DISCONNECTED));
      this.#underWay.set(address, (this.#underWay.get(address) ?? new Set()).add(reading));
      request.on('data', take).on('end', finish).on('close', onClose).on('error', onClose);
    });
  }

  #hold(reading: Reading, moreBytes: number): void {
    reading.heldBytes += moreBytes;
    this.#heldBytes += moreBytes;
    while (this.#heldBytes > this.#totalBytes)
      this.#oldestOfLargest(reading).refuse(new BodyRefused(503, 'too many bodies at once; try again'));
  }

  /** The oldest non-empty body of the address whose bodies hold the most bytes. */
  #oldestOfLargest(newest: Reading): Reading {
    let oldest = newest;
    let maxBytes = 0;
    for (const readings of this.#underWay.values()) {
      const holding = [...readings].filter((one) => one.heldBytes > 0);
      const bytes = holding.reduce((sum, one) => sum + one.heldBytes, 0);
      const [first] = holding;
      if (first !== undefined && bytes > maxBytes) [oldest, maxBytes] = [first, bytes];
    }
    return oldest;
  }

  #release(address: string, reading: Reading): void {
    this.#heldBytes -= reading.heldBytes;
    reading.heldBytes = 0;
    const theirs = this.#underWay.get(address);
    theirs?.delete(reading);
    if (theirs?.size === 0) this.#underWay.delete(address);
  }
}

/**
 * Call before answering a request whose body was not read. The rest of the body cannot be distinguished from a next
 * request, so the connection is closed, unless the rest is at most `maxBytes`: closing while the sender still writes
 * would lose the answer, so Node skips the rest.
 */
export function closeUnlessRead(request: IncomingMessage, response: ServerResponse, maxBytes: number): void {
  const isShort = Number(request.headers['content-length'] ?? Infinity) <= maxBytes;
  if (!request.complete && !isShort) response.setHeader('connection', 'close');
}
