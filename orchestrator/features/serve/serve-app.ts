/**
 * The operator's page and its API (docs/dashboard.md). It only reads the database; a button starts the command of the
 * same name.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import { z } from 'zod';
import { FAILURE_REASONS } from '../../../shared/domain/outcome.ts';
import { parseDuration } from '../../../shared/domain/quantity.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { exportColumns, exportLines } from '../../core/read/row-lines.ts';
import { maskSecrets } from '../../core/read/mask-secrets.ts';
import { readProduct } from '../../core/read/product-document.ts';
import { MAX_EVENTS, readRun, summaryOf } from '../../core/read/run-documents.ts';
import type { RunRecord, StoreReaders } from '../../core/model/stores.ts';
import type { Asset } from './bundle-page.ts';
import type { FoundProducts, History } from '../../core/db/history.ts';
import { refuseWebPages } from '../../core/server/health-app.ts';
import { EventStreams } from './event-streams.ts';
import { LiveRun } from './live-run.ts';
import { metricsText } from '../../core/read/metrics.ts';

/** What a button does to a run; resolves to a sentence for the user. */
type RunActions = Record<RunAction, (runId: string) => Promise<string>>;
const RUN_ACTIONS = ['stop', 'cancel', 'publish', 'retry'] as const;
export type RunAction = (typeof RUN_ACTIONS)[number];

export interface ServeOptions {
  stores: StoreReaders;
  history: History;
  clock: Clock;
  /** The page's files by path. */
  assets: ReadonlyMap<string, Asset>;
  actions: RunActions;
  /** `orchestrator pace` with these flags. */
  pace: (runId: string, flags: readonly string[]) => Promise<string>;
  /** What `retry` of a run would start, in a sentence; throws where it would start nothing. */
  startOfRetry: (runId: string) => Promise<string>;
  /** The token of the buttons; null: the page shows everything and changes nothing. */
  token: string | null;
  /** True where callers other than this machine's own can connect: nothing is shown without the token. */
  isOpen: boolean;
  listenHost: string;
  /** What `/healthz` adds to the state of the database, such as the schedule's. */
  health: () => { ok: boolean };
  /** The last lines of a run's log; null when this machine has none. */
  logOf: (runId: string) => string[] | null;
  /** When the schedule starts the next run; null without one. */
  nextDue: () => Promise<number | null>;
}

/** The products of a run that a query finds, up to 200. */
export interface ProductsDocument {
  products: (FoundProducts['products'][number] & { url: string })[];
  /** `after` of the query that goes on; null at the end of the run. */
  next: number | null;
  planned: number;
}

const PRODUCT_QUERY = z.strictObject({
  text: z.string().max(500).default(''),
  outcome: z.enum(['stored', 'gone', 'failed']).optional(),
  reason: z.enum(FAILURE_REASONS).optional(),
  after: z.coerce.number().int().min(0).max(2_147_483_647).default(0),
});

const duration = z.string().refine((text) => (parseDuration(text) ?? 0) > 0, 'must be a duration such as 20s');
/** What a run is to keep, as the flags of `orchestrator pace` say it. */
const PACE_QUERY = z.union([
  z.strictObject({ interval: duration }),
  z.strictObject({ pause: duration }),
  z.strictObject({ reset: z.literal('') }),
]);

/** Runs on the front page: a year of nights. */
const LISTED = 400;

