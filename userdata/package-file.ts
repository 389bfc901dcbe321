/** Reads one file from an npm package without unpacking the rest. */
import { createReadStream } from 'node:fs';
import { PassThrough } from 'node:stream';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { Parser } from 'tar';
import { AppError } from '../shared/domain/errors.ts';

/**
 * The file as a stream, which fails with `runtime-unavailable` when the package is damaged or lacks a file of that name
 * and size.
 */
export function openPackageFile(archive: string, name: string, sizeBytes: number): Readable {
  const content = new PassThrough({ highWaterMark: 1_048_576 });
  let found = false;
  const damaged = (why: string, cause?: unknown): void =>
    void content.destroy(
      new AppError('runtime-unavailable', `${archive} is not the npm package it should be: ${why}`, {
        hint: `Remove ${archive}.`,
        ...(cause === undefined ? {} : { cause }),
      }),
    );
  const parser = new Parser({
    strict: true,
    onReadEntry(entry) {
      if (entry.path !== name || entry.size !== sizeBytes || entry.type !== 'File' || found) {
        entry.resume();
        return;
      }
      found = true;
      entry.pipe(content);
    },
  });
  parser.on('end', () => {
    if (!found) damaged(`it has no ${name} of ${sizeBytes} bytes`);
  });
  parser.on('error', (error: unknown) => damaged('it cannot be read', error));
  const source = createReadStream(archive);
  const unzipped = createGunzip();
  for (const stream of [source, unzipped]) stream.on('error', (error: unknown) => damaged('it cannot be read', error));
  source.pipe(unzipped).pipe(parser);
  return content;
}
