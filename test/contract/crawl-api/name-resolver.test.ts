/** Names of many hosts: resolved outside the pool of threads, bounded, shared and kept; the hosts file comes first. */
import { promises as dns, type LookupAddress } from 'node:dns';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { createGuardedLookup } from '../../../shared/adapters/http/guarded-lookup.ts';
import { NameResolver } from '../../../shared/adapters/http/name-resolver.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { waitFor } from '../../support/processes.ts';
import { tempDir, type TempDir } from '../../support/temp-dir.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let server: DnsServer;
let folder: TempDir;
let hostsFile: string;
let clock: VirtualClock;
let names: NameResolver;

beforeEach(async () => {
  server = await startDnsServer();
  folder = tempDir();
  hostsFile = folder.file('hosts');
  writeFileSync(hostsFile, '127.0.0.1 localhost\n::1 localhost\n');
  clock = new VirtualClock();
  names = new NameResolver({ clock, servers: [server.address], hostsFile });
});
afterEach(async () => {
  // Ends what a test has left under way.
  await clock.advance(MINUTE);
  await server.close();
  folder.remove();
});

/** The addresses, or the code of the error. */
const ask = (name: string, family: 0 | 4 | 6 = 0): Promise<string[] | string> =>
  new Promise((resolve) => {
    names.lookup(name, { family, all: true }, (error, addresses) =>
      resolve(error ? String(error.code) : addresses.map(({ address }) => address)),
    );
  });

const dead = (count: number): string[] => Array.from({ length: count }, (_, i) => `dead${i}.example`);

/** Names that no server answers for. */
function silence(count: number): string[] {
  const silent = dead(count);
  for (const name of silent) server.answers.set(name, 'silent');
  return silent;
}

const asked = (count: number): Promise<boolean> =>
  waitFor(() => server.names().length >= count, { what: `questions for ${count} names` });

describe('a name', () => {
  it('has the addresses of the families that are asked for, IPv4 first', async () => {
    server.answers.set('shop.example', { a: ['192.0.2.1', '192.0.2.2'], aaaa: ['2001:db8::1'] });
    expect(await ask('shop.example', 4)).toEqual(['192.0.2.1', '192.0.2.2']);
    expect(await ask('shop.example', 6)).toEqual(['2001:db8::1']);
    expect(await ask('Shop.Example.')).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    expect(server.asked).toEqual([
      { name: 'shop.example', type: 'A' },
      { name: 'shop.example', type: 'AAAA' },
    ]);
  });

  it('that does not exist is not asked for again in the other family', async () => {
    expect(await ask('none.example', 4)).toBe('ENOTFOUND');
    expect(await ask('none.example')).toBe('ENOTFOUND');
    expect(server.asked).toEqual([{ name: 'none.example', type: 'A' }]);
  });

  it('whose server denies it for IPv6 alone keeps its IPv4 addresses', async () => {
    expect(await ask('four.example', 6)).toBe('ENOTFOUND');
    server.answers.set('four.example', { a: ['192.0.2.4'] });
    expect(await ask('four.example')).toEqual(['192.0.2.4']);
  });

  it('with addresses of the other family alone says so behind the address guard', async () => {
    server.answers.set('six.example', { aaaa: ['2001:db8::1'] });
    const guard = createAddressGuard({ productUrl: 'https://a.example/{id}', allowPrivate: false, forbidden: [] });
    const guarded = createGuardedLookup(names.lookup, guard, 4);
    const message = await new Promise((resolve) =>
      guarded('six.example', {}, (error) => resolve(error && error.message)),
    );
    expect(message).toBe('the site has only IPv6 addresses, and the crawl uses IPv4');
  });

  it('is an address as it is, and none is asked for that DNS cannot have', async () => {
    expect(await ask('192.0.2.9')).toEqual(['192.0.2.9']);
    expect(await ask('2001:db8::9', 6)).toEqual(['2001:db8::9']);
    expect(await ask('2001:db8::9', 4)).toBe('ENOTFOUND');
    for (const name of ['', '.', 'a.'.repeat(200), `${'x'.repeat(64)}.example`, 'a..example'])
      expect(await ask(name, 4)).toBe('ENOTFOUND');
    expect(server.asked).toEqual([]);
  });

  it('has at most sixteen addresses', async () => {
    server.answers.set('many.example', { a: Array.from({ length: 25 }, (_, i) => `192.0.2.${i}`) });
    expect(await ask('many.example', 4)).toHaveLength(16);
  });

  it('is not the fault of a site when no name server listens', async () => {
    await server.close();
    const failed = await ask('shop.example', 4);
    server = await startDnsServer();
    expect(failed).toBe('EAI_AGAIN');
  });
});

