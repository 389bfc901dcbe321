/** Connects the browser to a host and passes bytes both ways: TLS and WebSockets. */
import type { Socket } from 'node:net';
import { AddressRefusedError } from '../../../shared/adapters/http/guarded-lookup.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { connectGuarded, type ConnectOptions } from './guarded-connect.ts';
import type { ProxyGate } from './proxy-gate.ts';

const IDLE_MS = 120_000;

export interface Tunnel {
  client: Socket;
  /** Bytes that the client has already sent. */
  head: Buffer;
  host: string;
  port: number;
  gate: ProxyGate;
  options: ConnectOptions;
}

export function openTunnel({ client, head, host, port, gate, options }: Tunnel): void {
  const authority = `${host}:${port}`;
  const site = connectGuarded(host, port, options);
  const sent = new DataDetector();
  const received = new DataDetector();
  let connected = false;
  gate.countRequest();

  const end = (): void => {
    client.destroy();
    site.destroy();
  };
  client.setNoDelay(true);
  client.setTimeout(IDLE_MS, end);
  client.once('error', end);
  client.once('close', end);
  site.once('close', () => {
    client.destroy();
  });
  site.once('error', (error) => {
    gate.fault(authority, describeError(error));
    if (!connected) client.end(`HTTP/1.1 ${error instanceof AddressRefusedError ? 403 : 502} Refused\r\n\r\n`);
    else end();
  });
  site.once('connect', () => {
    connected = true;
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) pass(head);
    client.on('data', pass);
    client.once('end', () => site.end());
  });

  /**
   * Passes on what the browser sends. Only handshakes go out while the gate is shut; data after that are the page's
   * request.
   */
  const pass = (chunk: Buffer): void => {
    const hasData = sent.scan(chunk);
    if (hasData && !gate.start()) return end();
    if (!site.write(chunk)) {
      client.pause();
      site.once('drain', () => client.resume());
    }
  };
  site.on('data', (chunk) => {
    const hasData = received.scan(chunk);
    if (hasData && !gate.receive(chunk.length)) return end();
    if (!client.write(chunk)) {
      site.pause();
      client.once('drain', () => site.resume());
    }
  });
  site.once('end', () => client.end());
}

const HANDSHAKE = 0x16;
const APPLICATION_DATA = 0x17;
const HEADER_BYTES = 5;

/**
 * Detects when one direction of a connection begins to carry data: a TLS tunnel first carries its handshake. In TLS 1.3
 * the end of the client's handshake looks like data too, but it is sent together with the first request, so the moment
 * is exact to within one write.
 */
class DataDetector {
  #isTls: boolean | null = null;
  /** Bytes left of the current record. */
  #bytesLeft = 0;
  readonly #header: number[] = [];

  /**
   * True when part of the chunk belongs to a data record that begins in it, or when the connection is not TLS at all.
   */
  scan(chunk: Uint8Array): boolean {
    if (chunk.length === 0) return false;
    this.#isTls ??= chunk[0] === HANDSHAKE;
    if (!this.#isTls) return true;
    let found = false;
    for (let at = 0; at < chunk.length;) {
      if (this.#bytesLeft > 0) {
        const skipped = Math.min(this.#bytesLeft, chunk.length - at);
        this.#bytesLeft -= skipped;
        at += skipped;
        continue;
      }
      this.#header.push(chunk[at++]!);
      if (this.#header.length < HEADER_BYTES) continue;
      if (this.#header[0] === APPLICATION_DATA) found = true;
      this.#bytesLeft = this.#header[3]! * 256 + this.#header[4]!;
      this.#header.length = 0;
    }
    return found;
  }
}
