/** The proxy alone: who may use it, when, and for what. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { type FilterProxy, startFilterProxy } from '../../../crawl-api/fetch/browser/filter-proxy.ts';

let site: Server;
let received: string[];
let from: string[];
let proxy: FilterProxy;
let events: string[];
let authority: string;

const first = (host: string, path = '/') => ({ authority: host, path });
const hooks = { onStart: () => void events.push('start'), onFirstByte: () => void events.push('first byte') };

beforeEach(async () => {
  received = [];
  from = [];
  events = [];
  const sockets = new Set<Socket>();
  site = createServer((socket) => {
    sockets.add(socket);
    from.push(socket.remoteAddress ?? '');
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received.push(chunk.toString('latin1'));
      events.push('arrived');
      const policy = chunk.includes('/large-head') ? `x-policy: ${'a'.repeat(200_000)}\r\n` : '';
      socket.write(`HTTP/1.1 200 OK\r\n${policy}content-length: 2\r\n\r\nhi`);
    });
  });
  site.on('close', () => {});
  site.listen(0, '127.0.7.20');
  await once(site, 'listening');
  authority = `127.0.7.20:${(site.address() as AddressInfo).port}`;
  proxy = await startFilterProxy({
    localAddress: '127.0.7.21',
    guard: createAddressGuard({ productUrl: `http://${authority}/{id}`, allowPrivate: false, forbidden: [] }),
    timeoutMs: 5_000,
  });
});
afterEach(async () => {
  await proxy.close();
  site.close();
});

/** Sends raw text to the proxy and reads until the proxy closes, or until `until` matches. */
async function talk(message: string, until: RegExp): Promise<string> {
  const { hostname, port } = new URL(proxy.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.write(message);
  let all = '';
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    all += chunk.toString('latin1');
    if (until.test(all)) break;
  }
  socket.destroy();
  return all;
}

function credential(): string {
  return `proxy-authorization: Basic ${Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64')}\r\n`;
}

const request = (target: string, headers = credential()): string =>
  `GET ${target} HTTP/1.1\r\nhost: x\r\n${headers}connection: close\r\n\r\n`;
const tunnel = (target: string, headers = credential()): string =>
  `CONNECT ${target} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`;

