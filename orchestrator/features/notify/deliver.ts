/** Sends notices: to a webhook, Slack, by mail or to a command. A failure to deliver never fails the caller. */
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import type { NodemailerError } from 'nodemailer';
import { backoffMs } from '../../../shared/domain/backoff.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { decodePercent } from '../../../shared/domain/percent.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { parseRetryAfter } from '../../../shared/domain/reply-fields.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { mailOf } from './mail-text.ts';
import type { Notice, NoticeKind } from './notice.ts';

const SIGNATURE_HEADER = 'x-crawlfleet-signature';
const TRIES = 4;
/** The pause between rounds of four tries; it doubles up to an hour. */
const FIRST_ROUND_PAUSE_MS = 300_000;
const PATIENCE_MS = 24 * 3_600_000;

export type Target = {
  on: readonly NoticeKind[];
  /** Gets the notices of dry runs, too. */
  dryRuns: boolean;
} & (
  | {
      kind: 'webhook';
      /** A user and a password in it are sent as `Authorization: Basic`. */
      url: string;
      /** Signs the body; null leaves the header out. */
      secret: string | null;
    }
  /** An incoming webhook of Slack, or of a chat that takes the same. */
  | { kind: 'slack'; url: string }
  /** `smtp` is smtp:// (STARTTLS where offered) or smtps://, with user and password in it. */
  | { kind: 'email'; smtp: string; from: string; to: readonly string[] }
  /** A program and its arguments, without a shell; it gets the notice as JSON on stdin. */
  | { kind: 'command'; command: readonly string[] }
);

export interface Delivery {
  clock: Clock;
  /** Gives up what is under way. */
  signal: AbortSignal;
  tries?: number;
  /** A receiver that asks for a pause beyond it is not tried again; without it every pause is kept. */
  withinMs?: number;
  /** Pause before the second try; later ones double. */
  firstPauseMs?: number;
  timeoutMs?: number;
}

/** Name of a target in messages: only the host of a URL, because that of a chat service is a secret in itself. */
export function nameOf(target: Target): string {
  switch (target.kind) {
    case 'webhook':
    case 'slack':
      return `the ${target.kind === 'slack' ? 'Slack webhook' : 'webhook'} at ${new URL(target.url).host}`;
    case 'email':
      return `the mail to ${target.to.join(', ')} by ${new URL(target.smtp).host}`;
    case 'command':
      return `the command ${target.command[0]}`;
  }
}

interface Answer {
  fault: string;
  again: boolean;
  /** The pause that the receiver asks for. */
  pauseMs?: number;
  /** Recipients of a mail that do not have it yet; omitted where that is all of them. */
  left?: readonly string[];
}

/** Delivers a notice. Null when the receiver has it or does not want it, else what was wrong. Never rejects. */
export async function deliver(target: Target, notice: Notice, delivery: Delivery): Promise<string | null> {
  if (!isFor(target, notice)) return null;
  return (await retried(delivery, sender(target, notice, delivery)))?.fault ?? null;
}

const isFor = ({ on, dryRuns }: Target, { event, kinds, dryRun }: Notice): boolean =>
  event === 'test' || ((dryRuns || !dryRun) && kinds.some((kind) => on.includes(kind)));

async function retried(delivery: Delivery, attempt: () => Promise<Answer | null>): Promise<Answer | null> {
  const { clock, signal, tries = TRIES, withinMs = Infinity, firstPauseMs = 4_000 } = delivery;
  const begunMs = clock.monotonic();
  for (let failures = 0; ; failures++) {
    const answer = await attempt();
    if (answer === null || !answer.again || failures + 1 >= tries) return answer;
    const pauseMs = longer(answer, backoffMs(failures, { firstMs: firstPauseMs, maxMs: 60_000 }));
    if (clock.monotonic() - begunMs + pauseMs > withinMs) return answer;
    await clock.sleep(pauseMs, signal);
    if (signal.aborted) return answer;
  }
}

const longer = ({ pauseMs = 0 }: Answer, ownMs: number): number => Math.max(pauseMs, ownMs);