describe('look-ups', () => {
  it('of a hundred dead names delay no work of the pool of threads', async () => {
    let ended = 0;
    const lookups = silence(100).map((name) => ask(name, 4).finally(() => ended++));
    await asked(16);
    const file = await open(folder.file('journal'), 'w');
    await file.write('a record');
    await file.datasync();
    await file.close();
    await Promise.all(Array.from({ length: 8 }, () => stat(folder.path)));
    expect(ended).toBe(0);
    await clock.advance(7 * 5 * SECOND);
    expect(new Set(await Promise.all(lookups))).toEqual(new Set(['ETIMEOUT']));
  });

  it('wait in order, sixteen under way, each for five seconds from when it began', async () => {
    const ended: string[] = [];
    const silent = silence(40);
    for (const name of silent) void ask(name, 4).then((code) => ended.push(`${name} ${String(code)}`));
    await asked(16);
    await clock.advance(5 * SECOND - 1);
    expect([ended.length, server.names()]).toEqual([0, silent.slice(0, 16)]);
    await clock.advance(1);
    expect(ended).toEqual(silent.slice(0, 16).map((name) => `${name} ETIMEOUT`));
    await asked(32);
    expect(server.names()).toEqual(silent.slice(0, 32));
    // An answer makes room as well.
    server.answers.set(silent[20]!, 'NXDOMAIN');
    await asked(33);
    expect(ended[16]).toBe(`${silent[20]} ENOTFOUND`);
    await clock.advance(10 * SECOND);
    expect(ended).toHaveLength(40);
  });

  it('of one name are one', async () => {
    const [silent] = silence(1);
    const lookups = Array.from({ length: 50 }, () => ask(silent!, 4));
    await asked(1);
    server.answers.set(silent!, { a: ['192.0.2.1'] });
    // The repetition is answered.
    expect(await Promise.all(lookups)).toEqual(lookups.map(() => ['192.0.2.1']));
    // Once asked, and repeated by the resolver alone.
    expect(server.asked.length).toBeLessThanOrEqual(3);
    expect(await ask(silent!, 4)).toEqual(['192.0.2.1']);
  });

  it('give each caller addresses of its own', async () => {
    server.answers.set('shop.example', { a: ['192.0.2.1'] });
    const [first] = await names.resolve('shop.example');
    first!.address = 'changed';
    expect(await ask('shop.example')).toEqual(['192.0.2.1']);
  });
});

