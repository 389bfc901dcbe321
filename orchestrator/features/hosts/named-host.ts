/** The words of `orchestrator hosts`: which host is meant, and which pace. */
import { AppError } from '../../../shared/domain/errors.ts';
import { hostGroupOf, type HostKey, isPublicSuffix } from '../../../shared/domain/host-key.ts';
import { formatDuration, parseDuration } from '../../../shared/domain/quantity.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';

const HINT = 'Name it as shop.example, www.shop.example:8443, https://shop.example/item/1 or 192.0.2.7.';
/** A name has up to 253 characters. */
const MAX_NAME = 253;
const SHOWN = 200;
/** A shorter pace asks for nothing: no run is configured that fast for many hosts. */
const MIN_PACE_MS = 1_000;
const MAX_PACE_MS = 86_400_000;

/** What one pace holds for (`hostGroupOf`) where this name or URL is. Throws `usage`. */
export function namedHost(given: string, key?: HostKey): string {
  const text = given.trim();
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  // An IPv6 address is written without brackets where it is no part of a URL.
  const isBareV6 = !isUrl && /^[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*$/i.test(text);
  const url = URL.parse(isUrl ? text : `http://${isBareV6 ? `[${text}]` : text}`);
  const refuse = (why: string): AppError => new AppError('usage', `${plain(given, SHOWN)} ${why}`, { hint: HINT });
  if (url === null || !/^https?:$/.test(url.protocol)) throw refuse('is no host, and no http or https URL');
  if (url.username !== '' || url.password !== '') throw refuse('is a mail address, or has a user or a password');
  if (url.hostname.includes('*')) throw refuse('has a *: a domain stands for all names in it as it is');
  if (url.hostname.length > MAX_NAME || url.hostname.split('.').slice(0, -1).includes(''))
    throw refuse('is no name of a host');
  if (isPublicSuffix(url)) throw refuse('is no host: many operators have domains below it');
  return hostGroupOf(url, key);
}

/** The gap in milliseconds. Throws `usage`. */
export function namedPace(given: string): number {
  const ms = parseDuration(given);
  const range = `from ${formatDuration(MIN_PACE_MS)} to ${formatDuration(MAX_PACE_MS)}`;
  if (ms === null || ms < MIN_PACE_MS || ms > MAX_PACE_MS)
    throw new AppError('usage', `${plain(given, SHOWN)} is no pace for a host: it must be a duration ${range}`, {
      hint: 'For example: orchestrator hosts pace shop.example 60s. To have nothing asked at all: orchestrator hosts deny shop.example',
    });
  return ms;
}
