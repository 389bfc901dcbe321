/** One instance process with everything around it, for the contract tests of the crawl API. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, afterEach } from 'vitest';
import { buildProgram } from '../../../userdata/program.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { INSTANCE_ENVIRONMENT, NODE_FLAGS } from '../../../shared/domain/instance-process.ts';
import type { Field, PageMapping } from '../../../shared/domain/mapping.ts';
import type { Product } from '../../../shared/domain/product.ts';
import { offerPath } from '../../../shared/wire/instance-api.ts';
import { type ItemResult, itemResultSchema } from '../../../shared/wire/part.ts';
import { type CrawlSettings, packCrawlSettings } from '../../../shared/wire/crawl-settings.ts';
import { type AnyUserData, encodeSettingsLine, type UserData } from '../../../shared/wire/settings.ts';
import { createKeyPair, envelopeHeaders, exportPublicKey, signMessage } from '../../../shared/wire/signature.ts';
import { ownAddress, startStub, type Stub, until } from './http-stub.ts';
import { ARRIVED_HEADER, startArrivalRelay } from './arrival-relay.ts';
import { startBucket, startMainServer, startMetadata, type StubBucket, type StubMainServer } from './stub-cloud.ts';
import { freePort } from '../../support/free-port.ts';
import { oneTitle } from '../../support/one-title.ts';

export interface Visit {
  path: string;
  /** When it arrived, in milliseconds; recorded on another thread than the test's. */
  at: number;
  from: string | undefined;
  userAgent: string | undefined;
}

export interface Stage {
  settings: UserData;
  /** Serves the object with what it crawls by. */
  crawlSettings: Stub;
  main: StubMainServer;
  bucket: StubBucket;
  visits: Visit[];
  address: string;
  /** The console output of the process. */
  console(): string;
  pid(): number;
  /** Starts the process, again after it ended. */
  boot(): void;
  /** SIGKILL, as the OOM killer sends it. */
  kill(): Promise<void>;
  exitCode(): Promise<number | null>;
  ready(): Promise<void>;
  /** What the load balancer would see. */
  health(): Promise<{ status: number; body: { status: string } }>;
  offer(
    chunk: string,
    products: Product[],
    changes?: { share?: number; run?: string; body?: string; sign?: boolean },
  ): Promise<{ status: number; body: Record<string, unknown>; headers: Record<string, unknown> }>;
  local(
    method: 'GET' | 'POST',
    path: string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string }>;
  /** The lines of all parts in the bucket. */
  results(): ItemResult[];
  close(): Promise<void>;
}

export type PageHandler = (request: IncomingMessage, response: ServerResponse) => void;

const plainPage: PageHandler = (request, response) => {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  response.end(
    `<html><h1>Item ${decodeURIComponent(request.url!.split('/').at(-1)!)}</h1><b class="price">¥1,234</b></html>`,
  );
};

/** A boot takes about a second, and far longer while other processes use the processor: this only ends a stuck one. */
const BOOT_MS = 45_000;

const PRICE: Field = {
  name: 'price',
  steps: [{ type: 'css', selector: '.price' }, { type: 'integer' }],
  required: false,
};

let bundleFile: Promise<string> | undefined;

/** The real bundle, built once per test file. */
async function bundlePath(): Promise<string> {
  bundleFile ??= (async () => {
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'crawlfleet-bundle-')), 'crawl-api.mjs');
    fs.writeFileSync(file, (await buildProgram()).bytes);
    return file;
  })();
  return bundleFile;
}

async function removeBundle(): Promise<void> {
  if (bundleFile) fs.rmSync(path.dirname(await bundleFile), { recursive: true, force: true });
  bundleFile = undefined;
}

interface StageChanges {
  page?: PageHandler;
  site?: Partial<CrawlSettings['site']>;
  crawl?: Partial<Pick<CrawlSettings, 'links' | 'deny' | 'mapping'>>;
  settings?: Partial<UserData>;
  /** The user data is that of an earlier version, which had all of this in it. */
  whole?: true;
}

/** Stages that end after each test: one that is not booted, one that is, and one that the main server has accepted. */
export function useStages() {
  const stages: Stage[] = [];
  afterEach(async () => {
    await Promise.all(stages.splice(0).map((stage) => stage.close()));
  });
  afterAll(removeBundle);
  const create = async (changes?: StageChanges): Promise<Stage> => {
    const stage = await createStage(changes);
    stages.push(stage);
    return stage;
  };
  const start = async (changes?: StageChanges): Promise<Stage> => {
    const stage = await create(changes);
    stage.boot();
    return stage;
  };
  const startReady = async (changes?: StageChanges): Promise<Stage> => {
    const stage = await start(changes);
    await stage.ready();
    return stage;
  };
  return { create, start, startReady };
}

