/** Detects from outside when a connection begins to carry data: a TLS tunnel first carries its handshake. */

const HANDSHAKE = 0x16;
const APPLICATION_DATA = 0x17;
const HEADER_BYTES = 5;

/**
 * Watches one direction of a connection. In TLS 1.3 the end of the client's handshake looks like data too, but it is
 * sent together with the first request, so the moment is exact to within one write.
 */
export class DataDetector {
  #isTls: boolean | null = null;
  /** Bytes left of the current record. */
  #bytesLeft = 0;
  readonly #header: number[] = [];

  /**
   * True when part of the chunk belongs to a data record that begins in it, or when the connection is not TLS at all.
   */
  scan(chunk: Uint8Array): boolean {
    if (chunk.length === 0) return false;
    this.#isTls ??= chunk[0] === HANDSHAKE;
    if (!this.#isTls) return true;
    let found = false;
    for (let at = 0; at < chunk.length;) {
      if (this.#bytesLeft > 0) {
        const skipped = Math.min(this.#bytesLeft, chunk.length - at);
        this.#bytesLeft -= skipped;
        at += skipped;
        continue;
      }
      this.#header.push(chunk[at++]!);
      if (this.#header.length < HEADER_BYTES) continue;
      if (this.#header[0] === APPLICATION_DATA) found = true;
      this.#bytesLeft = this.#header[3]! * 256 + this.#header[4]!;
      this.#header.length = 0;
    }
    return found;
  }
}
