/** Odd replies and kept connections, through the real HTTP parser. */
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { fetchRobots } from '../../../shared/adapters/robots-fetcher.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { cleanups, createFetcher, noHooks, page } from './fetch-stage.ts';
import { ownAddress } from './http-stub.ts';

const { signal } = new AbortController();
const BODY = '<h1>Tea</h1>';
const LENGTH = `Content-Length: ${BODY.length}\r\n`;
const reply = (fields: string, status = 'HTTP/1.1 200 OK'): string => `${status}\r\n${fields}\r\n${BODY}`;

/** Answers each request with what `answer` returns for its path; null: closes the connection. */
async function serveText(answer: (path: string, nthOfConnection: number) => string | null) {
  const address = ownAddress();
  let connections = 0;
  const paths: string[] = [];
  const server = net.createServer((socket) => {
    connections++;
    let requests = 0;
    socket.on('error', () => undefined);
    // A request of ours is one packet.
    socket.on('data', (request) => {
      const path = request.toString().split(' ')[1]!;
      paths.push(path);
      const text = answer(path, ++requests);
      if (text === null) socket.destroy();
      else socket.write(text, 'latin1');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as net.AddressInfo;
  return { url: `http://${address}:${port}`, paths, connections: () => connections };
}

describe('an odd reply', () => {
  it.each<[what: string, text: string, isKept: boolean]>([
    ['an ordinary one', reply(LENGTH), true],
    ['a large head', reply(`X-Policy: ${'a'.repeat(200_000)}\r\n${LENGTH}`), true],
    ['thousands of lines', reply('X-A: b\r\n'.repeat(5_000) + LENGTH), true],
    ['a line that is no header', reply(`X Powered By: PHP\r\nnothing\r\n${LENGTH}`), true],
    ['hints before it', `HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n${reply(LENGTH)}`, true],
    ['LF alone', reply(LENGTH).replaceAll('\r', ''), true],
    ['odd chunks', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc ;x\n${BODY}\n0\nA B: c\n\n`, true],
    ['equal lengths', reply(LENGTH + LENGTH), false],
    [
      'a length beside chunks',
      `HTTP/1.1 200 OK\r\n${LENGTH}Transfer-Encoding: chunked\r\n\r\nc\r\n${BODY}\r\n0\r\n\r\n`,
      false,
    ],
  ])('is read, and its connection kept unless its framing is odd: %s', async (_what, text, isKept) => {
    const shop = await serveText(() => text);
    const fetcher = createFetcher(shop.url, {});
    for (const path of ['/1', '/2'])
      expect(await fetcher.fetch(shop.url + path, noHooks, signal)).toMatchObject(page(BODY));
    expect(shop.paths).toEqual(['/1', '/2']);
    expect(shop.connections()).toBe(isKept ? 1 : 2);
  });

  it('is a failure in words where browsers refuse it', async () => {
    const shop = await serveText(() => reply(`${LENGTH}Content-Length: 3\r\n`));
    expect(await createFetcher(shop.url, {}).fetch(`${shop.url}/1`, noHooks, signal)).toMatchObject({
      kind: 'failed',
      reason: 'network',
      detail: 'the reply has Content-Lengths that differ: 12 and 3',
    });
  });

  it('gives the rules of robots.txt, too', async () => {
    const rules = 'User-agent: *\nDisallow: /private\n';
    const shop = await serveText((path) =>
      path === '/robots.txt'
        ? 'HTTP/1.1 302 Found\r\nLocation: /r.txt\r\nLocation: /r.txt\r\nContent-Length: 0\r\n\r\n'
        : `HTTP/1.1 200 OK\r\nX Y: z\r\nContent-Length: ${rules.length}\r\n\r\n${rules}`,
    );
    expect(await readRobots(shop.url)).toMatchObject({ access: 'rules', rules: [{ pattern: '/private' }] });
  });
});

function readRobots(origin: string) {
  return fetchRobots({
    origin,
    userAgent: 'testbot/1.0',
    timeoutMs: 5_000,
    clock: systemClock,
    allowPrivate: false,
    productUrl: `${origin}/{id}`,
  });
}

describe('a connection that the server closes when the next request arrives', () => {
  it('leaves the request unread, once: the next connection has served nothing yet', async () => {
    const shop = await serveText((path, nth) => (path === '/1' && nth === 1 ? reply(LENGTH) : null));
    const fetcher = createFetcher(shop.url, {});
    expect(await fetcher.fetch(`${shop.url}/1`, noHooks, signal)).toMatchObject(page(BODY));
    const failed = { kind: 'failed', reason: 'network', reply: null };
    expect(await fetcher.fetch(`${shop.url}/2`, noHooks, signal)).toMatchObject({ ...failed, unread: true });
    const second = await fetcher.fetch(`${shop.url}/2`, noHooks, signal);
    expect(second).toMatchObject(failed);
    expect(second).not.toHaveProperty('unread');
    expect(shop.connections()).toBe(2);
  });

  it('has not left it unread once a byte of the reply has come', async () => {
    const shop = await serveText((path) => (path === '/1' ? reply(LENGTH) : 'HTTP/1.1 200 OK\r\nContent-Le'));
    const fetcher = createFetcher(shop.url, { timeoutMs: 300 });
    await fetcher.fetch(`${shop.url}/1`, noHooks, signal);
    expect(await fetcher.fetch(`${shop.url}/2`, noHooks, signal)).not.toHaveProperty('unread');
  });

  it('costs robots.txt nothing', async () => {
    const shop = await serveText((path, nth) =>
      nth > 1
        ? null
        : path === '/robots.txt'
          ? 'HTTP/1.1 302 Found\r\nLocation: /r.txt\r\nContent-Length: 0\r\n\r\n'
          : 'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\nUser-agent: *\nDisallow: /',
    );
    expect(await readRobots(shop.url)).toMatchObject({ access: 'rules' });
    expect(shop.paths).toEqual(['/robots.txt', '/r.txt', '/r.txt']);
  });
});
