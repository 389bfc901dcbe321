/**
 * The listener for programs on this machine: the instance's progress, product by product, and an order to drain. Not
 * for browsers: a page being crawled must not reach it, so any request with an Origin or a foreign Host is refused.
 */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type express from 'express';
import { isIP } from 'node:net';
import { z } from 'zod';
import type { Heartbeat } from '../../shared/wire/callbacks.ts';
import type { Queue } from '../queue/queue.ts';
import { ITEM_STATES, type ItemState } from '../queue/items.ts';
import { answerFaults, answerUnknownPaths, createApp } from './balancer-app.ts';

export interface LocalAppParts {
  owner: { run: string } & EpochId;
  instanceId: string;
  queue: Queue;
  describe: () => Heartbeat;
  drain: () => void;
}

const MAX_PAGE = 1_000;
const productsQuery = z.object({
  state: z.enum(ITEM_STATES).optional(),
  after: z.coerce.number().int().nonnegative().default(0),
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(100),
});

export function createLocalApp({ owner, instanceId, queue, describe, drain }: LocalAppParts): express.Express {
  const app = createApp();
  app.use((request, response, next) => {
    if (request.headers.origin === undefined && isLocalHost(request.headers.host)) next();
    else response.status(403).json({ error: 'only for programs on this machine' });
  });
  app.get('/metrics', (_request, response) => {
    response.type('text/plain; version=0.0.4').send(renderMetrics(describe(), queue));
  });
  app.use('/v1/runs/:run', (request, response, next) => {
    if (request.params.run === owner.run) next();
    else response.status(404).json({ error: 'this instance does not work for that run' });
  });
  app.get('/v1/runs/:run', (_request, response) => {
    const { state, deadlineMs, isSealed, isDraining } = queue;
    response.json({
      ...owner,
      instanceId,
      ...describe(),
      held: state.held,
      sealed: isSealed,
      draining: isDraining,
      intervalMs: queue.intervalAt(0),
      deadline: new Date(deadlineMs).toISOString(),
      postponed: state.items.count('postponed'),
      unproven: state.items.count('held'),
      partsStored: state.parts.length,
    });
  });
  app.get('/v1/runs/:run/products', (request, response) => {
    const query = productsQuery.safeParse(request.query);
    if (query.success) response.json(listProducts(queue, query.data));
    else
      response
        .status(400)
        .json({ error: `state is one of ${ITEM_STATES.join(', ')}; after and limit (1 to ${MAX_PAGE}) are numbers` });
  });
  app.post('/v1/runs/:run/drain', (_request, response) => {
    drain();
    response.status(202).json({ ok: true });
  });
  app.use(answerUnknownPaths, answerFaults);
  return app;
}

interface ProductPage {
  products: { n: number; id: string; state: ItemState; reason?: string }[];
  /** Pass it as `after` for the next page; null on the last. */
  next: number | null;
}

function listProducts(
  queue: Queue,
  { state, after, limit }: { state?: ItemState | undefined; after: number; limit: number },
): ProductPage {
  const numbers = [...queue.state.items.values()]
    .filter((item) => item.n > after && (state === undefined || item.state === state))
    .map((item) => item.n)
    .sort((a, b) => a - b);
  const page = numbers.slice(0, limit);
  return {
    products: page.map((n) => {
      const { id, state, reason } = queue.state.items.get(n)!;
      return { n, id, state, ...(reason === null ? {} : { reason }) };
    }),
    next: numbers.length > limit ? (page.at(-1) ?? null) : null,
  };
}

/** The owner of a name could point it here (DNS rebinding); an address and `localhost` cannot be repointed. */
function isLocalHost(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d+$/, '');
  return name === 'localhost' || isIP(name.replace(/^\[|\]$/g, '')) !== 0;
}

function renderMetrics({ phase, progress, problem, incident }: Heartbeat, queue: Queue): string {
  const lines: string[] = [];
  const add = (
    name: string,
    type: 'gauge' | 'counter',
    help: string,
    samples: [labels: string, value: number][],
  ): void => {
    lines.push(`# HELP crawlfleet_${name} ${help}`, `# TYPE crawlfleet_${name} ${type}`);
    for (const [labels, value] of samples) lines.push(`crawlfleet_${name}${labels} ${value}`);
  };
  add('phase', 'gauge', '1 for the current phase of the instance.', [[`{phase="${phase}"}`, 1]]);
  add('products_pending', 'gauge', 'Granted products without an outcome.', [['', progress.pending]]);
  add('products_total', 'counter', 'Products by outcome.', [
    ['{outcome="stored"}', progress.stored],
    ['{outcome="gone"}', progress.gone],
    ['{outcome="failed"}', progress.failed],
  ]);
  add('requests_total', 'counter', 'Requests sent to the target.', [['', progress.requests]]);
  add('rendered_total', 'counter', 'Requests sent by the browser.', [['', progress.rendered]]);
  add('canaries_total', 'counter', 'Requests for canary pages.', [['', progress.canaries]]);
  add('banned', 'gauge', '1 while the site bans this address, or seems to.', [['', incident === null ? 0 : 1]]);
  add('parts_total', 'counter', 'Parts stored in the bucket.', [['', queue.state.parts.length]]);
  if (progress.minGapMs !== null)
    add('min_gap_seconds', 'gauge', 'Smallest time between the starts of two requests to the same domain.', [
      ['', progress.minGapMs / 1_000],
    ]);
  add('problem', 'gauge', '1 when a problem needs attention.', [['', problem === null ? 0 : 1]]);
  add('resident_memory_bytes', 'gauge', 'Memory of the process.', [['', process.memoryUsage.rss()]]);
  return `${lines.join('\n')}\n`;
}
