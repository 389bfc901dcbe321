/**
 * A fleet's heartbeats at one main server: 200 per second for a minute, some of them replayed ten times, then a few,
 * over HTTP and over TLS, while 150 hostile connections from as many addresses do what they can.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createConnection } from 'mysql2/promise';
import { Pool } from 'undici';
import { type Heartbeat, HEARTBEAT_PATH, HELLO_PATH, NO_PROGRESS } from '../../shared/wire/callbacks.ts';
import {
  createKeyPair,
  type Envelope,
  envelopeHeaders,
  exportPublicKey,
  type KeyPair,
  macMessage,
  signMessage,
} from '../../shared/wire/signature.ts';
import { QUICK, startDatabaseServer } from '../../test/support/mariadb/server.ts';
import { type Bench, startProgram } from '../frame.ts';

const CASE = fileURLToPath(new URL('main-server-case.ts', import.meta.url));
const HOSTILE_CASE = fileURLToPath(new URL('hostile-case.ts', import.meta.url));
/** The kinds of hostile-case.ts; null: an undisturbed fleet, for comparison. */
const HOSTILE_KINDS = [null, 'chunks', 'requests', 'forged', 'half-requests', 'half-bodies', 'half-handshakes'];
const HOSTILE_CONNECTIONS = 150;
const HOSTILE_SECONDS = 20;
/** A fleet with a heartbeat per second each. */
const HOSTILE_FLEET = 20;
const HOSTILE_LIMIT_MS = 1_000;
/** With a heartbeat per second, as on a run of 16 minutes, they send 200 callbacks per second. */
const INSTANCES = 200;
const PER_SECOND = 200;
const SECONDS = 60;
const REPLAYED = 500;
const TIMES = 10;
const LIMIT_MS = 250;

interface Launched {
  slot: number;
  epoch: number;
  token: string;
  instanceId: string;
}

interface Ready {
  port: number;
  tlsPort: number;
  /** PEM. */
  cert: string;
  run: string;
  launched: Launched[];
}

/** A sent heartbeat, kept for the replay. */
interface Sent {
  path: string;
  headers: Record<string, string>;
  body: string;
}

export const bench: Bench = {
  title: `Callbacks: the heartbeats of ${INSTANCES} instances`,
  async run() {
    const server = await startDatabaseServer({ options: QUICK });
    const url = server.url('bench_calls');
    const admin = await createConnection({ uri: server.url('') });
    await admin.query('create database bench_calls character set utf8mb4');
    const main = await startProgram(CASE, [url, String(INSTANCES)]);
    try {
      const ready = JSON.parse(main.line) as Ready;
      const pool = new Pool(`http://127.0.0.1:${ready.port}`, { connections: 64 });
      const fleet = ready.launched.map((place) => new Heart(place, ready.run, pool));
      for (let i = 0; i < fleet.length; i += 32)
        await Promise.all(fleet.slice(i, i + 32).map((heart) => heart.hello()));
      const times = await beat(fleet);
      const digest = () => digestOf(admin);
      const replay = await replayAll(fleet.flatMap((heart) => heart.sent).slice(0, REPLAYED), pool, digest);
      await pool.close();
      const attacked = fleet.slice(0, HOSTILE_FLEET);
      const attacks = [...(await attack(attacked, ready, false)), ...(await attack(attacked, ready, true))];
      const at = (part: number): number => share(times, part);
      return {
        about:
          `A main server (listener, loop, stores) with ${INSTANCES} instances in a run of 16 minutes on MariaDB, everything on the same two cores. ` +
          `${PER_SECOND} signed heartbeats a second for ${SECONDS} s, each sent at its own moment whether or not earlier ones are answered; then ${REPLAYED} of them ${TIMES} times again, ` +
          `with the rows of all instances compared before and after; then a heartbeat a second from each of ${HOSTILE_FLEET} instances for ${HOSTILE_SECONDS} s, over HTTP and over TLS, undisturbed and while ` +
          `${HOSTILE_CONNECTIONS} connections from as many addresses send bodies of one-byte chunks, requests, or forged heartbeats without waiting for answers, or stop in the middle of a request's head, its body, or a TLS handshake.`,
        rows: [
          {
            name: 'heartbeats',
            figures: { answered: times.length, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: times.at(-1)! },
          },
          { name: 'replayed', figures: { refused: replay.refused, changedRows: replay.changed ? 1 : 0 } },
          ...attacks.map(({ name, times: sorted, lost }) => ({
            name,
            figures: {
              answered: sorted.length,
              lost,
              p50Ms: share(sorted, 0.5),
              p99Ms: share(sorted, 0.99),
              maxMs: sorted.at(-1) ?? Infinity,
            },
          })),
        ],
        ratios: [
          { name: `p99 / ${LIMIT_MS} ms`, value: at(0.99) / LIMIT_MS, target: 'at most 1' },
          { name: 'answered / sent', value: times.length / (PER_SECOND * SECONDS), target: '1' },
          ...attacks.flatMap(({ name, times: sorted, lost, undisturbedMs }) => [
            {
              name: `p99 ${name} / ${HOSTILE_LIMIT_MS} ms`,
              value: share(sorted, 0.99) / HOSTILE_LIMIT_MS,
              target: 'at most 1',
            },
            ...(undisturbedMs === null
              ? []
              : [{ name: `p99 ${name} / p99 undisturbed`, value: share(sorted, 0.99) / undisturbedMs }]),
            { name: `heartbeats lost ${name}`, value: lost, target: '0' },
          ]),
          { name: 'replayed heartbeats that changed something', value: replay.changed ? 1 : 0, target: '0' },
        ],
      };
    } finally {
      await main.stop();
      await admin.end();
      await server.stop();
    }
  },
};

