/** What happens on an instance: boot, metadata, console, the program's ends, and power off. */
import { existsSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { fromInstanceMetadata } from '@smithy/credential-provider-imds';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { answers, boot, inState, launch } from '../../support/sandbox/boot.ts';
import { eventually, type SandboxClients } from '../../support/sandbox/clients.ts';
import type { SandboxInstance, TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { userDataFor } from '../../support/sandbox/test-bundle.ts';
import { useSandbox } from './use-sandbox.ts';

let sandbox: TestSandbox;
let clients: SandboxClients;
let bundleUrl: string;

useSandbox((made) => ({ sandbox, clients, bundleUrl } = made));
afterEach(() => vi.unstubAllEnvs());

async function consoleOf(id: string): Promise<string> {
  const reply = await clients.ec2.getConsoleOutput({ InstanceId: id });
  return Buffer.from(reply.Output ?? '', 'base64').toString('utf8');
}

const consoleSays = (id: string, text: string): Promise<string> =>
  eventually(`the console of ${id} to say "${text}"`, async () => {
    const output = await consoleOf(id);
    return output.includes(text) ? output : null;
  });

const statusOf = async (id: string): Promise<SandboxInstance> =>
  (await sandbox.instances()).find((instance) => instance.id === id)!;

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);
const terminate = (id: string) => clients.ec2.terminateInstances({ InstanceIds: [id] });

describe('a boot', () => {
  it('runs the bundle of the user data on its own address with a clean environment', async () => {
    const { id, url, instance } = await boot(clients, bundleUrl);
    const self = (await (await fetch(`${url}/whoami`)).json()) as { id: string; address: string; env: string[] };
    expect(self).toMatchObject({ id, address: instance.PrivateIpAddress });
    expect(self.env).toEqual([
      'AWS_EC2_METADATA_SERVICE_ENDPOINT',
      'HOME',
      'MALLOC_ARENA_MAX',
      'MALLOC_MMAP_THRESHOLD_',
      'MALLOC_TRIM_THRESHOLD_',
      'NODE_ENV',
      'PATH',
      'STATE_DIRECTORY',
    ]);
    expect(await consoleSays(id, 'serving as')).toContain(`test bundle: serving as ${id}`);
    const { pid, folder } = await statusOf(id);
    expect(isAlive(pid!)).toBe(true);
    expect(existsSync(join(folder, 'crawl-api.mjs'))).toBe(true);
    await terminate(id);
    await inState(clients, id, 'terminated');
    expect(isAlive(pid!)).toBe(false);
  });

  it('with user data that is a foreign script executes nothing, and the console explains why', async () => {
    const UserData = Buffer.from('#!/bin/sh\ntouch /tmp/owned\n').toString('base64');
    const { InstanceId } = await launch(clients, { UserData });
    await consoleSays(InstanceId!, 'no crawlfleet settings');
    expect(await statusOf(InstanceId!)).toMatchObject({ state: 'running', pid: null });
  });
});

describe('the program', () => {
  it('is started again in the same folder when it fails or is killed', async () => {
    const { id, url } = await boot(clients, bundleUrl);
    await fetch(`${url}/exit?code=1`);
    const starts = async () => {
      const reply = await fetch(`${url}/whoami`).catch(() => null);
      return reply ? ((await reply.json()) as { starts: number }).starts : 0;
    };
    await eventually('the second start', async () => ((await starts()) === 2 ? true : null));
    process.kill((await statusOf(id)).pid!, 'SIGKILL');
    await eventually('the third start', async () => ((await starts()) === 3 ? true : null));
    await terminate(id);
  });

  it('switches the machine off when it ends normally: stopped, or terminated where the launch requires it', async () => {
    const [stopping, terminating] = await Promise.all([
      boot(clients, bundleUrl),
      boot(clients, bundleUrl, { InstanceInitiatedShutdownBehavior: 'terminate' }),
    ]);
    await fetch(`${stopping.url}/exit?code=0`);
    await fetch(`${terminating.url}/exit?code=0`);
    await inState(clients, stopping.id, 'stopped');
    const gone = await inState(clients, terminating.id, 'terminated');
    expect(gone.StateReason?.Code).toBe('Client.InstanceInitiatedShutdown');
  });

  it('and its machine are switched off at the time in the user data', async () => {
    const { InstanceId } = await launch(clients, {
      UserData: userDataFor({ bundleUrl, powerOffAtMs: Date.now() + 1_500 }),
      InstanceInitiatedShutdownBehavior: 'terminate',
    });
    await inState(clients, InstanceId!, 'terminated');
    expect(await consoleOf(InstanceId!)).toContain('the time set at boot');
  });

  it('runs again after a stop and a start, at the same address', async () => {
    const { id, url, instance } = await boot(clients, bundleUrl);
    await clients.ec2.stopInstances({ InstanceIds: [id] });
    await inState(clients, id, 'stopped');
    expect((await statusOf(id)).pid).toBeNull();
    await clients.ec2.startInstances({ InstanceIds: [id] });
    const again = await inState(clients, id, 'running');
    expect(again.PublicIpAddress).toBe(instance.PublicIpAddress);
    await answers(`${url}/healthz`);
  });

  it('is killed by a terminate even when it is frozen', async () => {
    const { id } = await boot(clients, bundleUrl);
    const { pid } = await statusOf(id);
    process.kill(pid!, 'SIGSTOP');
    await terminate(id);
    await inState(clients, id, 'terminated');
    expect(isAlive(pid!)).toBe(false);
  });
});

describe('the metadata service', () => {
  let imds: string;
  let id: string;
  beforeAll(async () => {
    const booted = await boot(clients, bundleUrl, { IamInstanceProfile: { Name: 'crawl-instance' } });
    ({ id } = booted);
    imds = /metadata at (\S+)/.exec(await consoleSays(id, 'metadata at'))![1]!;
  });

  const token = async (headers: Record<string, string> = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' }) =>
    fetch(`${imds}/latest/api/token`, { method: 'PUT', headers });
  const read = async (path: string) =>
    fetch(`${imds}/latest/${path}`, { headers: { 'x-aws-ec2-metadata-token': await (await token()).text() } });

  it('returns nothing without a token, and a token only for a lifetime and to no proxy', async () => {
    expect((await fetch(`${imds}/latest/meta-data/instance-id`)).status).toBe(401);
    expect((await token({})).status).toBe(400);
    expect((await token({ 'x-aws-ec2-metadata-token-ttl-seconds': '0' })).status).toBe(400);
    const forwarded = { 'x-aws-ec2-metadata-token-ttl-seconds': '60', 'x-forwarded-for': '1.2.3.4' };
    expect((await token(forwarded)).status).toBe(403);
  });

  it('describes the instance', async () => {
    expect(await (await read('meta-data/instance-id')).text()).toBe(id);
    expect(await (await read('meta-data/placement/region')).text()).toBe('ap-northeast-1');
    expect((await (await read('dynamic/instance-identity/document')).json()) as object).toMatchObject({
      instanceId: id,
    });
    expect(await (await read('user-data')).text()).toContain('crawlfleet-settings');
    expect((await read('meta-data/placement/')).status).toBe(200);
    expect((await read('meta-data/spot/instance-action')).status).toBe(404);
  });

  it("provides the role's credentials to AWS's own SDK", async () => {
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', imds);
    const credentials = await fromInstanceMetadata({ maxRetries: 0 })();
    expect(credentials.accessKeyId).toMatch(/^ASIA/);
    expect(credentials.expiration!.getTime()).toBeGreaterThan(Date.now());
  });

  it("does not answer at another instance's address", async () => {
    const other = sandbox.network.replace('.0.0/16', '.200.9');
    const answered = await new Promise<boolean>((resolve) => {
      get(`${imds}/latest/meta-data/`, { localAddress: other }, () => resolve(true)).on('error', () => resolve(false));
    });
    expect(answered).toBe(false);
  });
});
