import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { HeartbeatLoop } from '../../../crawl-api/callbacks/heartbeat.ts';
import { sayHello } from '../../../crawl-api/callbacks/hello.ts';
import type { Reply } from '../../../crawl-api/callbacks/main-server-client.ts';
import { StateFolder } from '../../../crawl-api/process/state-folder.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Heartbeat, Orders } from '../../../shared/wire/callbacks.ts';
import { START_MS, orders, silentLog } from './fakes.ts';

const random = seededRandom(3);
const never = new AbortController().signal;

describe('sayHello', () => {
  const hello = { instanceId: 'i-1', address: '10.0.0.1', publicKey: 'k', bundleSha256: 's' };

  function client(statuses: (number | 'lost')[]) {
    let tries = 0;
    return {
      tries: () => tries,
      sendHello: async (): Promise<Reply> => {
        const status = statuses[Math.min(tries++, statuses.length - 1)]!;
        if (status === 'lost') throw new Error('ECONNREFUSED');
        return { status, body: '{"ok":false}', authentic: false };
      },
    };
  }

  it.each([403, 409])('gives up permanently at %i', async (status) => {
    const clock = new VirtualClock(START_MS);
    const main = client([status]);
    expect(await sayHello(main, hello, { clock, random, log: silentLog }, never)).toBe('refused');
    expect(main.tries()).toBe(1);
  });

  it('retries after lost replies, 425 and 5xx until it is accepted', async () => {
    const clock = new VirtualClock(START_MS);
    const main = client(['lost', 425, 500, 503, 'lost', 200]);
    const answer = sayHello(main, hello, { clock, random, log: silentLog }, never);
    await clock.advance(60_000);
    expect(await answer).toBe('accepted');
    expect(main.tries()).toBe(6);
  });

  it('stops on abort', async () => {
    const clock = new VirtualClock(START_MS);
    const stop = new AbortController();
    const answer = sayHello(client(['lost']), hello, { clock, random, log: silentLog }, stop.signal);
    await clock.advance(1_000);
    stop.abort();
    expect(await answer).toBe('stopped');
  });
});

describe('the heartbeat loop', () => {
  const heartbeat = { phase: 'ready' } as Heartbeat;

  function createLoop(reply: (clock: VirtualClock) => Promise<Reply>) {
    const clock = new VirtualClock(START_MS);
    const sentAt: number[] = [];
    const followed: Orders[] = [];
    const stop = new AbortController();
    const loop = new HeartbeatLoop({
      client: {
        sendSigned: () => {
          sentAt.push(clock.now() - START_MS);
          return reply(clock);
        },
      },
      describe: () => heartbeat,
      follow: async (given) => void followed.push(given),
      clock,
      random,
      log: silentLog,
      intervalMs: 1_000,
    });
    const running = loop.run(stop.signal);
    return { clock, loop, sentAt, followed, end: async () => (stop.abort(), running) };
  }

  const good = (changes: Partial<Reply> = {}): Reply => ({
    status: 200,
    body: JSON.stringify(orders()),
    authentic: true,
    ...changes,
  });

  it('sends a heartbeat every interval, and immediately after a change', async () => {
    const { clock, loop, sentAt, followed, end } = createLoop(async () => good());
    await clock.advance(2_500);
    expect(sentAt).toEqual([0, 1_000, 2_000]);
    loop.poke();
    await clock.advance(10);
    expect(sentAt).toEqual([0, 1_000, 2_000, 2_500]);
    expect(followed).toHaveLength(4);
    await end();
  });

  it('never has two in flight; changes in between lead to one more', async () => {
    const { clock, loop, sentAt, end } = createLoop(async (time) => {
      await time.sleep(300);
      return good();
    });
    await clock.advance(100);
    for (let i = 0; i < 5; i++) loop.poke();
    await clock.advance(150);
    expect(sentAt).toEqual([0]);
    await clock.advance(600);
    expect(sentAt).toEqual([0, 300]);
    await end();
  });

  it.each([
    ['not signed by the run', good({ authentic: false })],
    ['a refusal', good({ status: 403 })],
    ['not orders', good({ body: '{"grants":"all"}' })],
    ['not JSON', good({ body: '<html>' })],
  ])('ignores a reply that is %s', async (_what, reply) => {
    const { clock, followed, sentAt, end } = createLoop(async () => reply);
    await clock.advance(10_000);
    expect(followed).toEqual([]);
    expect(sentAt.length).toBeGreaterThan(5);
    await end();
  });

  it('sends no early heartbeat while the main server has an open incident', async () => {
    const { clock, loop, sentAt, end } = createLoop(async () => {
      throw new Error('ECONNREFUSED');
    });
    for (let i = 0; i < 100; i++) {
      loop.poke();
      await clock.advance(100);
    }
    expect(sentAt.length).toBeLessThan(30);
    await end();
  });
});

describe('the state folder', () => {
  const folders: string[] = [];
  const owner = { run: 'run/1', slot: 2, epoch: 3 };

  function base(): string {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'crawlfleet-state-'));
    folders.push(folder);
    return folder;
  }
  afterEach(() => {
    for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
  });

  it('keeps its key pair across a restart, readable only by its own user', () => {
    const folder = base();
    const first = new StateFolder(folder, owner, START_MS);
    const again = new StateFolder(folder, owner, START_MS);
    expect(again.publicKeyText).toBe(first.publicKeyText);
    const files = fs
      .readdirSync(path.dirname(first.journalPath))
      .map((name) => path.join(path.dirname(first.journalPath), name));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(fs.statSync(file).mode & 0o077).toBe(0);
  });

  it('has another key for another epoch', () => {
    const folder = base();
    const first = new StateFolder(folder, owner, START_MS);
    expect(new StateFolder(folder, { ...owner, epoch: 4 }, START_MS).publicKeyText).not.toBe(first.publicKeyText);
  });

  it('remembers that it was accepted', () => {
    const folder = base();
    const state = new StateFolder(folder, owner, START_MS);
    expect(state.helloAccepted).toBe(false);
    state.markHelloAccepted();
    expect(new StateFolder(folder, owner, START_MS).helloAccepted).toBe(true);
  });

  it('returns increasing counters across restarts and clock steps back', () => {
    const folder = base();
    let last = 0;
    for (const nowMs of [START_MS, START_MS + 5, START_MS - 3_600_000, START_MS + 60_000, 0]) {
      const state = new StateFolder(folder, owner, nowMs);
      for (let i = 0; i < 3; i++) {
        const next = state.nextCounter();
        expect(next).toBeGreaterThan(last);
        last = next;
      }
    }
    expect(Number.isSafeInteger(last)).toBe(true);
  });

  it('returns counters on a full disk, and stores them as soon as it can', () => {
    const folder = base();
    const state = new StateFolder(folder, owner, START_MS);
    // Simulates a full disk: a folder cannot be written as a file.
    const blocker = path.join(path.dirname(state.journalPath), 'counter.new');
    fs.mkdirSync(blocker);
    expect([state.nextCounter(), state.nextCounter()]).toEqual([START_MS + 1, START_MS + 2]);
    fs.rmdirSync(blocker);
    const last = state.nextCounter();
    expect(last).toBe(START_MS + 3);
    expect(new StateFolder(folder, owner, 0).nextCounter()).toBeGreaterThan(last);
  });
});
