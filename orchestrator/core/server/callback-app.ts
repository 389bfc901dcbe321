/** The callback listener's Express app. Memory held for unauthenticated senders is bounded. */
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Logger } from 'pino';
import { BodyBudget, BodyRefused, closeUnlessRead } from '../../../shared/adapters/http/body-budget.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH, MAX_CALLBACK_BYTES } from '../../../shared/wire/callbacks.ts';
import { HEADER } from '../../../shared/wire/signature.ts';
import { type Callback, type CallbackReply, type Callbacks, foreignBody } from '../callbacks/callbacks.ts';
import { isProved, markProved } from '../../../shared/adapters/http/connection-limit.ts';

/** Total body bytes held for unauthenticated connections. A hello has 600 bytes; 2,000 instances may start at once. */
const STRANGERS_BYTES = 8_000_000;
/** Total body bytes held for our own instances. */
const OWN_BYTES = 32_000_000;
/** Hello and completion have a fixed shape: a few hundred bytes. */
const MAX_SMALL_BYTES = 4_096;
/** A heartbeat after an outage may name 500 parts of 330 bytes; larger ones are read once authenticated. */
const MAX_UNPROVED_BYTES = 400_000;

interface Route {
  handle: (callback: Callback) => Promise<CallbackReply>;
  isCounted: boolean;
  /** Limits before and after the connection has authenticated. */
  mostBytes: { unproved: number; proved: number };
}

export function createCallbackApp(callbacks: Callbacks, log: Logger): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const budgets = { strangers: new BodyBudget(STRANGERS_BYTES), own: new BodyBudget(OWN_BYTES) };
  const small = { unproved: MAX_SMALL_BYTES, proved: MAX_SMALL_BYTES };
  const large = { unproved: MAX_UNPROVED_BYTES, proved: MAX_CALLBACK_BYTES };
  const add = (path: string, route: Route): void => void app.post(path, handler(route, budgets));
  add(HELLO_PATH, { handle: (c) => callbacks.hello(c), isCounted: false, mostBytes: small });
  add(HEARTBEAT_PATH, { handle: (c) => callbacks.heartbeat(c), isCounted: true, mostBytes: large });
  add(COMPLETION_PATH, { handle: (c) => callbacks.completion(c), isCounted: true, mostBytes: small });
  app.use((_request, response) => void response.status(404).json({ ok: false, error: 'no such route' }));
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error);
    closeUnlessRead(request, response, MAX_SMALL_BYTES);
    if (error instanceof BodyRefused) {
      response.status(error.status).json({ ok: false, error: error.message });
      return;
    }
    const status = statusOf(error);
    if (status >= 500) log.warn({ error: describeError(error) }, 'a callback failed');
    response.status(status).json({ ok: false, error: status >= 500 ? 'try again' : describeError(error) });
  });
  return app;
}

function handler({ handle, isCounted, mostBytes }: Route, budgets: { strangers: BodyBudget; own: BodyBudget }) {
  return async (request: Request, response: Response): Promise<void> => {
    const [budget, most] = isProved(request.socket)
      ? [budgets.own, mostBytes.proved]
      : [budgets.strangers, mostBytes.unproved];
    const callback = readHeaders(request, isCounted, async () => foreignBody(await budget.read(request, most)));
    if (!callback) {
      closeUnlessRead(request, response, MAX_SMALL_BYTES);
      response.status(400).json({ ok: false, error: 'the x-crawlfleet- headers are missing or malformed' });
      return;
    }
    const reply = await handle(callback);
    const body = JSON.stringify(reply.message);
    if (reply.sign !== null) {
      markProved(request.socket);
      response.set(HEADER.signature, reply.sign(body));
    }
    closeUnlessRead(request, response, MAX_SMALL_BYTES);
    response.status(reply.status).type('application/json').send(body);
  };
}

function readHeaders(request: Request, isCounted: boolean, body: Callback['body']): Callback | null {
  const run = request.get(HEADER.run);
  const slot = readInteger(request.get(HEADER.slot));
  const epoch = readInteger(request.get(HEADER.epoch));
  const counter = isCounted ? readInteger(request.get(HEADER.counter)) : null;
  const signature = request.get(HEADER.signature);
  if (!run || slot === null || epoch === null || (isCounted && counter === null) || !signature) return null;
  const source = request.socket.remoteAddress;
  return { run, slot, epoch, counter, signature, body, ...(source === undefined ? {} : { source }) };
}

function readInteger(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

function statusOf(error: unknown): number {
  if (error instanceof AppError) return 503;
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === 'number' ? status : 500;
}
