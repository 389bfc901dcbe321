/** The sandbox as a process: which clients it serves, how it ends, what outlives it, and how it is made to fail. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { boot, launch, uploadBundle } from '../../support/sandbox/boot.ts';
import { clientsFor, eventually, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox, type TestSandboxOptions } from '../../support/sandbox/start-sandbox.ts';
import { TEST_BUNDLE_SHA256 } from '../../support/sandbox/test-bundle.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function start(options: TestSandboxOptions = {}): Promise<{ sandbox: TestSandbox; clients: SandboxClients }> {
  const sandbox = await startSandbox(options);
  const clients = clientsFor(sandbox);
  cleanUps.push(
    () => sandbox.stop(),
    () => clients.destroy(),
  );
  return { sandbox, clients };
}

async function dataFolder(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'crawlfleet-sandbox-'));
  cleanUps.push(() => rm(dataDir, { recursive: true, force: true }));
  return dataDir;
}

const gone = (pid: number): Promise<true> =>
  eventually(`process ${pid} to end`, async () => (existsSync(`/proc/${pid}`) ? null : true));

const pidOf = async (sandbox: TestSandbox, id: string): Promise<number> =>
  (await sandbox.instances()).find((instance) => instance.id === id)!.pid!;

/** Pid of the process that supervises a sandbox's instances. */
function supervisorOf(sandbox: TestSandbox): number | null {
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      if (command.includes('supervisor/main') && command.includes(sandbox.dataDir)) return Number(name);
    } catch {
      // It ended between the two reads.
    }
  }
  return null;
}

describe('ending', () => {
  it('ends the instances, too, on SIGTERM and exits with 0', async () => {
    const { sandbox, clients } = await start({ allowBundles: [TEST_BUNDLE_SHA256] });
    const { id } = await boot(clients, await uploadBundle(clients));
    const pid = await pidOf(sandbox, id);
    expect(await sandbox.stop()).toBe(0);
    expect(existsSync(`/proc/${pid}`)).toBe(false);
  });

  it('by SIGKILL ends the instances, too, including frozen ones', async () => {
    const { sandbox, clients } = await start({ allowBundles: [TEST_BUNDLE_SHA256], dataDir: await dataFolder() });
    const url = await uploadBundle(clients);
    const [lively, frozen] = await Promise.all([boot(clients, url), boot(clients, url)]);
    const pids = [await pidOf(sandbox, lively.id), await pidOf(sandbox, frozen.id)];
    process.kill(pids[1]!, 'SIGSTOP');
    await sandbox.kill();
    for (const pid of pids) await gone(pid);
  });

  it('by SIGKILL ends the instances even when their supervisor was killed before', { tags: ['nightly'] }, async () => {
    const { sandbox, clients } = await start({ allowBundles: [TEST_BUNDLE_SHA256], dataDir: await dataFolder() });
    const { id } = await boot(clients, await uploadBundle(clients));
    const pid = await pidOf(sandbox, id);
    const first = supervisorOf(sandbox)!;
    process.kill(first, 'SIGKILL');
    await eventually('another supervisor', async () => {
      const supervisor = supervisorOf(sandbox);
      return supervisor !== null && supervisor !== first ? true : null;
    });
    await sandbox.kill();
    await gone(pid);
  });

  it('happens at the time that the control route sets', async () => {
    const { sandbox } = await start({ dataDir: await dataFolder() });
    const at = new Date(Date.now() + 300).toISOString();
    // On a busy machine the time comes before the reply is read: the end is what counts.
    await sandbox.control('POST', 'ends-at', { at }).catch(() => undefined);
    await gone(sandbox.pid);
  });

  it('happens when the control route requests it', async () => {
    const { sandbox } = await start({ dataDir: await dataFolder() });
    await sandbox.control('POST', 'shutdown');
    await gone(sandbox.pid);
  });

  it('leaves the objects for the next sandbox with the same data folder, but no instances', async () => {
    const dataDir = await dataFolder();
    const first = await start({ dataDir, allowBundles: [TEST_BUNDLE_SHA256] });
    await uploadBundle(first.clients, 'kept');
    await first.clients.s3.putObject({ Bucket: 'bundles', Key: '../ü', Body: 'odd', Metadata: { a: 'b' } });
    await launch(first.clients);
    await first.sandbox.kill();
    const second = await start({ dataDir });
    const object = await second.clients.s3.getObject({ Bucket: 'bundles', Key: '../ü' });
    expect([await object.Body!.transformToString(), object.Metadata]).toEqual(['odd', { a: 'b' }]);
    expect((await second.clients.ec2.describeInstances({})).Reservations).toEqual([]);
  });
});

it('gives every sandbox a network of its own', async () => {
  const started = await Promise.all([start(), start(), start()]);
  expect(new Set(started.map(({ sandbox }) => sandbox.network)).size).toBe(3);
});

