/** Whether a page asks robots not to follow its links: by its meta tags, or by the header X-Robots-Tag. Pure. */

const FORBIDDING = new Set(['nofollow', 'none']);

/** Rules that have a value behind a colon, as a name of a robot has its rules. */
const WITH_VALUE = new Set(['unavailable_after', 'max-snippet', 'max-image-preview', 'max-video-preview']);

/** @param content of a meta tag for all robots, or for ours */
export const metaForbids = (content: string): boolean =>
  content.split(',').some((rule) => FORBIDDING.has(rule.trim().toLowerCase()));

/**
 * The rules behind the name of a robot are for that robot alone, up to the next name.
 *
 * @param header repeated ones joined by commas: what follows a rule for another robot is then taken for its own
 * @param token our name, as `productToken` gives it
 */
export function headerForbids(header: string, token: string): boolean {
  let isOurs = true;
  for (const part of header.split(',')) {
    const [, name, rest] = /^\s*([^:\s]+)\s*:(.*)$/s.exec(part) ?? [];
    const isNamed = name !== undefined && !WITH_VALUE.has(name.toLowerCase());
    if (isNamed) isOurs = name.toLowerCase() === token || name === '*';
    if (isOurs && FORBIDDING.has((isNamed ? (rest ?? '') : part).trim().toLowerCase())) return true;
  }
  return false;
}
