/** Which process of this machine holds a port, according to Linux's /proc. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/** `st` of /proc/net/tcp for a listening socket. */
const LISTENS = '0A';

/** The process that listens on this TCP port; null when none does, it belongs to another user, or this is not Linux. */
export function findPortHolder(port: number): { pid: number; command: string } | null {
  const sockets = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => listening(file, port)));
  if (sockets.size === 0) return null;
  for (const pid of entriesOf('/proc').filter((name) => /^\d+$/.test(name))) {
    const has = entriesOf(`/proc/${pid}/fd`).some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)));
    if (has) return { pid: Number(pid), command: commandOf(pid) };
  }
  return null;
}

/** Names of sockets, in the form of the links in /proc/PID/fd. */
function listening(file: string, port: number): string[] {
  const lines = textOf(file).split('\n').slice(1);
  const fields = lines.map((line) => line.trim().split(/\s+/));
  return fields
    .filter(([, local, , state]) => state === LISTENS && parseInt(local?.split(':')[1] ?? '', 16) === port)
    .map((field) => `socket:[${field[9]}]`);
}

function commandOf(pid: string): string {
  const words = textOf(`/proc/${pid}/cmdline`).split('\0').filter(Boolean);
  return words.slice(0, 3).join(' ').slice(0, 120);
}

const textOf = (file: string): string => quietly(() => readFileSync(file, 'utf8'), '');
const entriesOf = (folder: string): string[] => quietly(() => readdirSync(folder), []);
const linkOf = (file: string): string => quietly(() => readlinkSync(file), '');

/** Processes may end while they are read, and those of other users cannot be read. */
function quietly<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
