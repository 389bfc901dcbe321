import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { HttpOfferSender, isFromBeforeConnection } from '../../../../orchestrator/core/cloud/http-offer-sender.ts';
import { makeSelfSigned } from '../../../support/self-signed.ts';
import { createKeyPair, exportPrivateKey } from '../../../../shared/wire/signature.ts';

const RUN = { id: 'run', privateKey: exportPrivateKey(createKeyPair().privateKey) };
const OFFER = { chunk: '1-1', share: 9, products: [{ n: 1, id: 'p' }] };

describe('HttpOfferSender', () => {
  const sender = new HttpOfferSender();
  afterAll(() => sender.close());

  it.each([
    ['nothing listens', 'http://127.0.0.1:1'],
    ['the name is not in DNS (yet)', 'http://balancer.invalid'],
  ])('reports that nothing was delivered when %s', async (_, url) => {
    expect(await sender.send(url, RUN, OFFER)).toMatchObject({ kind: 'unreachable' });
  });

  it('reports an unknown delivery when an established connection is cut', async () => {
    const server = createServer((request) => request.socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      expect(await new HttpOfferSender().send(url, RUN, OFFER)).toMatchObject({ kind: 'unknown' });
    } finally {
      server.close();
    }
  });
});

describe('HttpOfferSender to an HTTPS listener', () => {
  it('expects the name of the certificate, whatever the name of the load balancer', async () => {
    const { key, cert } = makeSelfSigned('crawl.example.com');
    const asked: (string | undefined)[] = [];
    const server = createSecureServer({ key, cert }, (request, response) => {
      asked.push((request.socket as TLSSocket).servername || undefined);
      response.writeHead(503).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const [named, other, nameless] = [
      new HttpOfferSender('crawl.example.com'),
      new HttpOfferSender('other.example.com'),
      new HttpOfferSender(),
    ];
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, cert]);
    try {
      expect(await named.send(url, RUN, OFFER)).toEqual({ kind: 'not-ready', message: 'HTTP 503' });
      expect(asked).toEqual(['crawl.example.com']);
      for (const sender of [other, nameless])
        expect(await sender.send(url, RUN, OFFER)).toMatchObject({
          kind: 'unreachable',
          message: expect.stringMatching(/altnames|IP/) as string,
        });
    } finally {
      setDefaultCACertificates(trusted);
      for (const sender of [named, other, nameless]) await sender.close();
      server.close();
    }
  });
});

describe('isFromBeforeConnection', () => {
  const error = (fields: object): Error => Object.assign(new Error('x'), fields);

  it.each<[string, object, boolean]>([
    ['a refused connection', { code: 'ECONNREFUSED' }, true],
    ['a name without address', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }, true],
    ['a resolver that does not answer', { code: 'EAI_AGAIN' }, true],
    ['a security group that drops', { code: 'UND_ERR_CONNECT_TIMEOUT' }, true],
    ['no route to the host', { code: 'EHOSTUNREACH' }, true],
    ['no route to the network', { code: 'ENETUNREACH' }, true],
    ['a connect that times out', { code: 'ETIMEDOUT', syscall: 'connect' }, true],
    ['every address of a name', { errors: [error({ code: 'ECONNREFUSED' }), error({ code: 'ENETUNREACH' })] }, true],
    ['a timeout after the connection', { code: 'ETIMEDOUT', syscall: 'read' }, false],
    ['a reset', { code: 'ECONNRESET' }, false],
    ['no response head in time', { code: 'UND_ERR_HEADERS_TIMEOUT' }, false],
  ])('judges %s', (_, fields, expected) => {
    expect(isFromBeforeConnection(error(fields))).toBe(expected);
  });
});
