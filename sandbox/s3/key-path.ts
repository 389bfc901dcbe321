/**
 * Keys as file names. A key may hold anything, also `../` and bytes no file name can have: it is percent-encoded as a
 * whole, its slashes too, and cut into pieces that fit a file name. Folders end in `+`, which no encoded key contains,
 * so a key that is the beginning of another one never meets that one's folder.
 */

const PIECE_CHARS = 200;

/** A relative path that is safe for every key. */
export function keyToPath(key: string): string {
  const encoded = [...Buffer.from(key, 'utf8')]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[A-Za-z0-9._-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('')
    // A name of dots only would be a path step, and a leading dot hides the file.
    .replace(/^\./, '%2E');
  const pieces: string[] = [];
  for (let i = 0; i < encoded.length; i += PIECE_CHARS) pieces.push(encoded.slice(i, i + PIECE_CHARS));
  // The same for a later piece: it may begin anywhere in the key.
  const names = pieces.map((piece) => (piece.startsWith('.') ? `@${piece}` : piece));
  return names.map((name, index) => (index < names.length - 1 ? `${name}+` : name)).join('/');
}

/** Order of keys as S3 lists them: by UTF-8 bytes. Differs from JavaScript's order beyond the basic plane only. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for the highest code points, though their own numbers are not the highest. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);
