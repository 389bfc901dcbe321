/** The replies of both listeners when no route matches or reading a request fails: always one JSON object. */
import type { NextFunction, Request, Response } from 'express';
import { BodyRefused, closeUnlessRead } from '../../shared/adapters/http/body-budget.ts';
import { MAX_OFFER_BYTES } from '../../shared/wire/instance-api.ts';

export function answerUnknownPaths(_request: Request, response: Response): void {
  response.status(404).json({ error: 'no such path' });
}

/** Express recognises an error handler by its four parameters. */
export function answerFaults(error: unknown, request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(error);
    return;
  }
  if (error instanceof BodyRefused) {
    // The request was evicted to free memory, or the sender is gone: read no more of it.
    closeUnlessRead(request, response, error.status === 413 ? 2 * MAX_OFFER_BYTES : 0);
    response.status(error.status).json({ error: error.message });
    return;
  }
  const status = statusOf(error);
  response.status(status).json({ error: status < 500 ? 'the request is malformed' : 'internal error' });
}

function statusOf(error: unknown): number {
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : 500;
}