/** Pings a dead man's switch when a run has begun or ended; resolves to what failed, or null. Never rejects. */
export async function ping(url: string, state: 'start' | 'end' | 'fail', delivery: Delivery): Promise<string | null> {
  const target = new URL(url);
  if (state !== 'end') target.pathname = `${target.pathname.replace(/\/$/, '')}/${state}`;
  const answer = await retried(delivery, () => request(target.href, { method: 'GET' }, delivery));
  return answer === null ? null : `the ping of ${target.host} failed: ${answer.fault}`;
}

/**
 * Sends the notice to every target at once. One line for each that did not take the notice, without its path. Never
 * rejects.
 */
export async function notify(targets: readonly Target[], notice: Notice, delivery: Delivery): Promise<string[]> {
  const faults = targets.map(async (target) => {
    const fault = await deliver(target, notice, delivery);
    return fault === null ? [] : [untaken(target, fault)];
  });
  return (await Promise.all(faults)).flat();
}

/**
 * Sends the notice to every target until it takes it, for a day, with an alarm for each failed round. Never rejects.
 */
export async function notifyPatiently(
  targets: readonly Target[],
  notice: Notice,
  delivery: Delivery,
  alarm: (text: string) => void,
): Promise<void> {
  const { clock, signal } = delivery;
  const untilMs = clock.now() + PATIENCE_MS;
  const sendTo = async (target: Target): Promise<void> => {
    const send = sender(target, notice, delivery);
    for (let round = 0; ; round++) {
      // A longer pause is one between rounds: the alarm before it says so.
      const answer = await retried({ ...delivery, withinMs: FIRST_ROUND_PAUSE_MS }, send);
      if (answer === null || signal.aborted) return;
      alarm(untaken(target, answer.fault));
      const pauseMs = longer(answer, backoffMs(round, { firstMs: FIRST_ROUND_PAUSE_MS, maxMs: 3_600_000 }));
      if (clock.now() + pauseMs > untilMs) return;
      await clock.sleep(pauseMs, signal);
    }
  };
  await Promise.all(targets.filter((target) => isFor(target, notice)).map(sendTo));
}

const untaken = (target: Target, fault: string): string => `${nameOf(target)} did not take a notice: ${fault}`;

/**
 * A function that tries to send the notice: null when the receiver has it, never rejects. Of a mail it remembers who
 * has it: one recipient that is refused must not send the others the mail again.
 */
function sender(target: Target, notice: Notice, delivery: Delivery): () => Promise<Answer | null> {
  if (target.kind !== 'email') return () => send(target, notice, delivery);
  let { to } = target;
  return async () => {
    const answer = await mail({ ...target, to }, notice, delivery);
    to = answer?.left ?? to;
    return answer;
  };
}

function send(target: Exclude<Target, { kind: 'email' }>, notice: Notice, delivery: Delivery): Promise<Answer | null> {
  switch (target.kind) {
    case 'webhook': {
      const body = JSON.stringify(notice);
      const signature = target.secret === null ? {} : { [SIGNATURE_HEADER]: signBody(target.secret, body) };
      return request(target.url, { method: 'POST', headers: { ...JSON_TYPE, ...signature }, body }, delivery);
    }
    case 'slack': {
      const body = JSON.stringify({ text: slackText(notice) });
      return request(target.url, { method: 'POST', headers: JSON_TYPE, body }, delivery);
    }
    case 'command':
      return runCommand(target.command, notice, delivery);
  }
}

/** The three characters that Slack reads as markup. */
const slackText = ({ text }: Notice): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const JSON_TYPE = { 'content-type': 'application/json' };