async function createStage(changes: StageChanges = {}): Promise<Stage> {
  const bundle = await bundlePath();
  const address = ownAddress();
  const run = createKeyPair();
  const token = randomBytes(32).toString('hex');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'crawlfleet-instance-'));
  const visits: Visit[] = [];
  const page = changes.page ?? plainPage;
  const shop = await startStub((req, _body, res) => {
    visits.push({
      path: req.url!,
      at: Number(req.headers[ARRIVED_HEADER]),
      from: req.socket.remoteAddress,
      userAgent: req.headers['user-agent'],
    });
    page(req, res);
  });
  const relay = await startArrivalRelay(shop);
  const intervalMs = changes.site?.intervalMs ?? 20;
  const deadline = changes.settings?.deadline ?? new Date(Date.now() + 60_000).toISOString();
  const main = await startMainServer(run, token, { intervalMs, deadline });
  const bucket = await startBucket();
  const common = oneTitle(`${relay.url}/item/{id}`);
  const [mapping] = common.mapping.pages as [PageMapping];
  const crawl: CrawlSettings = {
    ...common,
    mapping: { pages: [{ ...mapping, fields: [...mapping.fields, PRICE] }] },
    site: { ...common.site, intervalMs, allowPrivate: false, ...changes.site },
    ...changes.crawl,
  };
  const packed = packCrawlSettings(crawl);
  const crawlSettings = await startStub((_request, _body, response) => void response.end(packed.bytes));
  const settings: UserData = {
    version: 2,
    run: 'run-1',
    slot: 2,
    epoch: 3,
    token,
    runPublicKey: exportPublicKey(run.publicKey),
    callbackUrl: main.url,
    apiPort: await freePort(address),
    localPort: await freePort(address),
    bundle: { url: 'http://127.0.0.1/bundle', sha256: '0'.repeat(64) },
    crawlSettings: { url: `${crawlSettings.url}/object?X-Amz-Signature=a`, sha256: packed.sha256 },
    s3: { region: 'us-east-1', bucket: 'bucket', endpoint: bucket.url },
    startedAt: new Date().toISOString(),
    deadline,
    powerOffAt: new Date(Date.now() + 120_000).toISOString(),
    heartbeatMs: 200,
    partMs: 300,
    ...changes.settings,
  };
  const userData = (): AnyUserData => {
    const { maxRatePerSecond: _rate, onBan: _onBan, ...site } = crawl.site;
    const { crawlSettings: _object, ...own } = settings;
    return changes.whole ? { ...own, version: 1, site, mapping: crawl.mapping } : settings;
  };
  const metadata = await startMetadata({
    instanceId: 'i-0123456789abcdef0',
    address,
    userData: () => `#!/bin/bash\n${encodeSettingsLine(userData())}\n`,
  });

  let child: ChildProcess | null = null;
  let output = '';
  let ended: Promise<number | null> = Promise.resolve(null);
  const boot = (): void => {
    child = spawn(process.execPath, [...NODE_FLAGS, bundle], {
      env: {
        ...INSTANCE_ENVIRONMENT,
        PATH: process.env.PATH,
        AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url,
        STATE_DIRECTORY: path.join(folder, 'state'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout!.on('data', (data: Buffer) => (output += data.toString()));
    child.stderr!.on('data', (data: Buffer) => (output += data.toString()));
    ended = new Promise((resolve) => child!.once('exit', (code) => resolve(code)));
  };
  const kill = async (): Promise<void> => {
    child?.kill('SIGKILL');
    await ended;
  };
  const api = `http://${address}:${settings.apiPort}`;

  return {
    settings,
    crawlSettings,
    main,
    bucket,
    visits,
    address,
    console: () => output,
    pid: () => child!.pid!,
    boot,
    kill,
    exitCode: () => ended,
    ready: async () => {
      const isReady = async (): Promise<boolean> => {
        const reply = await request(`${api}/healthz`).catch(() => null);
        await reply?.body.dump();
        return reply?.statusCode === 200;
      };
      await until('the instance to be ready', isReady, BOOT_MS).catch((error: unknown) => {
        throw new Error(`${describeError(error)}; exit code ${child!.exitCode}, console:\n${output}`, { cause: error });
      });
    },
    health: async () => {
      const reply = await request(`${api}/healthz`);
      return { status: reply.statusCode, body: (await reply.body.json()) as { status: string } };
    },
    offer: async (chunk, products, { share = 10_000, run: runName = settings.run, body: raw, sign = true } = {}) => {
      const body = raw ?? JSON.stringify({ chunk, share, products });
      const envelope = { method: 'POST', path: offerPath(runName), run: runName };
      const signature = sign ? signMessage(run.privateKey, envelope, body) : 'bm9uZQ==';
      const reply = await request(api + envelope.path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...envelopeHeaders(envelope, signature) },
        body,
      });
      return {
        status: reply.statusCode,
        body: (await reply.body.json()) as Record<string, unknown>,
        headers: reply.headers,
      };
    },
    local: async (method, route, headers = {}) => {
      const reply = await request(`http://${address}:${settings.localPort}${route}`, { method, headers });
      return { status: reply.statusCode, text: await reply.body.text() };
    },
    results: () =>
      [...bucket.objects]
        .filter(([key]) => key.endsWith('.ndjson.gz'))
        .flatMap(([, bytes]) => gunzipSync(bytes).toString('utf8').trim().split('\n'))
        .map((line) => itemResultSchema.parse(JSON.parse(line))),
    close: async () => {
      await kill();
      await Promise.all([relay, shop, main, bucket, metadata, crawlSettings].map((stub) => stub.close()));
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Products first … last with the IDs p<n>. */
export function products(first: number, last: number): Product[] {
  return Array.from({ length: last - first + 1 }, (_, i) => ({ n: first + i, id: `p${first + i}` }));
}

/** Shortest time between two visits, in milliseconds. */
export function smallestGap(visits: readonly Visit[]): number {
  return Math.min(...visits.slice(1).map((visit, i) => visit.at - visits[i]!.at));
}
