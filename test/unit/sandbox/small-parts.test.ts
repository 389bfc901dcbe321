/** Small parts of the sandbox. */
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { applyFilters } from '../../../sandbox/ec2/filters.ts';
import { TagStore } from '../../../sandbox/ec2/tag-store.ts';
import { EndTimer } from '../../../sandbox/end-timer.ts';
import { FaultBook, faultRuleSchema } from '../../../sandbox/faults.ts';
import { readFlags } from '../../../sandbox/flags.ts';
import { MetadataTree } from '../../../sandbox/imds/metadata.ts';
import { AddressPool, takeNetwork } from '../../../sandbox/network.ts';
import { Params } from '../../../sandbox/query-protocol.ts';
import { isLoopbackHost } from '../../../sandbox/server/guard.ts';
import { escapeXml, parseXml, xmlDocument } from '../../../sandbox/xml.ts';

describe('filters', () => {
  const items = [
    { name: 'al2023-ami-1', tags: new Map([['run', 'r1']]) },
    { name: 'a*b', tags: new Map<string, string>() },
  ];
  const names = (form: string): string[] =>
    applyFilters(
      items,
      new Params(new Map(new URLSearchParams(form)), 'ec2'),
      { name: (i) => i.name },
      (i) => i.tags,
    ).map((i) => i.name);

  it.each([
    ['Filter.1.Name=name&Filter.1.Value.1=al2023-*', ['al2023-ami-1']],
    ['Filter.1.Name=name&Filter.1.Value.1=al2023-ami-%3F', ['al2023-ami-1']],
    ['Filter.1.Name=name&Filter.1.Value.1=a\\*b', ['a*b']],
    ['Filter.1.Name=name&Filter.1.Value.1=al2023', []],
    ['Filter.1.Name=tag:run&Filter.1.Value.1=r1', ['al2023-ami-1']],
    ['Filter.1.Name=tag-key&Filter.1.Value.1=run&Filter.2.Name=name&Filter.2.Value.1=x', []],
    ['Filter.1.Name=name&Filter.1.Value.1=x&Filter.1.Value.2=a\\*b', ['a*b']],
    ['', ['al2023-ami-1', 'a*b']],
  ])('%s match %j', (form, expected) => {
    expect(names(form)).toEqual(expected);
  });

  it('with unknown names are refused, including names of the prototype', () => {
    expect(() => names('Filter.1.Name=constructor&Filter.1.Value.1=x')).toThrow("The filter 'constructor' is invalid");
  });
});

it('tags beyond fifty are refused without any change', () => {
  const tags = new TagStore();
  tags.put('i-1', new Map(Array.from({ length: 50 }, (_, i) => [`k${i}`, 'v'])));
  expect(() => tags.put('i-1', new Map([['one more', 'v']]))).toThrow('maximum number of tags');
  expect(tags.of('i-1').size).toBe(50);
});

