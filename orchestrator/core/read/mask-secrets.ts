/** Settings as everybody who may read the page may see them. Pure. */

const SECRET = /token|secret|passw|credential|authorization|cookie$|private|api[-_]?key/i;
const SECRET_PARAMETER = /([?&][^=&#]*(?:token|secret|passw|signature|key|auth)[^=&#]*=)[^&#\s]+/gi;
const USER_OF_URL = /(\w:\/\/)[^/?#\s]*@/g;
const MASK = '***';

/**
 * A copy: what the name of a key calls secret, and what a URL has before its host or in such a parameter, is masked.
 */
export function maskSecrets(value: unknown): unknown {
  if (typeof value === 'string')
    return value.replaceAll(USER_OF_URL, `$1${MASK}@`).replaceAll(SECRET_PARAMETER, `$1${MASK}`);
  if (Array.isArray(value)) return value.map(maskSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      SECRET.test(key) && typeof inner === 'string' ? MASK : maskSecrets(inner),
    ]),
  );
}