interface Attacked {
  /** "under hostile chunks over TLS". */
  name: string;
  /** Times of the answered heartbeats, sorted. */
  times: number[];
  lost: number;
  /** The p99 of the same fleet without an attack; null where this is it. */
  undisturbedMs: number | null;
}

/** The heartbeats of the fleet over HTTP or TLS, under each kind of attack. */
async function attack(fleet: readonly Heart[], ready: Ready, isTls: boolean): Promise<Attacked[]> {
  const port = isTls ? ready.tlsPort : ready.port;
  const pool = new Pool(`${isTls ? 'https' : 'http'}://127.0.0.1:${port}`, {
    connections: 64,
    connect: { ca: ready.cert },
  });
  const attacked: Attacked[] = [];
  for (const kind of HOSTILE_KINDS) {
    if (kind === 'half-handshakes' && !isTls) continue;
    const args = [String(port), ready.run, kind ?? '', String(HOSTILE_CONNECTIONS), ...(isTls ? ['tls'] : [])];
    const hostile = kind === null ? null : await startProgram(HOSTILE_CASE, args);
    const found = await beatInTurn(fleet, pool);
    await hostile?.stop();
    const name = `${kind === null ? 'undisturbed' : `under hostile ${kind}`} over ${isTls ? 'TLS' : 'HTTP'}`;
    const undisturbed = attacked[0]?.times;
    attacked.push({ name, ...found, undisturbedMs: undisturbed ? share(undisturbed, 0.99) : null });
  }
  await pool.close();
  return attacked;
}

/** An instance as seen by the main server. */
class Heart {
  readonly sent: Sent[] = [];
  readonly #keys: KeyPair = createKeyPair();
  readonly #place: Launched;
  readonly #run: string;
  readonly #pool: Pool;
  #counter = 0;

  constructor(place: Launched, run: string, pool: Pool) {
    this.#place = place;
    this.#run = run;
    this.#pool = pool;
  }