describe('faults', () => {
  const book = (...rules: unknown[]): FaultBook => {
    const faults = new FaultBook();
    faults.add(rules.map((rule) => faultRuleSchema.parse(rule)));
    return faults;
  };

  it('affect the named call the given number of times, oldest rule first', () => {
    const faults = book(
      { what: 'error', action: 'RunInstances', code: 'RequestLimitExceeded', count: 1 },
      { what: 'error', action: '*', code: 'InternalError', count: 1 },
    );
    const codes = ['RunInstances', 'RunInstances', 'RunInstances'].map((name) => faults.takeForCall(name).error);
    expect(codes).toMatchObject([
      { code: 'RequestLimitExceeded', status: 503 },
      { code: 'InternalError', status: 500 },
      null,
    ]);
  });

  it('with a delay and a lost reply affect the same call', () => {
    const faults = book({ what: 'lost-reply', action: 'X', count: 1 }, { what: 'delay', action: 'X', ms: 5, count: 2 });
    expect(faults.takeForCall('X')).toEqual({ error: null, lost: false, reply: 'lost', delayMs: 5 });
    expect(faults.takeForCall('X')).toEqual({ error: null, lost: false, reply: 'whole', delayMs: 5 });
  });

  it('can be limited to some objects', () => {
    const faults = book(
      { what: 'cut-reply', action: 'GetObject', path: '/0/1/', count: 1 },
      { what: 'lost-request', action: 'PutObject', path: 'manifest', count: 1 },
    );
    const reply = (path: string) => faults.takeForCall('GetObject', path).reply;
    expect([reply('/b/runs/r/0/2/x'), reply('/b/runs/r/0/1/x'), reply('/b/runs/r/0/1/x')]).toEqual([
      'whole',
      'cut',
      'whole',
    ]);
    const lost = (path: string) => faults.takeForCall('PutObject', path).lost;
    expect([lost('/b/part'), lost('/b/manifest.json'), lost('/b/manifest.json')]).toEqual([false, true, false]);
  });

  it('for a listener and a bucket are used up one by one', () => {
    const faults = book({ what: 'unreachable-balancer', count: 1 }, { what: 'lost-bucket', count: 2 });
    const kinds = [
      'unreachable-balancer',
      'unreachable-balancer',
      'lost-bucket',
      'lost-bucket',
      'lost-bucket',
    ] as const;
    expect(kinds.map((what) => faults.take(what) !== null)).toEqual([true, false, true, true, false]);
  });

  it('for boots apply in order and do not affect calls', () => {
    const faults = book({ what: 'silent-boot', count: 1 }, { what: 'dead-boot', count: 1 });
    expect(faults.takeForCall('RunInstances')).toEqual({ error: null, lost: false, reply: 'whole', delayMs: 0 });
    expect([faults.takeForBoot(), faults.takeForBoot(), faults.takeForBoot()]).toEqual([
      'silent-boot',
      'dead-boot',
      null,
    ]);
  });
});

it.each([
  ['127.0.0.1:4566', true],
  ['127.9.8.7', true],
  ['localhost:80', true],
  ['LOCALHOST', true],
  ['[::1]:80', true],
  ['example.com', false],
  ['127.0.0.1.example.com', false],
  ['127.example.com', false],
  ['localhost.example.com', false],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['[::]:80', false],
  ['', false],
  [undefined, false],
])('the host %s is on this machine: %s', (host, expected) => {
  expect(isLoopbackHost(host)).toBe(expected);
});

describe('networks', () => {
  it('assign every address once, then none, and freed ones last', () => {
    const network = {
      cidr: '',
      address: (o: number) => `127.16.${o >> 8}.${o & 255}`,
      release: () => Promise.resolve(),
    };
    const pool = new AddressPool(network, 254, 4);
    const taken = [pool.take(), pool.take(), pool.take()];
    expect(taken).toEqual(['127.16.0.254', '127.16.0.255', '127.16.1.0']);
    pool.give('127.16.0.254');
    expect([pool.take(), pool.take(), pool.take()]).toEqual(['127.16.1.1', '127.16.0.254', null]);
  });

  it('are refused with a message where 127.x addresses are missing', async () => {
    await expect(takeNetwork(0, 'darwin')).rejects.toMatchObject({
      code: 'platform',
      hint: expect.stringContaining('Linux') as string,
    });
  });
});

describe('XML', () => {
  it('is written with special characters escaped', () => {
    expect(escapeXml('a<b>&"\u0001\r\n')).toBe('a&lt;b&gt;&amp;&quot;&#x1;&#xD;\n');
    expect(xmlDocument('R', { a: [1, true], none: undefined, empty: null })).toContain(
      '<R><a>1</a><a>true</a><empty/></R>',
    );
  });

  it('is read with namespaces and entities, and refused when it is unclosed', () => {
    const root = parseXml(
      '<?xml version="1.0"?><s3:Delete xmlns:s3="x"><Object><Key>a&amp;b &#12354;</Key></Object></s3:Delete>',
    );
    expect(root).toMatchObject({
      name: 'Delete',
      children: [{ name: 'Object', children: [{ name: 'Key', text: 'a&b あ' }] }],
    });
    expect(parseXml('<Delete><Object>')).toBeNull();
    expect(parseXml('not xml')).toBeNull();
  });
});

