/** The fetcher against real HTTP servers: requests by POST. */
import type http from 'node:http';
import { describe, expect, it } from 'vitest';
import type { PageAnswer } from '../../../crawl-api/fetch/page-result.ts';
import type { PostBody } from '../../../shared/adapters/requests/page-requests.ts';
import { cleanups, createFetcher, html, noHooks, page, serveRaw } from './fetch-stage.ts';
import { startStub } from './http-stub.ts';

const JSON_BODY: PostBody = { body: '{"id":"茶 \\"1\\""}', contentType: 'application/json' };

interface Sent {
  method: string | undefined;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Sends these, one after the other over one fetcher; undefined is a GET. */
async function send(
  ...posts: (PostBody | undefined)[]
): Promise<{ sent: Sent[]; answers: PageAnswer[]; ports: Set<unknown> }> {
  const sent: Sent[] = [];
  const ports = new Set<unknown>();
  const shop = await startStub(({ method, headers, socket }, body, response) => {
    sent.push({ method, headers, body: body.toString('utf8') });
    ports.add(socket.remotePort);
    response.writeHead(200, html).end('<h1>A</h1>');
  });
  cleanups.push(shop.close);
  const fetcher = createFetcher(shop.url, {});
  const answers: PageAnswer[] = [];
  for (const post of posts)
    answers.push(await fetcher.fetch(`${shop.url}/api`, noHooks, new AbortController().signal, { post }));
  return { sent, answers, ports };
}

describe('a POST', () => {
  it('sends its body as UTF-8 with its length and type, and is unconditional', async () => {
    const { sent, answers } = await send(JSON_BODY);
    expect(answers).toMatchObject([page('<h1>A</h1>')]);
    expect(sent).toMatchObject([{ method: 'POST', body: JSON_BODY.body }]);
    expect(sent[0]!.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(JSON_BODY.body)),
      accept: expect.stringMatching(/^application\/json,/),
    });
    for (const name of ['if-none-match', 'if-modified-since', 'transfer-encoding', 'origin', 'referer', 'expect'])
      expect(sent[0]!.headers).not.toHaveProperty(name);
  });

  it('without a body says that it has none', async () => {
    const { sent } = await send({ body: '' });
    expect(sent).toMatchObject([{ method: 'POST', body: '', headers: { 'content-length': '0' } }]);
    expect(sent[0]!.headers).not.toHaveProperty('content-type');
  });

  it('and a GET after it share a connection, and the GET is as ever', async () => {
    const { sent, ports } = await send(JSON_BODY, undefined, JSON_BODY);
    expect(sent.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST']);
    expect(ports.size).toBe(1);
    expect(sent[1]!.headers.accept).toMatch(/^text\/html,/);
    expect(sent[1]!.headers).not.toHaveProperty('content-type');
    expect(sent[1]!.headers).not.toHaveProperty('content-length');
  });

  it('has been left unread only where the connection had served a reply before', async () => {
    const shop = await serveRaw((socket) => {
      socket.once('data', () => socket.destroy());
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nok');
    });
    const fetcher = createFetcher(shop.url, {});
    const { signal } = new AbortController();
    const fetch = () => fetcher.fetch(`${shop.url}api`, noHooks, signal, { post: JSON_BODY });
    expect(await fetch()).toMatchObject({ kind: 'page' });
    expect(await fetch()).toMatchObject({ kind: 'failed', reason: 'network', unread: true });
    const closing = await serveRaw((socket) => socket.destroy());
    const first = await createFetcher(closing.url, {}).fetch(`${closing.url}api`, noHooks, signal, { post: JSON_BODY });
    expect(first).toMatchObject({ kind: 'failed', reason: 'network' });
    // Its head and its body are two writes, and one request.
    expect(first).not.toHaveProperty('unread');
  });
});