describe('the filter proxy', () => {
  it('forwards a request from the local address, without the proxy headers', async () => {
    const report = proxy.gate.open(first(authority, '/a?b=c'), hooks, 1_000);
    expect(await talk(request(`http://${authority}/a?b=c`), /hi$/)).toMatch(/^HTTP\/1\.1 200 [^]*hi$/);
    expect(received[0]).toMatch(/^GET \/a\?b=c HTTP\/1\.1\r\nhost: x\r\n/);
    expect(received[0]).not.toMatch(/proxy-/i);
    expect(from).toEqual(['127.0.7.21']);
    expect(events).toEqual(['start', 'arrived', 'first byte']);
    expect(report).toMatchObject({ requests: 1, receivedBytes: 2 });
  });

  it('forwards a head as large as a browser accepts', async () => {
    proxy.gate.open(first(authority, '/large-head'), hooks, 1_000);
    expect(await talk(request(`http://${authority}/large-head`), /hi$/)).toMatch(/x-policy: a{200000}/);
  });

  it('opens a tunnel, and takes its first data for the start', async () => {
    proxy.gate.open(first(authority), hooks, 1_000);
    const answer = await talk(tunnel(authority) + 'GET / HTTP/1.1\r\n\r\n', /hi$/);
    expect(answer).toMatch(/^HTTP\/1\.1 200 Connection established\r\n\r\nHTTP\/1\.1 200 OK/);
    expect(events).toEqual(['start', 'arrived', 'first byte']);
    expect(from).toEqual(['127.0.7.21']);
  });

  it.each([
    ['without a credential', ''],
    ['with a wrong one', 'proxy-authorization: Basic YnJvd3Nlcjp4\r\n'],
  ])('refuses a client %s', async (_, headers) => {
    proxy.gate.open(first(authority), hooks, 1_000);
    expect(await talk(request(`http://${authority}/`, headers), /missing$/)).toMatch(/^HTTP\/1\.1 407 /);
    expect(await talk(tunnel(authority, headers), /missing$/)).toMatch(/^HTTP\/1\.1 407 /);
    expect(received).toEqual([]);
  });

  it('forwards nothing while the gate is shut, nor before the page itself', async () => {
    expect(await talk(request(`http://${authority}/`), /fetched$/)).toMatch(/^HTTP\/1\.1 503 /);
    expect(await talk(tunnel(authority), /fetched$/)).toMatch(/^HTTP\/1\.1 503 /);
    proxy.gate.open(first('127.0.7.20:1'), hooks, 1_000);
    expect(await talk(request(`http://${authority}/`), /fetched$/)).toMatch(/^HTTP\/1\.1 503 /);
    proxy.gate.open(first(authority, '/page'), hooks, 1_000);
    expect(await talk(request(`http://${authority}/other`), /fetched$/)).toMatch(/^HTTP\/1\.1 503 /);
    expect(events).toEqual([]);
    expect(await talk(request(`http://${authority}/page`), /hi$/)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await talk(request(`http://${authority}/other`), /hi$/)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('accepts a first request over TLS when the browser upgrades to it on its own', async () => {
    const [host] = authority.split(':');
    proxy.gate.open(first(`${host}:80`), hooks, 1_000);
    expect(await talk(`${tunnel(authority)}GET / HTTP/1.1\r\n\r\n`, /hi$/)).toMatch(/^HTTP\/1\.1 200 /);
    expect(events).toEqual(['start', 'arrived', 'first byte']);
  });

  it('blocks requests of the browser itself', async () => {
    const report = proxy.gate.open(first('connectivitycheck.gstatic.com:80'), hooks, 1_000);
    expect(await talk(request('http://connectivitycheck.gstatic.com/generate_204'), /page$/)).toMatch(
      /^HTTP\/1\.1 403 /,
    );
    expect(report).toMatchObject({ requests: 0 });
  });

  it.each(['127.0.7.22:80', '169.254.169.254:80', '[::1]:80', '10.0.0.1:443'])('refuses %s', async (target) => {
    const bare = target.replace(/[[\]]/g, '');
    const report = proxy.gate.open(first(bare), hooks, 1_000);
    expect(await talk(request(`http://${target}/`), /not a public address$/)).toMatch(/^HTTP\/1\.1 403 /);
    expect(await talk(tunnel(target), /not a public address$/)).toMatch(/^HTTP\/1\.1 403 /);
    expect(events).toEqual([]);
    expect(report.faults.get(bare)).toMatch(/not a public address/);
  });

  it('refuses a name that resolves to loopback', async () => {
    proxy.gate.open(first('localhost:80'), hooks, 1_000);
    expect(await talk(tunnel('localhost:80'), /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 403 /);
    expect(events).toEqual([]);
  });

  it('does not send what onStart forbids', async () => {
    const stop = () => {
      throw new Error('not yet');
    };
    const report = proxy.gate.open(first(authority), { onStart: stop, onFirstByte() {} }, 1_000);
    expect(await talk(request(`http://${authority}/`), /never/)).toBe('');
    expect(await talk(`${tunnel(authority)}GET / HTTP/1.1\r\n\r\n`, /never/)).not.toMatch(/hi/);
    expect(received).toEqual([]);
    expect(report.startError).toMatchObject({ thrown: { message: 'not yet' } });
  });

  it('cuts off more bytes than one product may receive', async () => {
    const report = proxy.gate.open(first(authority), hooks, 1);
    expect(await talk(request(`http://${authority}/`), /never/)).not.toMatch(/hi/);
    expect(report.faults.get(authority)).toMatch(/too many bytes/);
  });

  it('refuses a request that is not for a proxy', async () => {
    expect(await talk(request('/'), /proxy$/)).toMatch(/^HTTP\/1\.1 400 /);
    const { hostname, port } = new URL(proxy.url);
    const socket = connect(Number(port), hostname);
    socket.end(`GET /${'x'.repeat(100_000)} HTTP/1.1\r\n\r\n`);
    socket.on('error', () => {});
    expect(await text(socket).catch(() => '')).not.toMatch(/200/);
  });
});
