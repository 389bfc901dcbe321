/** The call-back listener's Express app: reads the signed message, hands it on, sends the signed reply. */
import type { Express, NextFunction, Request, Response } from 'express';
import express from 'express';
import type { Logger } from 'pino';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH, MAX_CALLBACK_BYTES } from '../../shared/wire/callbacks.ts';
import { HEADER } from '../../shared/wire/signature.ts';
import type { Callback, CallbackReply, Callbacks } from '../control/callbacks.ts';
import { markProved } from './connection-limit.ts';

export function createCallbackApp(callbacks: Callbacks, log: Logger): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(refuseLarge);
  // Any content type: the signature covers bytes, and JSON is checked after it.
  app.use(express.raw({ type: () => true, limit: MAX_CALLBACK_BYTES }));
  app.post(
    HELLO_PATH,
    handler((c) => callbacks.hello(c), false),
  );
  app.post(
    HEARTBEAT_PATH,
    handler((c) => callbacks.heartbeat(c), true),
  );
  app.post(
    COMPLETION_PATH,
    handler((c) => callbacks.completion(c), true),
  );
  app.use((_request, response) => void response.status(404).json({ ok: false, error: 'no such route' }));
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error);
    const status = statusOf(error);
    if (status >= 500) log.warn({ error: describeError(error) }, 'a call-back failed');
    response.status(status).json({ ok: false, error: status >= 500 ? 'try again' : describeError(error) });
  });
  return app;
}

/** Before a byte of the body is read: the parser would read all of it off before it says no. */
function refuseLarge(request: Request, response: Response, next: NextFunction): void {
  if (Number(request.get('content-length') ?? 0) <= MAX_CALLBACK_BYTES) return next();
  // The rest of the body cannot be told from a next request, so the connection goes with it.
  response.set('connection', 'close').status(413).json({ ok: false, error: 'request entity too large' });
}

function handler(handle: (callback: Callback) => Promise<CallbackReply>, counted: boolean) {
  return async (request: Request, response: Response): Promise<void> => {
    const callback = readCallback(request, counted);
    if (!callback) {
      response.status(400).json({ ok: false, error: 'the x-crawlfleet- headers are missing or malformed' });
      return;
    }
    const reply = await handle(callback);
    if (reply.signature !== null) {
      markProved(request.socket);
      response.set(HEADER.signature, reply.signature);
    }
    response.status(reply.status).type('application/json').send(reply.body);
  };
}

function readCallback(request: Request, counted: boolean): Callback | null {
  const run = request.get(HEADER.run);
  const slot = readInteger(request.get(HEADER.slot));
  const epoch = readInteger(request.get(HEADER.epoch));
  const counter = counted ? readInteger(request.get(HEADER.counter)) : null;
  const signature = request.get(HEADER.signature);
  if (!run || slot === null || epoch === null || (counted && counter === null) || !signature) return null;
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
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
