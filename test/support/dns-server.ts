/** A small name server, usually on a free port of 127.0.0.1: it answers by a map, and records what it is asked. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export type DnsAnswer =
  | { a?: readonly string[]; aaaa?: readonly string[]; /** Seconds. */ ttl?: number }
  /** The name does not exist; also of every name that the map lacks. */
  | 'NXDOMAIN'
  | 'SERVFAIL'
  /** No answer at all. */
  | 'silent';

interface Question {
  name: string;
  type: 'A' | 'AAAA';
}

export interface DnsServer {
  /** `127.0.0.1:port`, as `setServers` takes it. */
  address: string;
  answers: Map<string, DnsAnswer>;
  /** Every question in order of arrival, repetitions included. */
  asked: Question[];
  /** The names asked for, each once, in the order of their first arrival. */
  names(): string[];
  close(): Promise<void>;
}

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };
const HEAD_BYTES = 12;
const RCODES = { SERVFAIL: 2, NXDOMAIN: 3 } as const;

/** @param at rejects where this user may not listen there */
export async function startDnsServer(
  answers: Iterable<readonly [string, DnsAnswer]> = [],
  at = { address: '127.0.0.1', port: 0 },
): Promise<DnsServer> {
  const known = new Map(answers);
  const asked: Question[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, end } = readName(query);
    const type = TYPES[query.readUInt16BE(end)];
    if (type === undefined) return;
    asked.push({ name, type });
    const reply = replyTo(query.subarray(0, end + 4), type, known.get(name) ?? 'NXDOMAIN');
    if (reply) socket.send(reply, from.port, from.address);
  });
  socket.bind(at.port, at.address);
  await once(socket, 'listening');
  return {
    address: `${at.address}:${socket.address().port}`,
    answers: known,
    asked,
    names: () => [...new Set(asked.map(({ name }) => name))],
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/** The name of the question, in lower case, and where it ends. */
function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = HEAD_BYTES;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

/** @param asked head and question */
function replyTo(asked: Buffer, type: 'A' | 'AAAA', answer: DnsAnswer): Buffer | null {
  if (answer === 'silent') return null;
  const isFault = typeof answer === 'string';
  const addresses = isFault ? [] : ((type === 'A' ? answer.a : answer.aaaa) ?? []);
  const head = Buffer.from(asked);
  // A response, recursion available.
  head.writeUInt16BE(0x8180 | (isFault ? RCODES[answer] : 0), 2);
  head.writeUInt16BE(addresses.length, 6);
  head.fill(0, 8, HEAD_BYTES);
  const records = addresses.map((address) => {
    const data = type === 'A' ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
    const record = Buffer.alloc(12);
    // The name of the question.
    record.writeUInt16BE(0xc000 | HEAD_BYTES, 0);
    record.writeUInt16BE(type === 'A' ? 1 : 28, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt32BE(isFault ? 0 : (answer.ttl ?? 60), 6);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([head, ...records]);
}

function ipv6Bytes(address: string): Buffer {
  const [before = '', after] = address.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [first, last] = [groups(before), groups(after ?? '')];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}