describe('the end time', () => {
  it('fires once, can be moved, and fires immediately when it is in the past', async () => {
    const clock = new VirtualClock();
    let ends = 0;
    const timer = new EndTimer(clock, () => (ends += 1));
    timer.set(clock.now() + 1_000);
    timer.set(clock.now() + 5_000);
    await clock.advance(4_999);
    expect(ends).toBe(0);
    await clock.advance(1);
    expect(ends).toBe(1);
    timer.set(clock.now() - 1);
    await clock.advance(0);
    expect(ends).toBe(2);
  });

  it('may be beyond the maximum delay of a timer', async () => {
    const clock = new VirtualClock();
    let ends = 0;
    new EndTimer(clock, () => (ends += 1)).set(clock.now() + 40 * 86_400_000);
    await clock.advance(30 * 86_400_000);
    expect(ends).toBe(0);
    await clock.advance(10 * 86_400_000);
    expect(ends).toBe(1);
  });
});

it.each([
  [[], '--data DIR is missing'],
  [['--data', 'd', '--port', '70000'], '--port'],
  [['--data', 'd', '--region', 'Tokyo'], '--region'],
  [['--data', 'd', '--ends-at', 'soon'], '--ends-at'],
  [['--data', 'd', '--allow-bundle', 'ABC'], '--allow-bundle'],
  [['--data', 'd', 'more'], 'more'],
  [['--data', 'd', '--stand-in-for', 'http://127.0.0.1:5000'], '--run'],
  [['--data', 'd', '--run', 'r1'], '--stand-in-for'],
  [['--data', 'd', '--run', 'r1', '--stand-in-for', 'https://ec2.amazonaws.com'], 'on this machine'],
])('the command line %j is refused, naming %s', (args, named) => {
  expect(() => readFlags(args)).toThrow(
    expect.objectContaining({ code: 'usage', message: expect.stringContaining(named) as string }) as Error,
  );
});

describe('metadata', () => {
  const spec = {
    id: 'i-1',
    address: '127.16.16.4',
    publicAddress: null,
    userData: '',
    zone: 'r-1a',
    region: 'r-1',
    instanceType: 't3.nano',
    imageId: 'ami-1',
    architecture: 'x86_64',
    role: 'crawl',
    launchedAtMs: 0,
  };
  const bodyOf = (tree: MetadataTree, path: string, atMs = 0): string | null => tree.read(path, atMs)?.body ?? null;

  it('has names for folders, values for leaves, and nothing for missing items', () => {
    const tree = new MetadataTree(spec);
    expect(bodyOf(tree, 'meta-data/placement/')).toBe('availability-zone\nregion');
    expect(bodyOf(tree, 'meta-data/iam/security-credentials/')).toBe('crawl');
    expect(bodyOf(tree, 'meta-data/public-ipv4')).toBeNull();
    expect(bodyOf(tree, 'user-data')).toBeNull();
    expect(bodyOf(new MetadataTree({ ...spec, role: null }), 'meta-data/iam/security-credentials/')).toBeNull();
  });

  it('keeps the credentials of the role and renews them before they expire', () => {
    const tree = new MetadataTree(spec);
    const path = 'meta-data/iam/security-credentials/crawl';
    const first = bodyOf(tree, path);
    expect(JSON.parse(first!)).toMatchObject({ Code: 'Success', Expiration: '1970-01-01T06:00:00Z' });
    expect(bodyOf(tree, path, 5 * 3_600_000)).toBe(first);
    expect(bodyOf(tree, path, 5.8 * 3_600_000)).not.toBe(first);
  });
});
