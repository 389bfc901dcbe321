/** A machine's serial console: the last 64 KB for GetConsoleOutput, and a file with more for debugging. */
import { createWriteStream } from 'node:fs';
import type { WriteStream } from 'node:fs';

/** As much as EC2 keeps. */
const KEPT_BYTES = 65_536;
/** A program in a log flood must not fill the disk. */
const MAX_FILE_BYTES = 4_000_000;

export class MachineConsole {
  readonly #file: WriteStream;
  #chunks: Buffer[] = [];
  #keptBytes = 0;
  #fileBytes = 0;

  constructor(path: string) {
    this.#file = createWriteStream(path, { flags: 'a', mode: 0o600 });
    this.#file.on('error', () => {});
  }

  /** Output of the machine's own parts (boot, service manager). */
  line(text: string): void {
    this.write(Buffer.from(`${text}\n`));
  }

  /** Output of a program. */
  write(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.length;
    while (this.#chunks.length > 1 && this.#keptBytes - this.#chunks[0]!.length >= KEPT_BYTES) {
      this.#keptBytes -= this.#chunks.shift()!.length;
    }
    if (this.#fileBytes < MAX_FILE_BYTES) this.#file.write(chunk);
    this.#fileBytes += chunk.length;
  }

  output(): Buffer {
    const all = Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - KEPT_BYTES));
  }

  close(): void {
    this.#file.end();
  }
}
