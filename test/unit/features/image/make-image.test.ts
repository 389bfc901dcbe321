/** The steps of building an image, with an in-memory cloud and a clock that jumps. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../shared/domain/errors.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import { copyFailure, copyImage, howToPin, makeImage } from '../../../../orchestrator/features/image/make-image.ts';
import { type CloudState, TAG } from '../../../../orchestrator/core/cloud/compute.ts';
import type { BuilderRequest, ImageCloud } from '../../../../orchestrator/features/image/image-ec2.ts';
import { reasonToKeep } from '../../../../orchestrator/core/gc/gc.ts';

const START = Date.parse('2026-11-01T02:00:00Z');
const MINUTE = 60_000;

/** A clock that skips each sleep. */
class JumpingClock implements Clock {
  ms = START;
  now(): number {
    return this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  sleep(ms: number): Promise<void> {
    this.ms += ms;
    return Promise.resolve();
  }
}

interface Script {
  /** Minutes after the launch; never by default when null. */
  stopsAfter?: number | null;
  console?: (minutes: number) => string | null;
  imageState?: (polls: number) => string | null;
  terminateFails?: number;
  /** Number of initial polls of EC2 that fail. */
  looksFail?: { times: number; error: Error };
  state?: (minutes: number) => CloudState | null;
}

function stage(script: Script = {}) {
  const clock = new JumpingClock();
  const calls: string[] = [];
  const told: string[] = [];
  let request: BuilderRequest | null = null;
  let polls = 0;
  let looksFail = script.looksFail?.times ?? 0;
  const look = <T>(see: () => T): Promise<T> =>
    looksFail-- > 0 ? Promise.reject(script.looksFail!.error) : Promise.resolve(see());
  let terminateFails = script.terminateFails ?? 0;
  const minutes = (): number => (clock.ms - START) / MINUTE;
  const cloud: ImageCloud = {
    baseImage: () => Promise.resolve('ami-base'),
    launchBuilder(asked) {
      request = asked;
      return Promise.resolve('i-builder');
    },
    builderState: () =>
      look(
        () =>
          script.state?.(minutes()) ??
          (script.stopsAfter !== null && minutes() >= (script.stopsAfter ?? 4) ? 'stopped' : 'running'),
      ),
    console: () =>
      Promise.resolve(
        (script.console ?? ((m) => (m < 5 ? null : 'boot\ncrawlfleet-image: ready 156.0.1\n')))(minutes()),
      ),
    createImage({ tags }) {
      calls.push(`create ${tags['crawlfleet:image']} ${tags['crawlfleet:chromium']} ${tags.CostCenter}`);
      return Promise.resolve('ami-new');
    },
    copyImage: () => Promise.reject(new Error('not in this test')),
    imageState: () => look(() => (script.imageState ?? ((n) => (n < 3 ? 'pending' : 'available')))(++polls)),
    terminate(id) {
      if (terminateFails-- > 0) return Promise.reject(new Error('not now'));
      calls.push(`terminate ${id}`);
      return Promise.resolve();
    },
    ownImages: () => Promise.resolve([]),
    removeImage: () => Promise.resolve(),
  };
  const leave = new AbortController();
  const made = () =>
    makeImage({
      cloud,
      clock,
      signal: leave.signal,
      onProgress: (text) => told.push(text),
      owner: 'me',
      tags: { CostCenter: '4711' },
      builder: { instanceType: 't4g.small', subnetId: 'subnet-1', securityGroupIds: ['sg-1'], userData: '#!/bin/bash' },
      baseImageId: 'ami-base',
      architecture: 'arm64',
    });
  return { made, calls, told, leave, clock, request: () => request! };
}

const failure = async (made: Promise<unknown>): Promise<AppError> => {
  const error = await made.then(
    () => null,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(AppError);
  return error as AppError;
};

describe('building an image', () => {
  it('creates it from a builder that is stopped and reported ready, and then terminates the builder', async () => {
    const { made, calls, request } = stage();
    await expect(made()).resolves.toMatchObject({
      imageId: 'ami-new',
      chromium: '156.0.1',
      labels: {
        name: 'crawlfleet-browser-arm64-20261101T020000Z',
        tags: { CostCenter: '4711', 'crawlfleet:owner': 'me' },
      },
    });
    expect(calls).toEqual(['create browser 156.0.1 4711', 'terminate i-builder']);
    expect(request()).toMatchObject({ imageId: 'ami-base', clientToken: 'crawlfleet-image-20261101T020000Z-arm64' });
    expect(request().clientToken.length).toBeLessThanOrEqual(64);
  });

  it('reads the console for some minutes after the stop, and keeps the earlier output', async () => {
    const shownLate = stage({ console: (m) => (m < 8 ? 'boot' : 'crawlfleet-image: ready 156.0.1') });
    await expect(shownLate.made()).resolves.toMatchObject({ chromium: '156.0.1' });
    const goneAfterStop = stage({ console: (m) => (m < 4 ? 'crawlfleet-image: ready 156.0.1' : null) });
    await expect(goneAfterStop.made()).resolves.toMatchObject({ chromium: '156.0.1' });
  });

  it.each([
    [
      'from its message',
      'boot\ncrawlfleet-image: failed: the packages could not be installed\r\nmore',
      'the packages could not be installed',
    ],
    ['with the end of the console where there is no message', 'kernel panic', 'it does not say why'],
    ['even after it was ready', 'crawlfleet-image: ready 1.2\ncrawlfleet-image: failed: line 3\n', 'line 3'],
  ])('creates none from a builder that is not ready, and reports the cause, %s', async (_, console, why) => {
    const { made, calls } = stage({ console: () => console });
    const error = await failure(made());
    expect(error.message).toContain(why);
    expect(error.hint).toContain(console.slice(-20));
    expect(calls).toEqual(['terminate i-builder']);
  });

  it('gives up a builder that does not stop', async () => {
    const { made, calls, clock, told } = stage({ stopsAfter: null });
    expect((await failure(made())).message).toContain('has not stopped in 20m');
    expect(clock.ms - START).toBeLessThan(21 * MINUTE);
    expect(calls).toEqual(['terminate i-builder']);
    expect(told.filter((text) => text.startsWith('the builder is still at work')).length).toBeGreaterThan(10);
  });

  it('does not wait for a builder that was terminated externally', async () => {
    const { made, clock } = stage({ state: (m) => (m < 2 ? 'running' : 'shutting-down') });
    expect((await failure(made())).message).toContain('was terminated by another process');
    expect(clock.ms - START).toBeLessThan(3 * MINUTE);
  });

  it('waits for a builder that EC2 does not show yet', async () => {
    const { made } = stage({ state: (m) => (m < 1 ? null : m < 4 ? 'running' : 'stopped') });
    await expect(made()).resolves.toMatchObject({ imageId: 'ami-new' });
  });

  it('reports that EC2 could not create the image', async () => {
    const { made, calls } = stage({ imageState: () => 'failed' });
    expect((await failure(made())).message).toContain('ami-new: it is failed');
    expect(calls.at(-1)).toBe('terminate i-builder');
  });

  it('terminates the builder when the user interrupts, and creates no image', async () => {
    const { made, calls, leave } = stage();
    leave.abort();
    expect((await failure(made())).code).toBe('interrupted');
    expect(calls).toEqual(['terminate i-builder']);
  });

  it('names the image that EC2 continues to create when the user interrupts at that point', async () => {
    const staged = stage({
      imageState: () => {
        staged.leave.abort();
        return 'pending';
      },
    });
    const error = await failure(staged.made());
    expect(error).toMatchObject({ code: 'interrupted', message: expect.stringContaining('ami-new') });
    expect(error.message).not.toContain('no image');
    expect(error.hint).toContain('deregister-image --image-id ami-new');
    expect(staged.calls.at(-1)).toBe('terminate i-builder');
  });

  it('retries when EC2 does not answer, but not after a permanent refusal', async () => {
    const error = new AppError('aws-failed', 'DescribeInstances: timeout');
    await expect(stage({ looksFail: { times: 5, error } }).made()).resolves.toMatchObject({ imageId: 'ami-new' });
    expect(await failure(stage({ looksFail: { times: 6, error } }).made())).toBe(error);
    const denied = new AppError('aws-denied', 'UnauthorizedOperation');
    expect(await failure(stage({ looksFail: { times: 1, error: denied } }).made())).toBe(denied);
  });

  it('retries the termination of the builder, and finally prints the command for it', async () => {
    const again = stage({ terminateFails: 2 });
    await again.made();
    expect(again.calls.at(-1)).toBe('terminate i-builder');
    const never = stage({ terminateFails: 100 });
    await expect(never.made()).resolves.toMatchObject({ imageId: 'ami-new' });
    expect(never.told.at(-1)).toContain('aws ec2 terminate-instances --instance-ids i-builder');
  });

  it('tags the builder so that gc ends an orphaned one, but not before it expires', async () => {
    const { made, request } = stage();
    await made();
    const found = {
      kind: 'instance' as const,
      id: 'i-builder',
      state: 'stopped',
      startedAtMs: START,
      tags: request().tags,
    };
    const facts = (nowMs: number) => ({ owner: 'me', nowMs, runs: new Map(), workedOn: new Set<string>() });
    expect(reasonToKeep(found, facts(START + 60 * MINUTE))).toBe('it has not expired');
    expect(reasonToKeep(found, facts(START + 91 * MINUTE))).toBeNull();
    expect(
      reasonToKeep({ ...found, tags: { ...found.tags, [TAG.owner]: 'you' } }, facts(START + 91 * MINUTE)),
    ).not.toBeNull();
  });
});

describe('copying an image', () => {
  const labels = {
    name: 'crawlfleet-browser-arm64-1',
    description: 'Debian 13 with Chromium',
    tags: { [TAG.owner]: 'me' },
  };

  /** @param states what each region answers about its copy, by poll; an Error refuses the copy itself */
  async function copyTo(
    states: Record<string, ((polls: number) => string | null) | Error>,
    leave = new AbortController(),
  ) {
    const clock = new JumpingClock();
    const calls: unknown[] = [];
    const told: string[] = [];
    const to = Object.entries(states).map(([region, state]) => {
      let polls = 0;
      const cloud = {
        copyImage(...call: Parameters<ImageCloud['copyImage']>) {
          calls.push([region, ...call]);
          return state instanceof Error ? Promise.reject(state) : Promise.resolve(`ami-${region}`);
        },
        imageState() {
          const answer = (state as (polls: number) => string | null)(++polls);
          if (answer !== 'Ctrl-C') return Promise.resolve(answer);
          leave.abort();
          return Promise.resolve('pending');
        },
      } as unknown as ImageCloud;
      return { region, cloud };
    });
    const copies = await copyImage({
      clock,
      signal: leave.signal,
      onProgress: (text) => told.push(text),
      from: 'eu-west-1',
      image: { imageId: 'ami-first', labels },
      to,
    });
    return { copies, calls, told, clock, failure: copyFailure(copies) };
  }

  it('copies it to every region with its name and tags, and waits for all copies', async () => {
    const { copies, calls, told, failure } = await copyTo({
      'eu-central-1': (polls) => (polls < 20 ? 'pending' : 'available'),
      'us-east-1': (polls) => (polls < 2 ? null : 'available'),
    });
    expect(copies).toEqual([
      { region: 'eu-central-1', imageId: 'ami-eu-central-1' },
      { region: 'us-east-1', imageId: 'ami-us-east-1' },
    ]);
    const source = { region: 'eu-west-1', imageId: 'ami-first' };
    expect(calls).toEqual([
      ['eu-central-1', source, labels],
      ['us-east-1', source, labels],
    ]);
    expect(told.some((text) => text.startsWith('the image in eu-central-1 is still being made'))).toBe(true);
    expect(failure).toBeNull();
  });

  it('keeps the others when one region fails, and says which and what to do', async () => {
    const { copies, failure } = await copyTo({
      'eu-central-1': new AppError('aws-denied', 'CopyImage: not authorized', { hint: 'Attach the policy.' }),
      'us-east-1': () => 'available',
      'ap-south-1': () => 'failed',
    });
    expect(copies).toContainEqual({ region: 'us-east-1', imageId: 'ami-us-east-1' });
    expect(failure!.code).toBe('aws-failed');
    expect(failure!.message).toContain('eu-central-1: CopyImage: not authorized');
    expect(failure!.message).toContain('ap-south-1: EC2 could not make the image ami-ap-south-1: it is failed');
    expect(failure!.hint).toContain('Attach the policy.');
    expect(failure!.hint).toContain('Until eu-central-1, ap-south-1 have a new image,');
  });

  it('fails with the code of the regions when they agree', async () => {
    const denied = new AppError('aws-denied', 'CopyImage: not authorized');
    const { failure } = await copyTo({ 'eu-central-1': denied, 'us-east-1': denied });
    expect(failure).toMatchObject({ code: 'aws-denied', exitCode: 4 });
  });

  it('gives up a copy that does not become available', async () => {
    const { clock, failure } = await copyTo({ 'us-east-1': () => 'pending' });
    expect(failure!.message).toContain('us-east-1: the image ami-us-east-1 is not available after 30m');
    expect(clock.ms - START).toBeLessThan(31 * MINUTE);
  });

  it('names each copy that EC2 goes on making when the user interrupts', async () => {
    const { copies, failure } = await copyTo({
      'eu-central-1': () => 'available',
      'us-east-1': (polls) => (polls < 3 ? 'pending' : 'Ctrl-C'),
      'ap-south-1': () => 'pending',
    });
    expect(copies).toContainEqual({ region: 'eu-central-1', imageId: 'ami-eu-central-1' });
    expect(failure!.code).toBe('interrupted');
    for (const region of ['us-east-1', 'ap-south-1']) {
      expect(failure!.message).toContain(`${region}: interrupted, but EC2 may go on making the image ami-${region}`);
      expect(failure!.hint).toContain(`deregister-image --region ${region} --image-id ami-${region}`);
    }
  });

  it('starts no copy after the user has interrupted', async () => {
    const leave = new AbortController();
    leave.abort();
    const { calls, failure } = await copyTo({ 'us-east-1': () => 'available' }, leave);
    expect(calls).toEqual([]);
    expect(failure!.code).toBe('interrupted');
    expect(failure!.message).toBe('us-east-1: interrupted, no copy to this region was started');
  });
});

describe('the advice to pin an image', () => {
  const images = [
    { region: 'eu-central-1', imageId: 'ami-1' },
    { region: 'us-east-1', imageId: 'ami-2' },
  ];

  it('has one line to add for each region, and no list that would replace the configured one', () => {
    const lines = howToPin(images, true).split('\n');
    expect(lines).toEqual([
      'To pin it, add to the entry of each region in aws.regions:',
      '  image: ami-1  # eu-central-1',
      '  image: ami-2  # us-east-1',
    ]);
    expect(howToPin(images.slice(0, 1), false)).toBe('To pin it:\n  aws:\n    image: ami-1');
  });
});