it.each([
  ['without a data folder', [], 2, '--data DIR is missing'],
  ['with an invalid hash', ['--data', 'x', '--allow-bundle', 'abc'], 2, 'SHA-256'],
  ['with an unknown flag', ['--data', 'x', '--colour'], 2, '--colour'],
])('refuses to start %s', async (_what, args, code, message) => {
  const main = fileURLToPath(new URL('../../../sandbox/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: await dataFolder(),
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [exit] = (await once(child, 'close')) as [number];
  expect([exit, errors.includes(message)]).toEqual([code, true]);
});

it('refuses to share a data folder with another sandbox', async () => {
  const dataDir = await dataFolder();
  await start({ dataDir });
  await expect(startSandbox({ dataDir })).rejects.toThrow('Another sandbox is using the data folder');
});

describe('a running sandbox', () => {
  let sandbox: TestSandbox;
  let clients: SandboxClients;
  beforeAll(async () => {
    sandbox = await startSandbox();
    clients = clientsFor(sandbox);
  });
  afterAll(async () => {
    clients?.destroy();
    await sandbox?.stop();
  });

  const ask = (endpoint: string, headers: Record<string, string>): Promise<number> =>
    new Promise((resolve, reject) => {
      const call = request(endpoint, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      });
      call.on('error', reject);
      call.end();
    });

  it('refuses a web page, a foreign name, and control routes without the token', async () => {
    const authorization = 'AWS4-HMAC-SHA256 Credential=a/20260101/r/s3/aws4_request';
    expect(await ask(sandbox.endpoint, { authorization })).toBe(200);
    expect(await ask(sandbox.endpoint, { authorization, origin: 'http://127.0.0.1:3000' })).toBe(403);
    expect(await ask(sandbox.endpoint, { authorization, host: 'rebound.example:80' })).toBe(403);
    const status = `${sandbox.endpoint}/_crawlfleet/status`;
    expect(await ask(status, {})).toBe(401);
    expect(await ask(status, { authorization: 'Bearer wrong' })).toBe(401);
    expect(await ask(status, { authorization: `Bearer ${sandbox.controlToken}` })).toBe(200);
  });

  const nameOf = (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => 'none',
      (error: Error) => error.name,
    );

  it('answers calls with an error as often as configured, without effect', async () => {
    await sandbox.control('POST', 'faults', [
      { what: 'error', action: 'RunInstances', code: 'InsufficientInstanceCapacity', count: 1 },
      { what: 'error', action: 'ListBuckets', code: 'SlowDown', count: 1 },
    ]);
    expect(await nameOf(clients.s3.listBuckets({}))).toBe('SlowDown');
    expect(await nameOf(launch(clients))).toBe('InsufficientInstanceCapacity');
    expect((await clients.ec2.describeInstances({})).Reservations).toEqual([]);
    await launch(clients);
    expect(await sandbox.control('GET', 'faults')).toEqual([]);
  });

  it('damages the matching objects: cut off, with a wrong byte, or never received', async () => {
    const bucket = { Bucket: 'box' };
    await clients.s3.createBucket(bucket);
    const Body = Buffer.alloc(100_000, 'a');
    const put = (Key: string) => clients.s3.putObject({ ...bucket, Key, Body });
    // Without a check of its own, so that the wrong byte arrives.
    const get = async (Key: string) => {
      const { Body: body } = await clients.s3.getObject({ ...bucket, Key, Range: 'bytes=0-' });
      return Buffer.from(await body!.transformToByteArray());
    };
    await put('parts/1');
    await put('other');
    await sandbox.control('POST', 'faults', [
      { what: 'cut-reply', action: 'GetObject', path: '/box/parts/', count: 1 },
      { what: 'wrong-byte', action: 'GetObject', path: '/box/parts/', count: 1 },
      { what: 'lost-request', action: 'PutObject', path: '/box/parts/', count: 1 },
    ]);
    expect(await get('other')).toEqual(Body);
    await expect(get('parts/1')).rejects.toThrow();
    const wrong = await get('parts/1');
    expect([wrong.length, wrong.filter((byte) => byte !== 0x61).length]).toEqual([100_000, 1]);
    expect(await get('parts/1')).toEqual(Body);
    expect(await nameOf(put('parts/2'))).not.toBe('none');
    expect(await nameOf(get('parts/2'))).toBe('NoSuchKey');
    expect(await sandbox.control('GET', 'faults')).toEqual([]);
  });

  it('delays an answer', async () => {
    await sandbox.control('POST', 'faults', [{ what: 'delay', action: '*', ms: 400, count: 1 }]);
    const startedMs = performance.now();
    await clients.ec2.describeVpcs({});
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(395);
  });

  it('refuses faults of an unknown kind with the reason', async () => {
    await expect(sandbox.control('POST', 'faults', [{ what: 'earthquake', count: 1 }])).rejects.toThrow('400');
  });
});
