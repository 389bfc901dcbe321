/** The HTTP fetcher over TLS: a trusted certificate is accepted, any other is refused. */
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { makeSelfSigned } from '../../support/self-signed.ts';
import { cleanups, fetchPage, html, page } from './fetch-stage.ts';
import { ownAddress } from './http-stub.ts';

const before = getCACertificates('default');
afterEach(() => setDefaultCACertificates(before));

/** A site with a certificate for `named`; its URL, the certificate and the requests it received. */
async function serveTls(named?: string) {
  const address = ownAddress();
  const { key, cert } = makeSelfSigned(named ?? address);
  const asked: string[] = [];
  const server = createServer({ key, cert }, (request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(200, html).end('<h1>safe</h1>');
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `https://${address}:${(server.address() as AddressInfo).port}/p/1`, cert, asked };
}

describe('the HTTP fetcher over TLS', () => {
  it('reads the page of a site whose certificate is trusted, and reports start and first byte once', async () => {
    const { url, cert } = await serveTls();
    setDefaultCACertificates([...before, cert]);
    const events: string[] = [];
    const hooks = { onStart: () => void events.push('start'), onFirstByte: () => void events.push('first byte') };
    expect(await fetchPage(url, { hooks })).toMatchObject(page('<h1>safe</h1>'));
    expect(events).toEqual(['start', 'first byte']);
  });

  it('sends no request when the certificate is not trusted', async () => {
    const { url, asked } = await serveTls();
    expect(await fetchPage(url)).toMatchObject({
      kind: 'failed',
      reason: 'network',
      detail: 'the certificate of the server is self-signed: DEPTH_ZERO_SELF_SIGNED_CERT',
    });
    expect(asked).toEqual([]);
  });

  it('sends no request when the certificate is for another host', async () => {
    const { url, cert, asked } = await serveTls('other.example');
    setDefaultCACertificates([...before, cert]);
    expect(await fetchPage(url)).toMatchObject({
      kind: 'failed',
      reason: 'network',
      detail: expect.stringMatching(/^the certificate of the server is for another host: ./) as string,
    });
    expect(asked).toEqual([]);
  });

  it('says that a server speaks only HTTP/2', async () => {
    const address = ownAddress();
    const server = createSecureServer(makeSelfSigned(address));
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    expect(await fetchPage(`https://${address}:${port}/`)).toMatchObject({
      reason: 'network',
      detail: expect.stringMatching(/^the server speaks only HTTP\/2/) as string,
    });
  });
});
