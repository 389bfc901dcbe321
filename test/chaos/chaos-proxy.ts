/**
 * A TCP link with faults on demand: it passes on bytes between two processes on this machine until a test makes it cut,
 * refuse, swallow, delay or throttle them. It knows no protocol, so it serves MySQL, HTTP and S3 alike.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface ChaosProxy {
  /** Listens on 127.0.0.1. */
  port: number;
  /** Target of new connections, `address:port`; null: they are reset. */
  setTarget(target: string | null): void;
  /** Resets every open connection (RST, not FIN); new ones pass. */
  cut(): void;
  /** Resets every new connection; open ones stay. */
  refuse(): void;
  /** Accepts connections, and passes nothing in either direction until `heal`; then the data arrives, as with TCP. */
  blackHole(): void;
  /** Delays each piece of data. */
  delay(ms: number): void;
  /** Limit in bytes per second, for each direction of each connection. */
  limit(bytesPerSecond: number): void;
  /** Ends the direction towards the client of every open connection (FIN) and leaves the other one open. */
  halfClose(): void;
  /** Ends all faults. Connections that were reset stay reset. */
  heal(): void;
  /** Resets what is open and stops listening. */
  close(): Promise<void>;
}

/** What happens to a piece of data on its way. */
interface Weather {
  refusing: boolean;
  /** Resolves when bytes pass again; null while they do. */
  hole: { until: Promise<void>; end: () => void } | null;
  delayMs: number;
  bytesPerSecond: number;
}

interface Pair {
  client: Socket;
  server: Socket | null;
  /** Nothing more goes to the client, although the server may send more. */
  clientEnded: boolean;
}

/** @param target see `setTarget` */
export async function startChaosProxy(target: string | null = null): Promise<ChaosProxy> {
  const weather: Weather = { refusing: false, hole: null, delayMs: 0, bytesPerSecond: Infinity };
  const pairs = new Set<Pair>();
  const closing = new AbortController();
  let goal = target;

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (weather.refusing || goal === null) {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const pair: Pair = { client, server: null, clientEnded: false };
    pairs.add(pair);
    void carry(pair, goal, weather, closing.signal).finally(() => pairs.delete(pair));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');

  const heal = (): void => {
    weather.hole?.end();
    Object.assign(weather, { refusing: false, hole: null, delayMs: 0, bytesPerSecond: Infinity });
  };
  return {
    port: (listener.address() as AddressInfo).port,
    setTarget(to) {
      goal = to;
    },
    cut: () => pairs.forEach(reset),
    refuse() {
      weather.refusing = true;
    },
    blackHole() {
      if (weather.hole) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      weather.hole = { until: promise, end: resolve };
    },
    delay(ms) {
      weather.delayMs = ms;
    },
    limit(bytesPerSecond) {
      weather.bytesPerSecond = bytesPerSecond;
    },
    halfClose() {
      for (const pair of pairs) {
        pair.clientEnded = true;
        pair.client.end();
      }
    },
    heal,
    async close() {
      closing.abort();
      heal();
      pairs.forEach(reset);
      const closed = once(listener, 'close');
      listener.close();
      await closed;
    },
  };
}

/** One connection, from its acceptance to its end in both directions. */
async function carry(pair: Pair, goal: string, weather: Weather, closing: AbortSignal): Promise<void> {
  pair.client.on('error', () => reset(pair));
  // In a black hole the far end does not answer either: the connection is made when the hole ends.
  await weather.hole?.until;
  if (pair.client.destroyed || closing.aborted) return reset(pair);
  const { hostname: host, port } = new URL(`tcp://${goal}`);
  const server = connect({ port: Number(port), host, allowHalfOpen: true, noDelay: true });
  pair.server = server;
  server.on('error', () => reset(pair));
  const ways = [
    pump({ from: pair.client, to: server, isEnded: () => false }, weather, closing),
    pump({ from: server, to: pair.client, isEnded: () => pair.clientEnded }, weather, closing),
  ];
  // An error in one direction resets both; an orderly end does not.
  await Promise.all(ways).catch(() => reset(pair));
}

async function pump(
  { from, to, isEnded }: { from: Socket; to: Socket; isEnded: () => boolean },
  weather: Weather,
  closing: AbortSignal,
): Promise<void> {
  for await (const chunk of from as AsyncIterable<Buffer>) {
    await passage(chunk.length, weather, closing);
    if (isEnded()) continue;
    if (!to.write(chunk)) await Promise.race([once(to, 'drain'), once(to, 'close')]);
  }
  await weather.hole?.until;
  to.end();
}

async function passage(bytes: number, weather: Weather, closing: AbortSignal): Promise<void> {
  await weather.hole?.until;
  const waitMs = weather.delayMs + (bytes / weather.bytesPerSecond) * 1_000;
  if (waitMs > 0) await delay(waitMs, undefined, { signal: closing });
  // A hole may have opened during the delay.
  await weather.hole?.until;
}

function reset({ client, server }: Pair): void {
  for (const socket of [client, server]) {
    if (socket && !socket.destroyed) socket.resetAndDestroy();
  }
}