describe('what is known', () => {
  /** Whether the server is asked again after this time. */
  async function isAskedAfter(name: string, ms: number): Promise<boolean> {
    const before = server.asked.length;
    await clock.advance(ms);
    await ask(name, 4);
    return server.asked.length > before;
  }

  it.each([
    [5, 30 * SECOND],
    [120, 120 * SECOND],
    [86_400, 10 * MINUTE],
  ])('is kept for its TTL of %d s, at least half a minute and at most ten', async (ttl, keptMs) => {
    server.answers.set('shop.example', { a: ['192.0.2.1'], ttl });
    await ask('shop.example', 4);
    expect(await isAskedAfter('shop.example', keptMs - 1)).toBe(false);
    expect(await isAskedAfter('shop.example', 1)).toBe(true);
  });

  it('of a name without an address is kept for ten minutes', async () => {
    server.answers.set('empty.example', {});
    for (const name of ['none.example', 'empty.example']) {
      expect(await ask(name, 4)).toBe('ENOTFOUND');
      expect(await isAskedAfter(name, 10 * MINUTE - 1)).toBe(false);
      expect(await isAskedAfter(name, 1)).toBe(true);
    }
  });

  it('of a fault of the name server is kept for half a minute', async () => {
    server.answers.set('fault.example', 'SERVFAIL');
    expect(await ask('fault.example', 4)).toBe('ESERVFAIL');
    expect(await isAskedAfter('fault.example', 30 * SECOND - 1)).toBe(false);
    expect(await isAskedAfter('fault.example', 1)).toBe(true);

    const [silent] = silence(1);
    const late = ask(silent!, 4);
    await asked(2);
    await clock.advance(5 * SECOND);
    expect(await late).toBe('ETIMEOUT');
    expect(await isAskedAfter(silent!, 30 * SECOND - 1)).toBe(false);
    server.answers.set(silent!, { a: ['192.0.2.1'] });
    await clock.advance(1);
    expect(await ask(silent!, 4)).toEqual(['192.0.2.1']);
  });

  it('of one family does not hide a fault in the other', async () => {
    server.answers.set('half.example', {});
    expect(await ask('half.example', 4)).toBe('ENOTFOUND');
    server.answers.set('half.example', 'SERVFAIL');
    expect(await ask('half.example')).toBe('ESERVFAIL');
  });

  it('is that of 20,000 names, the oldest of which are forgotten', async () => {
    for (let i = 0; i < 20_100; i += 100)
      await Promise.all(Array.from({ length: 100 }, (_, j) => ask(`n${i + j}.example`, 4)));
    expect(names.size).toBe(20_000);
    expect(await isAskedAfter('n20099.example', 0)).toBe(false);
    expect(await isAskedAfter('n100.example', 0)).toBe(false);
    expect(await isAskedAfter('n99.example', 0)).toBe(true);
  });
});

describe('the hosts file', () => {
  it('wins over DNS, in both families and whatever the case', async () => {
    server.answers.set('shop.example', { a: ['192.0.2.1'], aaaa: ['2001:db8::1'] });
    writeFileSync(hostsFile, '10.0.0.5 SHOP.example other.example # ours\n');
    expect(await ask('shop.EXAMPLE.')).toEqual(['10.0.0.5']);
    expect(await ask('shop.example', 6)).toBe('ENOTFOUND');
    expect(await ask('other.example', 4)).toEqual(['10.0.0.5']);
    expect(server.asked).toEqual([]);
  });

  it('is looked at once a second, and read when it has changed', async () => {
    server.answers.set('shop.example', { a: ['192.0.2.1'] });
    expect(await ask('shop.example', 4)).toEqual(['192.0.2.1']);
    writeFileSync(hostsFile, '10.0.0.5 shop.example\n');
    await clock.advance(SECOND - 1);
    expect(await ask('shop.example', 4)).toEqual(['192.0.2.1']);
    await clock.advance(1);
    expect(await ask('shop.example', 4)).toEqual(['10.0.0.5']);

    writeFileSync(folder.file('new'), '10.0.0.6 shop.example\n');
    renameSync(folder.file('new'), hostsFile);
    await clock.advance(SECOND);
    expect(await ask('shop.example', 4)).toEqual(['10.0.0.6']);
    rmSync(hostsFile);
    await clock.advance(SECOND);
    expect(await ask('shop.example', 4)).toEqual(['192.0.2.1']);
  });

  it('has localhost, and so all names below it; DNS is never asked for them', async () => {
    expect(await ask('localhost')).toEqual(['127.0.0.1', '::1']);
    expect(await ask('shop.localhost', 4)).toEqual(['127.0.0.1']);
    writeFileSync(hostsFile, '10.0.0.5 own.localhost\n');
    await clock.advance(SECOND);
    expect(await ask('own.localhost')).toEqual(['10.0.0.5']);
    expect(await ask('shop.localhost')).toBe('ENOTFOUND');
    expect(server.asked).toEqual([]);
  });

  it('of this machine, and its name servers, are the usual ones', async () => {
    const usual = new NameResolver({ clock });
    const own: LookupAddress[] = await usual.resolve('localhost', 4);
    expect(own.map(({ address }) => address)).toContain('127.0.0.1');
    expect(new dns.Resolver().getServers()).not.toEqual([]);
  });
});
