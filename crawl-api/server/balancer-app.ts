/**
 * The listener behind the load balancer: a health check, and offers signed by the run's key. Separate from the
 * listening server, so that tests can use it on any port.
 */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type { Refusal } from '../../shared/domain/offer-refusal.ts';
import express, { type NextFunction, type Request, type Response } from 'express';
import type { KeyObject } from 'node:crypto';
import { BodyBudget, BodyRefused, closeUnlessRead } from '../../shared/adapters/http/body-budget.ts';
import { markProved } from '../../shared/adapters/http/connection-limit.ts';
import {
  HEALTH_PATH,
  MAX_OFFER_BYTES,
  type Offer,
  offerPath,
  offerSchema,
  type Receipt,
} from '../../shared/wire/instance-api.ts';
import { HEADER, verifyMessage } from '../../shared/wire/signature.ts';
import type { OfferAnswer } from '../queue/queue.ts';

/** Maximum bytes of offers being read at once: one of the largest size, or some hundred of the usual 20 kB. */
const OFFERS_BYTES = 6_000_000;
/** Ed25519, in base64. */
const SIGNATURE = /^[A-Za-z0-9+/_-]{86}(==)?$/;

export interface BalancerAppParts {
  owner: { run: string } & EpochId;
  instanceId: string;
  runPublicKey: KeyObject;
  isReady: () => boolean;
  /** True while the site bans this address, or seems to: the load balancer must send nothing here. */
  isBanned: () => boolean;
  takeOffer: (offer: Offer) => Promise<OfferAnswer>;
}

export function createBalancerApp(parts: BalancerAppParts): express.Express {
  const { isReady, isBanned } = parts;
  const app = createApp();
  app.get(HEALTH_PATH, (_request, response) => {
    const status = !isReady() ? 'starting' : isBanned() ? 'banned' : 'ready';
    response.status(status === 'ready' ? 200 : 503).json({ status });
  });
  const budget = new BodyBudget(OFFERS_BYTES);
  app.post('/v1/runs/:run/products', (request, response) => judgeOffer(parts, budget, request, response));
  app.use(answerUnknownPaths, answerFaults);
  return app;
}

async function judgeOffer(
  { owner, instanceId, runPublicKey, isReady, takeOffer }: BalancerAppParts,
  budget: BodyBudget,
  request: Request,
  response: Response,
): Promise<void> {
  const path = offerPath(owner.run);
  const signature = request.get(HEADER.signature) ?? '';
  const isOurs = request.params.run === owner.run && request.get(HEADER.run) === owner.run;
  const isFit = isOurs && SIGNATURE.test(signature);
  const body = isFit ? await budget.read(request, MAX_OFFER_BYTES) : null;
  if (body === null || !verifyMessage(runPublicKey, { method: 'POST', path, run: owner.run }, body, signature)) {
    // An unauthenticated caller learns neither the run nor the instance.
    if (!request.complete) response.setHeader('connection', 'close');
    response.status(401).json({ error: 'the offer is not signed by the run' });
    return;
  }
  markProved(request.socket);
  response.setHeader(HEADER.instance, instanceId);
  if (!isReady()) {
    response.status(503).json({ error: 'the main server has not accepted this instance yet' });
    return;
  }
  const offer = parseOffer(body);
  if ('fault' in offer) {
    response.status(400).json({ error: offer.fault });
    return;
  }
  const answer = await takeOffer(offer);
  if (answer.taken) {
    const receipt: Receipt = { chunk: offer.chunk, ...owner, instanceId, held: answer.held };
    response.status(202).json(receipt);
  } else {
    const refusal: Refusal = { refused: answer.refused, room: answer.room };
    response.status(409).json(refusal);
  }
}

/** An Express app without identifying headers. */
export function createApp(): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  return app;
}

function parseOffer(body: Uint8Array): Offer | { fault: string } {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return { fault: 'the body is not JSON' };
  }
  const parsed = offerSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  return { fault: `the offer is malformed: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim() };
}

/** The reply of both listeners when no route matches. */
export function answerUnknownPaths(_request: Request, response: Response): void {
  response.status(404).json({ error: 'no such path' });
}

/** The reply of both listeners when reading a request fails. Express recognises it by its four parameters. */
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
