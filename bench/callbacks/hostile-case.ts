/**
 * Hostile connections to a callback listener: `hostile-case.ts PORT RUN KIND CONNECTIONS [tls]`. Each comes from an
 * address of its own, sends as fast as it is read, and is opened again when it is closed. Prints a line when the first
 * is open, and ends when stdin closes.
 */
import { connect, type NetConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { HEARTBEAT_PATH } from '../../shared/wire/callbacks.ts';
import { HEADER } from '../../shared/wire/signature.ts';

const [port, run, kind, connections, tls] = process.argv.slice(2) as [string, string, string, string, string?];
/** The most that a stranger can know: the run's ID, and that slot 0 has an epoch 1. */
const forged = Object.entries({
  [HEADER.run]: run,
  [HEADER.slot]: '0',
  [HEADER.epoch]: '1',
  [HEADER.counter]: '1000000',
  [HEADER.signature]: 'A'.repeat(86),
})
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');
const post = `POST ${HEARTBEAT_PATH} HTTP/1.1\r\nhost: x\r\n${forged}`;
const KINDS: Record<string, { head: string; piece: string }> = {
  /** Bodies of one-byte chunks. */
  chunks: { head: `${post}transfer-encoding: chunked\r\n\r\n`, piece: '1\r\nx\r\n'.repeat(10_000) },
  /** Heads that never end. */
  'half-requests': { head: post, piece: '' },
  /** Heads whose bodies never come. */
  'half-bodies': { head: `${post}content-length: 1000\r\n\r\n{`, piece: '' },
  /** The beginning of a record, whose rest never comes; over TLS. */
  'half-handshakes': { head: '\x16\x03\x01\x02\x00\x01', piece: '' },
  /** Requests without waiting for their answers. */
  requests: { head: '', piece: 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2_000) },
  /** Forged heartbeats without waiting for their answers. */
  forged: { head: '', piece: `${post}content-length: 1\r\n\r\nx`.repeat(200) },
};
const { head, piece } = KINDS[kind]!;
let isBegun = false;

function attack(number: number): void {
  const options: NetConnectOpts = {
    port: Number(port),
    host: '127.0.0.1',
    localAddress: `127.9.${number >> 7}.${1 + (number & 127)}`,
  };
  const isEncrypted = tls !== undefined && kind !== 'half-handshakes';
  const socket = isEncrypted ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  const push = (): void => {
    if (piece === '') return;
    while (socket.writable && socket.write(piece));
  };
  socket.on(isEncrypted ? 'secureConnect' : 'connect', () => {
    if (!isBegun) console.log('begun');
    isBegun = true;
    socket.write(head, 'latin1');
    push();
  });
  socket
    .on('drain', push)
    .on('data', () => undefined)
    .on('error', () => undefined);
  socket.on('close', () => setImmediate(attack, number));
}
for (let number = 0; number < Number(connections); number++) attack(number);
process.stdin.resume().on('end', () => process.exit());