  async hello(): Promise<void> {
    const { slot, epoch, token, instanceId } = this.#place;
    const envelope: Envelope = { method: 'POST', path: HELLO_PATH, run: this.#run, slot, epoch };
    const body = JSON.stringify({
      instanceId,
      address: addressOf(slot),
      publicKey: exportPublicKey(this.#keys.publicKey),
      bundleSha256: 'b'.repeat(64),
      clock: new Date().toISOString(),
    });
    const status = await send(
      this.#pool,
      HELLO_PATH,
      envelopeHeaders(envelope, macMessage(token, envelope, body)),
      body,
    );
    if (status !== 200) throw new Error(`a hello was answered with ${status}`);
  }

  /** Milliseconds until the answer; null when it was an error. */
  async beat(pool = this.#pool): Promise<number | null> {
    const { slot, epoch } = this.#place;
    const counter = ++this.#counter;
    const progress = {
      ...NO_PROGRESS,
      assigned: 100,
      pending: Math.max(1, 100 - counter),
      stored: counter,
      requests: counter,
    };
    const heartbeat: Heartbeat = {
      phase: 'crawling',
      clock: new Date().toISOString(),
      offered: [],
      transferred: [],
      progress,
      parts: [],
      problem: null,
      incident: null,
      robots: null,
    };
    const body = JSON.stringify(heartbeat);
    const envelope: Envelope = { method: 'POST', path: HEARTBEAT_PATH, run: this.#run, slot, epoch, counter };
    const headers = envelopeHeaders(envelope, signMessage(this.#keys.privateKey, envelope, body));
    this.sent.push({ path: HEARTBEAT_PATH, headers, body });
    const startMs = performance.now();
    return (await send(pool, HEARTBEAT_PATH, headers, body)) === 200 ? performance.now() - startMs : null;
  }
}

const addressOf = (slot: number): string => `198.18.${slot >> 8}.${slot & 255}`;

async function send(pool: Pool, path: string, headers: Record<string, string>, body: string): Promise<number> {
  const reply = await pool.request({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  await reply.body.dump();
  return reply.statusCode;
}

/** Times of the answered heartbeats, sorted. */
async function beat(fleet: readonly Heart[]): Promise<number[]> {
  const answers: Promise<number | null>[] = [];
  const startMs = performance.now();
  for (let i = 0; i < PER_SECOND * SECONDS; i++) {
    const dueMs = startMs + (i * 1_000) / PER_SECOND;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await delay(waitMs);
    answers.push(fleet[i % fleet.length]!.beat());
  }
  const times = (await Promise.all(answers)).filter((ms) => ms !== null);
  return times.sort((a, b) => a - b);
}

/** As instances do: each waits for the answer to its last heartbeat. */
async function beatInTurn(fleet: readonly Heart[], pool: Pool): Promise<{ times: number[]; lost: number }> {
  const times: number[] = [];
  let lost = 0;
  const untilMs = performance.now() + HOSTILE_SECONDS * 1_000;
  await Promise.all(
    fleet.map(async (heart) => {
      while (performance.now() < untilMs) {
        const ms = await heart.beat(pool).catch(() => null);
        if (ms === null) lost++;
        else times.push(ms);
        await delay(Math.max(0, 1_000 - (ms ?? 0)));
      }
    }),
  );
  return { times: times.sort((a, b) => a - b), lost };
}

const share = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Infinity;

async function replayAll(sent: readonly Sent[], pool: Pool, digest: () => Promise<string>) {
  const before = await digest();
  let refused = 0;
  for (let time = 0; time < TIMES; time++) {
    for (let i = 0; i < sent.length; i += 32) {
      const statuses = await Promise.all(sent.slice(i, i + 32).map((s) => send(pool, s.path, s.headers, s.body)));
      refused += statuses.filter((status) => status === 409).length;
    }
  }
  return { refused, changed: (await digest()) !== before };
}

/** Covers everything that a callback may write. */
async function digestOf(admin: Awaited<ReturnType<typeof createConnection>>): Promise<string> {
  const hash = createHash('sha256');
  for (const table of ['instances', 'chunks', 'parts', 'incidents']) {
    const [rows] = await admin.query(`select * from bench_calls.crawlfleet_${table} order by 1, 2, 3`);
    hash.update(JSON.stringify(rows));
  }
  return hash.digest('hex');
}
