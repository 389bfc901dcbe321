/**
 * Vitest global setup: provides the tests with a private MariaDB. In this order: the `mariadbd` on the machine with a
 * private data directory; the package, installed as root on Debian or Ubuntu; TEST_DATABASE_URL; else an error that
 * says what to do. Two projects use this file: within one command they share one server.
 */
import type { TestProject } from 'vitest/node';
import { findServer, installServer } from './find-server.ts';
import { QUICK, startDatabaseServer } from './server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A MySQL URL whose user may create databases and users. */
    adminDatabaseUrl: string;
  }
}

interface Server {
  adminUrl: string;
  stop(): Promise<void>;
}

interface Shared {
  users: number;
  server: Promise<Server>;
}

// Each project loads its own copy of this module, so shared state lives on globalThis.
const KEY = Symbol.for('crawlfleet.test.mariadb');
const holder = globalThis as unknown as Record<symbol, Shared | undefined>;

/**
 * Starts the server, or shares a running one, and provides its URL to the tests; the last returned teardown stops it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const shared = (holder[KEY] ??= { users: 0, server: openServer() });
  shared.users++;
  const { adminUrl } = await shared.server;
  project.provide('adminDatabaseUrl', adminUrl);
  return async () => {
    shared.users--;
    if (shared.users > 0) return;
    holder[KEY] = undefined;
    await (await shared.server).stop();
  };
}

async function openServer(): Promise<Server> {
  const found = (await findServer()) ?? (await installServer());
  if (found) return startShared();
  const adminUrl = process.env.TEST_DATABASE_URL;
  if (adminUrl) return { adminUrl, stop: () => Promise.resolve() };
  throw new Error(
    [
      'The tests need MariaDB 10.6 or newer, and there is none here. Do one of these:',
      '  - install it: "apt-get install mariadb-server", "dnf install mariadb-server" or "brew install mariadb";',
      '    the tests start a private server from it and touch no other',
      '  - run the tests as root on Debian or Ubuntu: they install the package themselves',
      '  - set TEST_DATABASE_URL=mysql://user:password@host:3306/ to a MySQL 8 or MariaDB whose user may create databases',
      'Tests without a database: npm run test:unit',
    ].join('\n'),
  );
}

async function startShared(): Promise<Server> {
  const server = await startDatabaseServer({ options: QUICK });
  return { adminUrl: server.url(''), stop: () => server.stop() };
}
