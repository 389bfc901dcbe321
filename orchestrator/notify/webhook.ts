/** Sends notices to URLs: a POST with JSON, tried four times in half a minute. Failing to deliver never fails the caller. */
import { createHmac } from 'node:crypto';
import { backoffMs } from '../../shared/domain/backoff.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { kindOf, type Notice, type NoticeKind } from './notice.ts';

const SIGNATURE_HEADER = 'x-crawlfleet-signature';
const TRIES = 4;
/** Of four tries each: five minutes apart, in the end an hour, for a day. */
const ROUNDS = 28;

export interface Target {
  /** A user and a password in it are sent as `Authorization: Basic`. */
  url: string;
  /** Signs the body; null leaves the header out. */
  secret: string | null;
  on: readonly NoticeKind[];
}

export interface Delivery {
  clock: Clock;
  /** Gives up what is under way. */
  signal: AbortSignal;
  tries?: number;
  /** Pause before the second try; later ones double. */
  firstPauseMs?: number;
  timeoutMs?: number;
}

/** Host of the target: the URL of a chat service is a secret in itself. */
export const hostOf = ({ url }: Target): string => new URL(url).host;

/** Null when the receiver has the notice or does not want it, else what was wrong. Never rejects. */
export async function deliver(target: Target, notice: Notice, delivery: Delivery): Promise<string | null> {
  const kind = kindOf(notice);
  if (kind !== null && !target.on.includes(kind)) return null;
  const { clock, signal, tries = TRIES, firstPauseMs = 4_000 } = delivery;
  const body = JSON.stringify(notice);
  for (let failures = 0; ; failures++) {
    const answer = await post(target, body, delivery);
    if (answer === null) return null;
    if (!answer.again || failures + 1 >= tries) return answer.fault;
    await clock.sleep(backoffMs(failures, { firstMs: firstPauseMs, maxMs: 60_000 }), signal);
    if (signal.aborted) return answer.fault;
  }
}

/** Tells every target at once. One line for each that did not take the notice, without its path. Never rejects. */
export async function notify(targets: readonly Target[], notice: Notice, delivery: Delivery): Promise<string[]> {
  const faults = await Promise.all(targets.map((target) => deliver(target, notice, delivery)));
  return faults.flatMap((fault, i) => (fault === null ? [] : [untaken(targets[i]!, fault)]));
}

/**
 * Tells every target until it takes the notice: round by round for a day, the first one after five minutes, with an alarm
 * for each round that fails. Resolves when all have it or the signal aborts. Never rejects.
 */
export async function notifyPatiently(
  targets: readonly Target[],
  notice: Notice,
  delivery: Delivery,
  alarm: (text: string) => void,
): Promise<void> {
  const tellOne = async (target: Target): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      const fault = await deliver(target, notice, delivery);
      if (fault === null || delivery.signal.aborted) return;
      alarm(untaken(target, fault));
      await delivery.clock.sleep(backoffMs(round, { firstMs: 300_000, maxMs: 3_600_000 }), delivery.signal);
    }
  };
  await Promise.all(targets.map(tellOne));
}

const untaken = (target: Target, fault: string): string =>
  `the webhook at ${hostOf(target)} did not take a notice: ${fault}`;

/** Null when the receiver has it. */
async function post(
  target: Target,
  body: string,
  { signal, timeoutMs = 10_000 }: Delivery,
): Promise<{ fault: string; again: boolean } | null> {
  const { url, headers } = splitUser(target.url);
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...headers,
        ...(target.secret === null ? {} : { [SIGNATURE_HEADER]: signBody(target.secret, body) }),
      },
      body,
      // To be sent on elsewhere is not what the user has configured.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    await response.body?.cancel();
    if (response.ok) return null;
    const { status } = response;
    return { fault: `it answered ${status}`, again: status >= 500 || status === 408 || status === 429 };
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return { fault: describeError(cause).replaceAll(/\b[a-z]+:\/\/\S+/gi, 'its URL'), again: !signal.aborted };
  }
}

/** fetch takes user and password as a header only. */
function splitUser(text: string): { url: string; headers: Record<string, string> } {
  const url = new URL(text);
  const { username, password } = url;
  if (username === '' && password === '') return { url: text, headers: {} };
  [url.username, url.password] = ['', ''];
  const key = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64');
  return { url: url.href, headers: { authorization: `Basic ${key}` } };
}

/** Decodes percent-encoding; a lone % stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `sha256=` and the HMAC-SHA256 of the body's bytes in hex. */
export function signBody(secret: string, body: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