export function createServeApp(options: ServeOptions): Express {
  const { stores, history, clock, assets, actions, token, isOpen, listenHost } = options;
  const app = express();
  app.disable('x-powered-by');
  app.use(
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: ["'none'"],
          scriptSrc: ["'self'"],
          styleSrc: ["'self'"],
          imgSrc: ["'self'", 'data:'],
          connectSrc: ["'self'"],
          baseUri: ["'none'"],
          formAction: ["'none'"],
          frameAncestors: ["'none'"],
        },
      },
      referrerPolicy: { policy: 'no-referrer' },
      // TLS may be a proxy's.
      strictTransportSecurity: false,
    }),
  );
  // A page on another site reaches a loopback address by DNS rebinding; it cannot know the token.
  if (!isOpen) app.use(refuseWebPages(listenHost));
  app.get('/healthz', async (_request, response) => {
    await stores.runs.list(1);
    const health = options.health();
    response.status(health.ok ? 200 : 503).json(isOpen ? { ok: health.ok } : health);
  });
  const page = assets.get('/index.html')!;
  for (const [path, { type, body }] of [
    ...assets,
    ['/', page],
    ['/runs/:run', page],
    ['/runs/:run/products', page],
    ['/products/:id', page],
  ] as const)
    app.get(path, (_request, response) => {
      response.set('cache-control', 'no-cache').type(type).send(Buffer.from(body));
    });
  if (isOpen) app.use(requireToken(token));
  app.use((_request, response, next) => {
    response.set('cache-control', 'no-store');
    next();
  });
  app.get('/metrics', async (_request, response) => {
    const { type, text } = await metricsText(stores);
    response.type(type).send(text);
  });
  app.get('/api/runs', async (_request, response) => {
    const [runs, next] = await Promise.all([stores.runs.list(LISTED), options.nextDue()]);
    const nextDue = next === null ? null : new Date(next).toISOString();
    response.json({ runs: runs.map(summaryOf), canAct: token !== null, nextDue });
  });
  app.get('/api/runs/:run', async (request, response) => {
    const run = await runNamed(request.params.run);
    response.json(await readRun(run, stores.of(run.id)));
  });
  const runNamed = async (id: string): Promise<RunRecord> => {
    const run = await stores.runs.get(id);
    if (run === null) throw new AppError('run-unknown', `there is no run ${id}`);
    return run;
  };
  const live = new Map<string, LiveRun>();
  const streams = new EventStreams(clock);
  app.get('/api/runs/:run/events', async (request, response) => {
    const id = request.params.run;
    await runNamed(id);
    const isOpen = streams.open(response, (onNews) => {
      const run = live.get(id) ?? new LiveRun(id, stores, clock, () => live.delete(id));
      live.set(id, run);
      return run.watch(onNews);
    });
    if (!isOpen) response.status(503).json({ error: 'too many pages are open; close some' });
  });
  app.get('/api/runs/:run/slots/:slot', async (request, response) => {
    const events = await stores.of(request.params.run).run.events(MAX_EVENTS);
    const slot = Number(request.params.slot);
    response.json({ events: events.filter((event) => event.slot === slot).reverse() });
  });
  app.get('/api/runs/:run/products', async (request, response) => {
    const run = await runNamed(request.params.run);
    const query = PRODUCT_QUERY.safeParse(request.query);
    if (!query.success)
      return void response.status(400).json({ error: `the query is wrong: ${z.prettifyError(query.error)}` });
    const { products, next } = await history.products(run.id, query.data);
    const url = ({ id, path }: { id: string; path: string | null }): string =>
      productUrl(run.settings.site.productUrl, path ?? id);
    const found: ProductsDocument = {
      products: products.map((product) => ({ ...product, url: url(product) })),
      next,
      planned: run.planned,
    };
    response.json(found);
  });
  for (const [ending, format, type] of [
    ['csv', 'csv', 'text/csv; charset=utf-8'],
    ['ndjson', 'jsonl', 'application/x-ndjson'],
  ] as const)
    app.get(`/api/runs/:run/rows.${ending}`, async (request, response) => {
      const run = await runNamed(request.params.run);
      response.attachment(`${run.id}.${ending}`).set('content-type', type);
      const form = { columns: exportColumns(run.settings), format, safe: true };
      try {
        await pipeline(Readable.from(exportLines(history.rowsOfRun(run), form)), response);
      } catch (error) {
        // The reader has left.
        if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
      }
    });
  app.get('/api/runs/:run/log', async (request, response) => {
    const { id } = await runNamed(request.params.run);
    const lines = options.logOf(id);
    if (lines !== null) return void response.json({ lines });
    response.status(404).json({ error: `run ${id} has left no log on this machine` });
  });
  app.get('/api/runs/:run/settings', async (request, response) => {
    response.json(maskSecrets((await runNamed(request.params.run)).settings));
  });
  app.get('/api/products/:id', async (request, response) => {
    response.json(await readProduct(request.params.id, { stores, history }));
  });
  // Whether a token that somebody has just entered is right.
  app.get('/api/token', requireToken(token), (_request, response) => void response.json({ ok: true }));
  for (const action of RUN_ACTIONS)
    app.post(`/api/runs/:run/${action}`, requireToken(token), async (request, response) => {
      response.json({ message: await actions[action](String(request.params.run)) });
    });
  app.post('/api/runs/:run/pace', requireToken(token), async (request, response) => {
    const query = PACE_QUERY.safeParse(request.query);
    if (!query.success)
      return void response.status(400).json({ error: 'it must be one of interval=20s, pause=30m and reset=' });
    const flags = Object.entries(query.data).flatMap(([name, value]) => [
      `--${name}`,
      ...(value === '' ? [] : [value]),
    ]);
    response.json({ message: await options.pace(String(request.params.run), flags) });
  });
  app.get('/api/runs/:run/retry', requireToken(token), async (request, response) => {
    response.json({ start: await options.startOfRetry(String(request.params.run)) });
  });
  app.use((_request, response) => void response.status(404).json({ error: 'no such page' }));
  app.use(reportError);
  return app;
}

/**
 * The token travels in a header that only our own page and programs set, never in a cookie: no other site can make a
 * browser send it.
 */
function requireToken(token: string | null): RequestHandler {
  return (request, response, next) => {
    const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (token !== null && given !== undefined && isSame(given, token)) return next();
    const error =
      token === null
        ? 'read-only: set server.operator_token to change anything here'
        : 'the operator token is missing or wrong';
    response.status(token === null ? 403 : 401).json({ error });
  };
}

function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Mistakes of the caller with what to do about them; everything else as a fault of this server. */
function reportError(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) return next(error);
  const known = error instanceof AppError;
  const status = !known ? 500 : error.code === 'run-unknown' ? 404 : error.code === 'database-unreachable' ? 503 : 409;
  response.status(status).json({ error: describeError(error), hint: known ? (error.hint ?? null) : null });
}
