/** Where a resumed run listens, and the error when another process has its port. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import express from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callbackListenOf, explainTakenPort } from '../../../../orchestrator/core/run/resume.ts';
import { listen } from '../../../../orchestrator/core/server/listen.ts';
import { findPortHolder } from '../../../../orchestrator/core/server/port-holder.ts';

let holder: Server;
let port: number;
beforeEach(async () => {
  holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  port = (holder.address() as AddressInfo).port;
});
afterEach(() => void holder.close());

describe('the callback address of a resumed run', () => {
  const called = (callbackListen: string, callbackUrl: string) => ({ callbackListen, callbackUrl });

  it.each([
    ['the configuration has no address', null, called('127.0.0.1:8700', 'http://127.0.0.1:8700'), '127.0.0.1:8700'],
    ['any port', '0.0.0.0:0', called('127.0.0.1:8700', 'http://127.0.0.1:8700'), '127.0.0.1:8700'],
    [
      'the configuration belongs to another crawl',
      '127.0.0.1:9900',
      called('0.0.0.0:8700', 'http://10.0.0.5:8700'),
      '0.0.0.0:8700',
    ],
    ['without a port in the URL', '0.0.0.0:9900', called('0.0.0.0:80', 'http://main.example'), '0.0.0.0:80'],
    [
      'a proxy in front forwards the calls',
      '127.0.0.1:9900',
      called('127.0.0.1:8700', 'http://10.0.0.5:7000'),
      '127.0.0.1:9900',
    ],
    [
      'the address belongs to another machine',
      '127.0.0.1:9900',
      called('203.0.113.7:8700', 'http://203.0.113.7:8700'),
      '127.0.0.1:9900',
    ],
  ])('when %s', async (_when, configured, server, expected) => {
    expect(await callbackListenOf(configured, server)).toBe(expected);
  });
});

describe.skipIf(process.platform !== 'linux')('a port that is taken', () => {
  it('is reported with the process that has it; a resumed run also gets the way to free it', async () => {
    expect(findPortHolder(port)).toMatchObject({ pid: process.pid });
    const address = `127.0.0.1:${port}`;
    const error = await listen(express(), address, 'server.listen').catch((e: unknown) => e);
    expect(error).toMatchObject({
      code: 'port-taken',
      message: expect.stringContaining(`is used by process ${process.pid} (`),
      hint: 'Choose another with server.listen.',
    });
    expect(explainTakenPort(error, 'run-1', address)).toMatchObject({
      code: 'port-taken',
      hint: expect.stringContaining(`kill -9 ${process.pid}; then: orchestrator resume run-1`),
    });
    const other = new Error('another one');
    expect(explainTakenPort(other, 'run-1', address)).toBe(other);
  });

  it('has no holder when no process uses it', () => {
    // Outside the range that port 0 takes from: another process may have the port of a server that has just closed.
    const ports = Array.from({ length: 20 }, (_, i) => 20_000 + i);
    expect(ports.map((unused) => findPortHolder(unused))).toContain(null);
  });
});