async function request(
  target: string,
  options: { method: string; headers?: Record<string, string>; body?: string },
  { clock, signal, timeoutMs = 10_000 }: Delivery,
): Promise<Answer | null> {
  const { url, headers: user } = splitUser(target);
  try {
    const response = await fetch(url, {
      ...options,
      headers: { ...user, ...options.headers },
      // To be sent on elsewhere is not what the user has configured.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    await response.body?.cancel();
    if (response.ok) return null;
    const { status, headers } = response;
    const pauseMs = parseRetryAfter(headers.get('retry-after') ?? '', clock.now()) ?? 0;
    const asks = pauseMs === 0 ? '' : ` and asks for a pause of ${formatDuration(pauseMs)}`;
    return { fault: `it answered ${status}${asks}`, again: status >= 500 || status === 408 || status === 429, pauseMs };
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return { fault: withoutUrls(describeError(cause)), again: !signal.aborted };
  }
}

const withoutUrls = (text: string): string => text.replaceAll(/\b[a-z]+:\/\/\S+/gi, 'its URL');

async function mail(
  { smtp, from, to }: Extract<Target, { kind: 'email' }>,
  notice: Notice,
  { signal, timeoutMs = 10_000 }: Delivery,
): Promise<Answer | null> {
  const limits = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs };
  // Twenty megabytes that only mail needs.
  const { createTransport } = await import('nodemailer');
  const transport = createTransport(smtp, { from, ...limits });
  const onAbort = (): void => transport.close();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    // It resolves as soon as one recipient is accepted.
    const { rejectedErrors } = await transport.sendMail({ to: [...to], ...mailOf(notice) });
    return rejectedErrors === undefined ? null : refusal(rejectedErrors);
  } catch (error) {
    const { permanent, rejectedErrors } = error as NodemailerError;
    if (rejectedErrors !== undefined) return refusal(rejectedErrors);
    const fault = withoutUrls(describeError(error));
    return isNoTls(fault)
      ? { fault: `${fault}: this port does not begin with TLS, write smtp:// instead of smtps://`, again: false }
      : { fault, again: !signal.aborted && permanent !== true };
  } finally {
    signal.removeEventListener('abort', onAbort);
    transport.close();
  }
}

/** What OpenSSL makes of a greeting in plain text, as a port for STARTTLS sends it. */
const isNoTls = (fault: string): boolean => /wrong version number|packet length too long/i.test(fault);

function refusal(errors: readonly NodemailerError[]): Answer {
  const lines = errors.map(({ recipient, response = '' }) => `${recipient} is refused: ${plain(response)}`);
  return {
    fault: withoutUrls(lines.join('; ')),
    again: errors.some(({ permanent }) => permanent !== true),
    left: errors.flatMap(({ recipient }) => recipient ?? []),
  };
}

const MOST_SAID = 300;
const POLL_MS = 50;

/** Waits for the program and for what it has started, until the limit: then they are killed. */
async function runCommand(
  command: readonly string[],
  notice: Notice,
  { clock, signal, timeoutMs = 10_000 }: Delivery,
): Promise<Answer | null> {
  const [program, ...args] = command as [string, ...string[]];
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  // In a process group of its own its children can be found after it has ended.
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe'], detached: true });
  const seen: { said: string; isClosed: boolean; error?: Error } = { said: '', isClosed: false };
  child.stderr.on('data', (chunk: Buffer) => (seen.said = (seen.said + chunk.toString()).slice(-MOST_SAID)));
  // A program that does not read its stdin may still succeed.
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(notice));
  child.once('error', (error) => (seen.error = error));
  child.once('close', () => (seen.isClosed = true));
  while (!limit.aborted && seen.error === undefined && (!seen.isClosed || signalGroup(child.pid, 0)))
    await clock.sleep(POLL_MS, limit);
  signalGroup(child.pid, 'SIGKILL');
  child.stderr.destroy();
  if (seen.error !== undefined) return { fault: describeError(seen.error), again: false };
  const end = child.exitCode ?? child.signalCode;
  if (end === 0) return null;
  const said = seen.said.trim() === '' ? '' : `: ${seen.said.trim()}`;
  if (end !== null) return { fault: `it ended with ${end}${said}`, again: true };
  const why = signal.aborted ? 'it was given up' : `it has not ended within ${formatDuration(timeoutMs)}`;
  return { fault: `${why}${said}`, again: false };
}

/** False when no process of the group is left. */
function signalGroup(pid: number | undefined, signal: 0 | 'SIGKILL'): boolean {
  try {
    // Without a pid the kernel would take our own group.
    return pid !== undefined && process.kill(-pid, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** fetch takes user and password as a header only. */
function splitUser(text: string): { url: string; headers: Record<string, string> } {
  const url = new URL(text);
  const { username, password } = url;
  if (username === '' && password === '') return { url: text, headers: {} };
  [url.username, url.password] = ['', ''];
  const key = Buffer.from(`${decodePercent(username)}:${decodePercent(password)}`).toString('base64');
  return { url: url.href, headers: { authorization: `Basic ${key}` } };
}

/** `sha256=` and the HMAC-SHA256 of the body's bytes in hex. */
export function signBody(secret: string, body: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}
