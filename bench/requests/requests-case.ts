/**
 * One case of the bench of request logs, as a process: `requests-case.ts write|verify|unpack REQUESTS INSTANCES HOSTS
 * FOLDER`. `write` stores the logs that instances would, `verify` reads them as `orchestrator verify` does, `unpack`
 * only unpacks them. Prints its figures.
 */
import '../../orchestrator/cli/heap-limits.ts';
import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { RequestLog } from '../../crawl-api/queue/request-log.ts';
import type { RunRecord } from '../../orchestrator/core/model/stores.ts';
import { checkRequests } from '../../orchestrator/core/verify/check-requests.ts';
import type { ClosedEpoch } from '../../orchestrator/core/verify/closed-epoch.ts';
import { ANY_HOST } from '../../shared/domain/domains.ts';
import type { LogRef } from '../../shared/wire/request-log.ts';
import { MemoryObjectStore } from '../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { anInstance } from '../../test/unit/core/builders.ts';

/** Each instance takes over the hosts of the next one when half of its requests are sent. */
const OWNERS = 2;
const HEARTBEAT_MS = 15_000;
/** As with each part of an instance that stores a product a request. */
const REQUESTS_PER_LOG = 1_000;
const INTERVAL_MS = 15_000;
const PAGE_MS = 350;
const START_MS = Date.UTC(2026, 0, 1);

const [mode, ...numbers] = process.argv.slice(2);
const folder = numbers.pop()!;
const [requests, instances, hosts] = numbers.map(Number) as [number, number, number];
const each = requests / instances;
const hostsEach = hosts / instances;
const index = join(folder, 'logs.json');

if (mode === 'write') write();
else if (mode === 'verify') await verify();
else unpack();

function write(): void {
  const logs: LogRef[][] = [];
  for (let slot = 0; slot < instances; slot++) {
    const log = new RequestLog();
    const own: LogRef[] = [];
    log.begin(START_MS);
    let beatMs = START_MS;
    for (let i = 0; i < each; i++) {
      const turn = Math.floor((i * OWNERS) / each);
      const host = `www.host-${((slot + turn) % instances) * hostsEach + (i % hostsEach)}.example`;
      const domain = turn * hostsEach + (i % hostsEach);
      const atMs = START_MS + (INTERVAL_MS + 150) * Math.floor(i / hostsEach) + (i % hostsEach);
      for (; beatMs <= atMs; beatMs += HEARTBEAT_MS)
        log.read({ localMs: beatMs, serverMs: beatMs + 35, roundTripMs: 12 });
      log.sent({ atMs, domain, host, purpose: 'product', browser: false, intervalMs: INTERVAL_MS });
      log.ended({ atMs: atMs + PAGE_MS, domain, answer: '200' });
      if ((i + 1) % REQUESTS_PER_LOG === 0 || i + 1 === each) own.push(store(log, slot));
    }
    logs.push(own);
  }
  writeFileSync(index, JSON.stringify(logs));
}

/** Stores the next object in the folder; the same bytes as an instance's, but unsigned. */
function store(log: RequestLog, slot: number): LogRef {
  log.cut(log.nextSeq);
  const { seq, text } = log.cuts[0]!;
  const bytes = gzipSync(text, { level: 6, memLevel: 8 });
  const ref = {
    seq,
    key: `${slot}-${seq}`,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    sizeBytes: bytes.length,
  };
  writeFileSync(join(folder, ref.key), bytes);
  log.store(ref);
  // An instance's list is bounded by its parts.
  log.stored.length = 0;
  return ref;
}

async function verify(): Promise<void> {
  const logs = JSON.parse(readFileSync(index, 'utf8')) as LogRef[][];
  const objects = new MemoryObjectStore();
  objects.get = (key) => readFile(join(folder, key));
  const site: Partial<RunRecord['settings']['site']> = { intervalMs: INTERVAL_MS, productUrl: ANY_HOST };
  const run = { id: 'r', settings: { site } } as RunRecord;
  const epochs = logs.map((requestLogs, slot): ClosedEpoch => ({
    instance: anInstance(slot, { epoch: 1, address: `10.0.0.${slot}` }),
    closedBy: 'instance',
    damaged: false,
    requests: each,
    requestLogs,
  }));
  const startMs = performance.now();
  const { proof, differences, notes } = await checkRequests({ run, objects }, epochs);
  const verifyMs = performance.now() - startMs;
  const isProved = proof.logged === requests && proof.hosts === hosts && differences.length + notes.length === 0;
  if (!isProved) throw new Error(JSON.stringify({ proof, differences, notes }));
  process.stdout.write(JSON.stringify({ verifyMs }));
}

function unpack(): void {
  const logs = (JSON.parse(readFileSync(index, 'utf8')) as LogRef[][]).flat();
  const startMs = performance.now();
  let [textBytes, packedBytes] = [0, 0];
  for (const { key } of logs) {
    const path = join(folder, key);
    textBytes += gunzipSync(readFileSync(path)).length;
    packedBytes += statSync(path).size;
  }
  process.stdout.write(JSON.stringify({ unpackMs: performance.now() - startMs, textBytes, packedBytes }));
}
