/** Sends notices to a URL: a POST with JSON, tried four times. It never blocks the schedule and never fails it. */
import { createHmac } from 'node:crypto';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Notice } from './notice.ts';
import type { Notifier } from './ports.ts';

export const SIGNATURE_HEADER = 'x-crawlfleet-signature';

export interface WebhookOptions {
  url: string;
  /** Signs the body; null leaves the header out. */
  secret: string | null;
  /** `problems` leaves out what is good. */
  on: 'all' | 'problems';
  clock: Clock;
  alarm: (text: string) => void;
  /** Waits before the second try and the later ones. */
  pausesMs?: readonly number[];
  timeoutMs?: number;
}

const PAUSES_MS = [1_000, 5_000, 25_000];
const TIMEOUT_MS = 10_000;

export class Webhook implements Notifier {
  readonly #o: WebhookOptions;
  readonly #url: string;
  /** User and password of the URL, which fetch takes only as a header. */
  readonly #authorization: Record<string, string>;
  readonly #closed = new AbortController();
  /** One after the other, so that they arrive in the order of what happened. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: WebhookOptions) {
    this.#o = options;
    const url = new URL(options.url);
    const { username, password } = url;
    const key = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64');
    this.#authorization = username === '' && password === '' ? {} : { authorization: `Basic ${key}` };
    [url.username, url.password] = ['', ''];
    this.#url = url.href;
  }

  tell(notice: Notice): Promise<boolean> {
    if (this.#o.on === 'problems' && notice.good) return Promise.resolve(true);
    const told = this.#last.then(() => this.#send(notice));
    this.#last = told;
    return told;
  }

  /** Gives up what is under way. */
  close(): void {
    this.#closed.abort();
  }

  async #send(notice: Notice): Promise<boolean> {
    const { clock, alarm, url, pausesMs = PAUSES_MS } = this.#o;
    const body = JSON.stringify(notice);
    let fault = '';
    for (const pauseMs of [0, ...pausesMs]) {
      await clock.sleep(pauseMs, this.#closed.signal);
      if (this.#closed.signal.aborted) return false;
      const answer = await this.#post(body);
      if (answer === null) return true;
      fault = answer.fault;
      if (!answer.again) break;
    }
    // The URL of a chat service is a secret in itself: only its host is told.
    if (!this.#closed.signal.aborted) alarm(`the webhook at ${new URL(url).host} did not take a notice: ${fault}`);
    return false;
  }

  /** Null when the receiver has it. */
  async #post(body: string): Promise<{ fault: string; again: boolean } | null> {
    const { secret, timeoutMs = TIMEOUT_MS } = this.#o;
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...this.#authorization,
          ...(secret === null ? {} : { [SIGNATURE_HEADER]: signBody(secret, body) }),
        },
        body,
        // To be sent on elsewhere is not what the user has configured.
        redirect: 'manual',
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(timeoutMs)]),
      });
      await response.body?.cancel();
      if (response.ok) return null;
      const { status } = response;
      return { fault: `it answered ${status}`, again: status >= 500 || status === 408 || status === 429 };
    } catch (error) {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      return { fault: describeError(cause).replaceAll(/\b[a-z]+:\/\/\S+/gi, 'its URL'), again: true };
    }
  }
}

/** What stands percent-encoded in a URL; a lone % stands for itself. */
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
