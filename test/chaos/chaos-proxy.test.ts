/** The chaos proxy itself, between a plain client and an echo server. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { type ChaosProxy, startChaosProxy } from './chaos-proxy.ts';

describe('the chaos proxy', () => {
  let server: Server;
  let proxy: ChaosProxy;
  let sockets: Socket[];

  beforeEach(async () => {
    sockets = [];
    server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.pipe(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await startChaosProxy(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await proxy.close();
    server.close();
  });

  interface Client {
    socket: Socket;
    text(): string;
    end(): string | null;
    /** Sends the text and waits for the echo. */
    echo(text: string): Promise<void>;
  }

  async function open(): Promise<Client> {
    const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
    sockets.push(socket);
    let text = '';
    let end: string | null = null;
    socket.setEncoding('utf8').on('data', (more: string) => (text += more));
    socket.on('end', () => (end ??= 'FIN'));
    socket.on('error', (error: NodeJS.ErrnoException) => (end ??= error.code ?? 'error'));
    // Refused connections may be reset before the client sees them connected.
    await once(socket, 'connect').catch(() => undefined);
    return {
      socket,
      text: () => text,
      end: () => end,
      async echo(said) {
        const before = text.length;
        socket.write(said);
        await waitFor(() => text.slice(before).includes(said), { what: `the echo of ${said}`, timeoutMs: 5_000 });
      },
    };
  }
  const ended = (client: Client) => waitFor(() => client.end(), { what: 'the connection to end', timeoutMs: 5_000 });

  it('resets open connections, and accepts new ones', async () => {
    const client = await open();
    await client.echo('hello');
    proxy.cut();
    expect(await ended(client)).toBe('ECONNRESET');
    await (await open()).echo('again');
  });

  it('refuses new connections and keeps open ones', async () => {
    const client = await open();
    await client.echo('hello');
    proxy.refuse();
    expect(await ended(await open())).toBe('ECONNRESET');
    await client.echo('still here');
    proxy.heal();
    await (await open()).echo('again');
  });

  it('holds all data in a black hole, and delivers it when the hole ends', async () => {
    const old = await open();
    await old.echo('hello');
    proxy.blackHole();
    old.socket.write('old');
    const young = await open();
    young.socket.write('young');
    // Observable behaviour only: data sent into the hole arrives at both ends, and only after the heal.
    expect([old.text(), young.text(), sockets.length]).toEqual(['hello', '', 3]);
    proxy.heal();
    await waitFor(() => old.text() === 'helloold' && young.text() === 'young', { what: 'what was held back' });
  });

  it('ends one direction and leaves the other one open', async () => {
    const client = await open();
    await client.echo('hello');
    proxy.halfClose();
    expect(await ended(client)).toBe('FIN');
    const [far] = sockets.filter((socket) => socket !== client.socket);
    let heard = '';
    far!.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    client.socket.write('can you hear me');
    await waitFor(() => heard === 'can you hear me', { what: 'the other direction' });
  });

  it('delays and limits the rate', async () => {
    const client = await open();
    proxy.delay(60);
    const startMs = performance.now();
    await client.echo('there and back');
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(119);
    proxy.heal();
    proxy.limit(100_000);
    const chokedMs = performance.now();
    await client.echo('x'.repeat(10_000));
    expect(performance.now() - chokedMs).toBeGreaterThanOrEqual(100);
  });

  it('resets every connection while it has no target', async () => {
    proxy.setTarget(null);
    expect(await ended(await open())).toBe('ECONNRESET');
  });
});
