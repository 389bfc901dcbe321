/**
 * One case of the queue bench, as a process: `queue-case.ts crawl|restart PRODUCTS HOSTS FOLDER`. `crawl` is granted
 * all products, returns some chunks, and crawls the rest without sending anything; `restart` opens the journal that it
 * has left. Prints its figures.
 */
import '../../crawl-api/heap-limits.ts';
import { join } from 'node:path';
import { JournalFile } from '../../crawl-api/queue/journal-file.ts';
import { Queue } from '../../crawl-api/queue/queue.ts';
import { QueueState } from '../../crawl-api/queue/queue-state.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { orders } from '../../test/unit/crawl-api/fakes.ts';

const CHUNK = 500;
/** Chunks that go back to the main server. */
const TRANSFERRED = 20;
const PART = 1_000;
const PRODUCTS_PER_HEARTBEAT = 200;

const [mode, productCount = '', hostCount = '', folder = ''] = process.argv.slice(2);
const [products, hosts] = [Number(productCount), Number(hostCount)];
const chunks = products / CHUNK;

/** Products are numbered by host, as whole hosts come in a chunk. */
const hostOf = (n: number): number => Math.floor(((n - 1) * hosts) / products);
const idOf = (n: number): string => `https://host-${hostOf(n)}.example/people/${n}/profile`;
const state = new QueueState({
  of: (id) => Number(/host-(\d+)/.exec(id)![1]),
  hostOf: (host) => `host-${host}.example`,
});
const startMs = performance.now();
const { file } = JournalFile.open(join(folder, 'journal'), (record) => state.apply(record));
const openMs = performance.now() - startMs;
const deadlineMs = Date.now() + 365 * 86_400_000;
/** Until long after the end, and as fast as it can. */
const ALWAYS = { intervalMs: 1, deadline: new Date(deadlineMs).toISOString() };
const queue = new Queue(state, file, systemClock, {
  intervalMs: 1,
  deadlineMs,
  productUrl: 'https://host-0.example/{id}',
});

const figures = mode === 'restart' ? { openMs } : await crawl();
await file.close();
process.stdout.write(JSON.stringify({ ...figures, assigned: state.items.assigned, open: state.items.openCount }));

/** Processor time of this thread for each kind of work, the longest and the 99th percentile, in milliseconds. */
async function crawl(): Promise<Record<string, number>> {
  const took = new Map<string, number[]>();
  const timed = async <T>(kind: string, work: () => T | Promise<T>): Promise<T> => {
    const before = process.threadCpuUsage();
    const result = await work();
    const { user, system } = process.threadCpuUsage(before);
    took.set(kind, [...(took.get(kind) ?? []), (user + system) / 1_000]);
    return result;
  };
  for (let chunk = 0; chunk < chunks; chunk++) {
    const list = Array.from({ length: CHUNK }, (_, i) => chunk * CHUNK + i + 1).map((n) => ({ n, id: idOf(n) }));
    await timed('offer', () => queue.offer({ chunk: `${chunk}-1`, share: products, products: list }));
    await timed('grant', () => queue.follow(orders({ ...ALWAYS, grants: [`${chunk}-1`] })));
  }
  const returned = Array.from({ length: TRANSFERRED }, (_, i) => `${chunks - 1 - i}-1`);
  for (const chunk of returned) await timed('transfer', () => queue.follow(orders({ ...ALWAYS, transfer: [chunk] })));

  const times: Record<'look' | 'started' | 'result', number[]> = { look: [], started: [], result: [] };
  let done = 0;
  let parts = -1;
  // In the order in which places get free: a page of each host in turn.
  for (let round = 0; state.items.openCount > 0; round++)
    for (let host = 0; host < hosts; host++) {
      const from = performance.now();
      const item = state.peek(false, host);
      const looked = performance.now();
      times.look.push(looked - from);
      if (item === null) continue;
      queue.recordStart(item.n, Date.now(), { domain: host, beside: true });
      const started = performance.now();
      times.started.push(started - looked);
      queue.recordAnswer('200', host);
      queue.recordResult(item, resultOf(item.n));
      times.result.push(performance.now() - started);
      done++;
      if (done % PRODUCTS_PER_HEARTBEAT === 0) await timed('heartbeat', heartbeat);
      if (done % PART === 0) {
        const cut = await timed('cut', async () => {
          await queue.cutRequests();
          return await queue.cut(PART);
        });
        for (const { seq } of state.requestLog.cuts)
          queue.note({ t: 'log', log: { seq, key: `log-${seq}`, sha256: '', sizeBytes: 1 } });
        const part = { seq: cut!.seq, key: `part-${cut!.seq}`, sha256: '', sizeBytes: 1, products: PART };
        queue.note({ t: 'part', part });
        parts = cut!.seq;
        await timed('acknowledge', () => queue.follow(orders({ ...ALWAYS, partsAck: parts })));
      }
    }
  for (const [kind, all] of Object.entries(times)) took.set(kind, all);
  return Object.fromEntries(
    [...took].flatMap(([kind, all]) => {
      const sorted = all.toSorted((a, b) => a - b);
      return [
        [`${kind}P99Ms`, sorted[Math.floor(sorted.length * 0.99)]!],
        [`${kind}MaxMs`, sorted.at(-1)!],
      ];
    }),
  );
}

/** What an instance collects for a heartbeat. */
function heartbeat(): number {
  const described = [state.offeredChunks(), queue.transferredChunks(), queue.progress(null), queue.unackedParts(500)];
  return JSON.stringify(described).length;
}

function resultOf(n: number): ItemResult {
  const row = { name: `Person ${n}`, office: 'Somewhere', phone: null };
  const at = '2026-01-01T00:00:00.000Z';
  return { n, id: idOf(n), url: idOf(n), at, attempts: 1, outcome: 'stored', rows: [{ key: null, row }] };
}
