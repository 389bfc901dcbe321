/** A sandbox with faults on demand, with the real SDK adapters in front of it, as the main server makes them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { type AwsAdapters, createAwsAdapters } from '../../../orchestrator/core/cloud/aws-clients.ts';
import { type CloudInstance, type LaunchRequest, TAG } from '../../../orchestrator/core/cloud/compute.ts';
import type { ConditionsChange } from '../../../sandbox/conditions.ts';
import type { FaultRule } from '../../../sandbox/faults.ts';
import { waitFor } from '../../support/processes.ts';
import { SUBNETS } from '../../support/sandbox/boot.ts';
import { clientsFor, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox, type TestSandboxOptions } from '../../support/sandbox/start-sandbox.ts';

export const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };

/** A zone's subnet in every sandbox; `d` is in no load balancer. */
export const SUBNET = { a: SUBNETS[0], c: SUBNETS[1], d: 'subnet-0c0a0f1ee7000000d' } as const;

interface LoggedCall {
  service: string;
  action: string;
  error?: string;
}

export class SandboxCloud {
  readonly sandbox: TestSandbox;
  readonly adapters: AwsAdapters;
  /** The SDK's clients without our adapters and without retries. */
  readonly clients: SandboxClients;
  readonly #image: string;
  #serial = 0;

  private constructor(sandbox: TestSandbox, adapters: AwsAdapters, image: string) {
    this.sandbox = sandbox;
    this.adapters = adapters;
    this.clients = clientsFor(sandbox);
    this.#image = image;
  }

  static async start(options: TestSandboxOptions = {}): Promise<SandboxCloud> {
    const sandbox = await startSandbox(options);
    const { region, endpoint } = sandbox;
    const adapters = createAwsAdapters({ region, endpoint, credentials: CREDENTIALS });
    return new SandboxCloud(sandbox, adapters, await adapters.compute.image(null, 'arm64'));
  }

  misbehave = (...rules: FaultRule[]): Promise<unknown> => this.sandbox.control('POST', 'faults', rules);

  be = (conditions: ConditionsChange): Promise<unknown> => this.sandbox.control('PATCH', 'conditions', conditions);

  inject = (id: string, what: string): Promise<unknown> =>
    this.sandbox.control('POST', `instances/${id}`, { do: what });

  /** Fault rules that no request has met yet. */
  unmet = (): Promise<unknown> => this.sandbox.control('GET', 'faults');

  /** A launch as the main server requests it, with a token and a run of its own. */
  request(change: Partial<LaunchRequest> = {}): LaunchRequest {
    const run = `run-${++this.#serial}`;
    return {
      clientToken: `token-${this.#serial}`,
      instanceType: 't4g.nano',
      imageId: this.#image,
      subnetId: SUBNET.a,
      securityGroupIds: ['sg-0c0a0f1ee70000001'],
      instanceProfile: null,
      userData: '#!/bin/sh\n',
      tags: { [TAG.owner]: 'test', [TAG.run]: run, [TAG.slot]: '0', [TAG.epoch]: '1' },
      ...change,
    };
  }

  /** The instance of a launch that must succeed. */
  async launched(request: LaunchRequest): Promise<CloudInstance> {
    const result = await this.adapters.compute.launch(request);
    if (result.kind !== 'launched') throw new Error(`not launched: ${JSON.stringify(result)}`);
    return result.instance;
  }

  /** What EC2 shows of the request's run. */
  shown({ tags }: LaunchRequest): Promise<CloudInstance[]> {
    return this.adapters.compute.list({ key: TAG.run, value: tags[TAG.run]! });
  }

  inState(request: LaunchRequest, state: string): Promise<CloudInstance> {
    return waitFor(async () => (await this.shown(request)).find((i) => i.state === state), {
      what: `an instance of ${request.tags[TAG.run]} that is ${state}`,
    });
  }

  /** The calls of that name that reached the sandbox, refused ones included; lost requests did not. */
  calls(action: string): LoggedCall[] {
    return readFileSync(join(this.sandbox.dataDir, 'sandbox.log'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"action":"${action}"`))
      .map((line) => JSON.parse(line) as LoggedCall);
  }

  /** Resets everything but the instances. */
  async calm(): Promise<void> {
    await this.sandbox.control('DELETE', 'faults');
    await this.sandbox.control('DELETE', 'conditions');
  }

  async stop(): Promise<void> {
    this.adapters.close();
    this.clients.destroy();
    await this.sandbox.stop();
  }
}

/** One sandbox for a file, reset before each test; `take` receives it. */
export function useSandboxCloud(take: (cloud: SandboxCloud) => void, options: TestSandboxOptions = {}): void {
  let cloud: SandboxCloud | undefined;
  beforeAll(async () => {
    cloud = await SandboxCloud.start(options);
    take(cloud);
  });
  afterEach(() => cloud?.calm());
  afterAll(() => cloud?.stop());
}
