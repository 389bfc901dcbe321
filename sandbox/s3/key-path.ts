/**
 * Keys as file names. A key may contain anything, including `../` and bytes that are invalid in file names: it is
 * percent-encoded as a whole, including slashes, and split into pieces that fit a file name. Folders end in `+`, which
 * no encoded key contains, so a key that is a prefix of another never collides with that one's folder.
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
    // A name of only dots would be a path step, and a leading dot hides the file.
    .replace(/^\./, '%2E');
  const pieces: string[] = [];
  for (let i = 0; i < encoded.length; i += PIECE_CHARS) pieces.push(encoded.slice(i, i + PIECE_CHARS));
  // The same for later pieces, which may begin anywhere in the key.
  const names = pieces.map((piece) => (piece.startsWith('.') ? `@${piece}` : piece));
  return names.map((name, index) => (index < names.length - 1 ? `${name}+` : name)).join('/');
}

/** S3's order of keys: by UTF-8 bytes. Differs from JavaScript's order only beyond the basic plane. */
export const compareKeys = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
