/** Where a text occurs, in any spelling that a program may have given it: for tests that a secret occurs nowhere. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** True when the bytes have the text: as it is, in Base64, in an address, or in pieces that are compressed. */
export function hasText(bytes: Uint8Array, text: string): boolean {
  const all = Buffer.from(bytes);
  const spellings = [text, encodeURIComponent(text), Buffer.from(text).toString('hex'), ...base64Of(text)];
  if (spellings.some((spelling) => all.includes(spelling))) return true;
  // User data is a script with a compressed line.
  for (const [packed] of all.toString('latin1').matchAll(/H4sI[A-Za-z0-9+/]+={0,2}/g))
    if (unpacked(Buffer.from(packed, 'base64'))?.includes(text) === true) return true;
  return all[0] === 0x1f && all[1] === 0x8b && unpacked(all)?.includes(text) === true;
}

/** The middle of the text in Base64, for each of the three places that it may begin at. */
const base64Of = (text: string): string[] =>
  [0, 1, 2].map((skipped) => {
    const bytes = Buffer.from(text).subarray((3 - skipped) % 3);
    return bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64');
  });

function unpacked(bytes: Uint8Array): Buffer | null {
  try {
    return gunzipSync(bytes);
  } catch {
    return null;
  }
}

/** Files below the folder that have one of the texts; those that vanish meanwhile do not count. */
export function filesWith(folder: string, texts: readonly string[]): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => {
      const bytes = readQuietly(file);
      return texts.some((text) => hasText(bytes, text));
    });
}

/** Processes with one of the texts in their environment or command line. */
export const processesWith = (pids: readonly number[], texts: readonly string[]): number[] =>
  pids.filter((pid) =>
    ['environ', 'cmdline'].some((file) => texts.some((text) => hasText(readQuietly(`/proc/${pid}/${file}`), text))),
  );

function readQuietly(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}
