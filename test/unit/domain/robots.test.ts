import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RobotsPolicy, type RobotsReading, type RobotsRule } from '../../../shared/domain/robots-matcher.ts';
import {
  MAX_ROBOTS_BYTES,
  isAllowed,
  parseRobots,
  policyFrom,
  productToken,
  sitemapsOf,
  withDelays,
  withFurther,
} from '../../../shared/domain/robots.ts';
import { cpuMs } from '../../support/cpu-ms.ts';

const AGENT = 'examplebot/1.0 (+https://example.jp/bot)';

const policyOf = (rules: RobotsRule[]): RobotsPolicy => ({
  version: '1',
  access: 'rules',
  rules,
  crawlDelayMs: null,
  source: 'test',
});
const allow = (pattern: string): RobotsRule => ({ allow: true, pattern });
const disallow = (pattern: string): RobotsRule => ({ allow: false, pattern });
const patternsOf = (text: string, agent = AGENT): string[] =>
  parseRobots(text, agent).rules.map((rule) => (rule.allow ? '+' : '-') + rule.pattern);

describe('the product token', () => {
  it.each([
    [AGENT, 'examplebot'],
    ['ExampleBot', 'examplebot'],
    ['Example-Bot_2/3', 'example-bot_2'],
    ['examplebot (https://example.jp)', 'examplebot'],
    ['Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.jp/bot)', 'examplebot'],
    ['Mozilla/5.0 (X11; Linux) examplebot/1.0', 'mozilla'],
  ])('of %s is %s', (agent, token) => {
    expect(productToken(agent)).toBe(token);
  });
});

describe('the rules of a robots.txt', () => {
  it.each<[string, string, string[]]>([
    ['for all agents', 'User-agent: *\nDisallow: /a\nAllow: /a/b', ['-/a', '+/a/b']],
    [
      'for our agent rather than for all',
      'User-agent: *\nDisallow: /\n\nUser-agent: examplebot\nDisallow: /a',
      ['-/a'],
    ],
    ['for our agent at any position', 'User-agent: examplebot\nDisallow: /a\nUser-agent: *\nDisallow: /', ['-/a']],
    ['for us, none', 'User-agent: examplebot\nDisallow:\nUser-agent: *\nDisallow: /', []],
    ['for our agent by name and version', 'User-agent: ExampleBot/2.1\nDisallow: /a', ['-/a']],
    ['not for a longer name', 'User-agent: examplebot-news\nDisallow: /', []],
    ['not for a shorter name', 'User-agent: example\nDisallow: /', []],
    [
      'of all our groups together',
      'User-agent: examplebot\nDisallow: /a\nUser-agent: other\nDisallow: /b\nUser-agent: EXAMPLEBOT\nDisallow: /c',
      ['-/a', '-/c'],
    ],
    ['shared by several names', 'User-agent: other\nUser-agent: examplebot\nUser-agent: x\nDisallow: /a', ['-/a']],
    ['named twice, counted once', 'User-agent: examplebot\nUser-agent: examplebot\nDisallow: /a', ['-/a']],
    ['across empty lines and other lines', 'User-agent: *\n\nSitemap: /s.xml\n# x\n\nDisallow: /a', ['-/a']],
    ['not before any name', 'Disallow: /a\nUser-agent: *\nDisallow: /b', ['-/b']],
    [
      'with a BOM, CR and comments',
      '\uFEFFUser-agent: * # all\r\nDisallow: /a # not this\r\rDisallow:/b',
      ['-/a', '-/b'],
    ],
    ['in any case and space', '  USER-AGENT :*\n\tdisallow :  /a  ', ['-/a']],
    ['for our agent by a name followed by an asterisk', 'User-agent: examplebot*\nDisallow: /a', ['-/a']],
    ['for all agents, with words after the asterisk', 'User-agent: * (all)\nDisallow: /a', ['-/a']],
    ['not for an asterisk before a name', 'User-agent: *bot\nDisallow: /a', []],
    ['without colons', 'user-agent examplebot\ndisallow /a\ncrawl-delay 3', ['-/a']],
    ['not of a sentence without a colon', 'User-agent: *\ndisallow nothing here', []],
    ['misspelt', 'Useragent: *\nDissallow: /a', ['-/a']],
    ['none in HTML', '<!doctype html><html><p>Not: found</html>', []],
    ['none in an empty file', '', []],
    ['not of the one after a Crawl-delay', 'User-agent: *\nCrawl-delay: 9\n\nUser-agent: bad\nDisallow: /', []],
  ])('%s', (_name, text, expected) => {
    expect(patternsOf(text)).toEqual(expected);
  });

  it.each<[string, number | null]>([
    ['10', 10_000],
    ['0.5', 500],
    ['0', 0],
    ['86400', 86_400_000],
    ['-1', null],
    ['ten', null],
    ['1e3', null],
    ['10 s', null],
    ['', null],
    ['99999999999999', null],
  ])('Crawl-delay %s', (value, expected) => {
    expect(parseRobots(`User-agent: *\nCrawl-delay: ${value}\nDisallow: /a`, AGENT)).toEqual({
      rules: [disallow('/a')],
      crawlDelayMs: expected,
    });
  });

  it('uses the Crawl-delay of our own group only, and the longest of several', () => {
    const delay = (text: string): number | null => parseRobots(text, AGENT).crawlDelayMs;
    expect(delay('User-agent: *\nCrawl-delay: 9\nUser-agent: examplebot\nDisallow: /a')).toBeNull();
    expect(delay('User-agent: examplebot\nCrawl-delay: 2\nUser-agent: other\nCrawl-delay: 9')).toBe(2_000);
    expect(delay('User-agent: examplebot\nCrawl-delay: 2\nCrawl-delay: 3\nCrawl-delay: 1')).toBe(3_000);
  });

  it('reads only the first 500 KiB, without a truncated line (F30)', () => {
    const line = 'Disallow: /茶/123456789\n';
    const bytes = Buffer.byteLength(line);
    const text = `User-agent: *\n${line.repeat(40_000)}Disallow: /late\n`;
    const { rules } = parseRobots(text, AGENT);
    expect(rules).toHaveLength(Math.floor((MAX_ROBOTS_BYTES - 14) / bytes));
    expect(new Set(rules.map((rule) => rule.pattern))).toEqual(new Set(['/茶/123456789']));
  });

  it('never throws and never hangs', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => void parseRobots(text, AGENT)));
    for (const piece of [':', '#', '\r', 'User-agent: *\n', 'Disallow: *', ' ', '\uFEFF']) {
      const text = piece.repeat(MAX_ROBOTS_BYTES / piece.length);
      expect(cpuMs(() => parseRobots(text, AGENT))).toBeLessThan(1_000);
    }
  });
});

describe('a path', () => {
  it.each<[string, RobotsRule[], string, boolean]>([
    ['is allowed without rules', [], '/x', true],
    ['is allowed where nothing matches', [disallow('/a')], '/b', true],
    ['is matched from its start', [disallow('/a')], '/b/a', true],
    ['is matched by a prefix', [disallow('/a')], '/abc', false],
    ['is matched with its query', [disallow('/*?sort=')], '/a?sort=1', false],
    ['goes by the longest match', [disallow('/a'), allow('/a/b')], '/a/b/c', true],
    ['goes by the longest match, whatever the order', [allow('/a/b'), disallow('/a/b/c')], '/a/b/c', false],
    ['goes by allow in a tie', [disallow('/page'), allow('/page')], '/page', true],
    ['is cased', [disallow('/A')], '/a', true],
    ['/robots.txt is always allowed', [disallow('/')], '/robots.txt', true],
    ['/robots.txt2 is not', [disallow('/')], '/robots.txt2', false],
    ['that is empty is the root', [disallow('/')], '', false],
    ['* matches nothing too', [disallow('/a*b')], '/ab', false],
    ['* matches anything', [disallow('/a*b')], '/a/x/b/c', false],
    ['* does not match out of order', [disallow('/a*b*c')], '/a-c-b', true],
    ['$ is the end', [disallow('/*.php$')], '/a.php', false],
    ['$ matches only at the end', [disallow('/*.php$')], '/a.php?x', true],
    ['$ matches at the last possible position', [disallow('/*a$')], '/a/ba', false],
    ['$ does not match consumed text', [disallow('/ab*b$')], '/ab', true],
    ['$ alone after *', [disallow('/a*$')], '/abc', false],
    ['$ without *', [disallow('/a$')], '/ab', true],
    ['$ in the middle is literal', [disallow('/a$b')], '/a$bc', false],
    ['$ written %24 at the end is literal', [disallow('/a%24')], '/a$', false],
    ['* written %2A is itself', [disallow('/a%2Ab')], '/axb', true],
    ['* written %2A matches *', [disallow('/a%2Ab')], '/a*b', false],
    ['encoded unreserved letters are letters', [disallow('/%62ar')], '/bar', false],
    ['letters are encoded unreserved letters', [disallow('/bar')], '/%62%61r', false],
    ['reserved ones are not', [disallow('/a/b')], '/a%2Fb', true],
    ['in hex of any case', [disallow('/%e8%8c%b6')], '/%E8%8C%B6', false],
    ['in UTF-8 as it is', [disallow('/茶')], '/%E8%8C%B6/1', false],
    ['in UTF-8 as it is, on the other side', [disallow('/%E8%8C%B6')], '/茶', false],
    ['with a lone %', [disallow('/100%')], '/100%25', false],
    ['with é before an encoded letter', [disallow('/é%41')], '/%C3%A9A', false],
    ['a pattern without a slash', [disallow('*.gif$')], '/a.gif', false],
    ['a lone * is everything', [disallow('*')], '/a', false],
  ])('%s', (_name, rules, path, expected) => {
    expect(isAllowed(policyOf(rules), path)).toBe(expected);
    expect(isAllowed(policyOf(rules.toReversed()), path)).toBe(expected);
  });

  it('is allowed or forbidden regardless of the rules where the access is all or none', () => {
    const rules = [disallow('/a'), allow('/b')];
    expect(isAllowed({ ...policyOf(rules), access: 'all' }, '/a')).toBe(true);
    expect(isAllowed({ ...policyOf(rules), access: 'none' }, '/b')).toBe(false);
    expect(isAllowed({ ...policyOf(rules), access: 'none' }, '/robots.txt')).toBe(true);
  });

  /** Tries every position for every `*`. */
  function matchesNaively(pattern: string, path: string): boolean {
    if (pattern === '') return true;
    if (pattern === '$') return path === '';
    if (pattern[0] === '*')
      return Array.from({ length: path.length + 1 }).some((_, at) => matchesNaively(pattern.slice(1), path.slice(at)));
    return pattern[0] === path[0] && matchesNaively(pattern.slice(1), path.slice(1));
  }

  function isAllowedNaively(rules: RobotsRule[], path: string): boolean {
    const found = rules.filter((rule) => matchesNaively(rule.pattern, path));
    const longest = Math.max(...found.map((rule) => rule.pattern.length));
    const best = found.filter((rule) => rule.pattern.length === longest);
    return best.length === 0 || best.some((rule) => rule.allow);
  }

  it('gives the same result as brute force', () => {
    const text = (letters: string[], maxLength: number): fc.Arbitrary<string> =>
      fc.array(fc.constantFrom(...letters), { maxLength }).map((parts) => `/${parts.join('')}`);
    const pattern = fc.tuple(text(['a', 'b', '/', '*'], 7), fc.constantFrom('', '$')).map(([body, end]) => body + end);
    const rule = fc.record({ allow: fc.boolean(), pattern });
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 5 }), text(['a', 'b', '/'], 9), (rules, path) => {
        expect(isAllowed(policyOf(rules), path)).toBe(isAllowedNaively(rules, path));
      }),
      { numRuns: 600 },
    );
  });

  it('is forbidden when thousands of expensive patterns would have to be checked', () => {
    const path = `/${'a'.repeat(2_000)}`;
    const policy = policyOf(Array.from({ length: 60_000 }, (_, i) => disallow(`*a*z${i}`)));
    isAllowed(policy, '/'); // compiles the patterns
    expect(cpuMs(() => expect(isAllowed(policy, path)).toBe(false))).toBeLessThan(100);
    // A large robots.txt has a thousand patterns; none of them matches.
    const large = policyOf(Array.from({ length: 1_000 }, (_, i) => disallow(`/*/z${i}/*`)));
    expect(isAllowed(large, `/${'a/'.repeat(100)}`)).toBe(true);
  });

  it('is checked in linear time against expensive patterns', () => {
    const path = `/${'a'.repeat(8_000)}`;
    for (const pattern of [`/${'*a'.repeat(4_000)}b`, `/${'a*'.repeat(4_000)}b$`, `${'*'.repeat(200_000)}b`]) {
      const policy = policyOf([disallow(pattern)]);
      expect(cpuMs(() => expect(isAllowed(policy, path)).toBe(true))).toBeLessThan(500);
    }
  });
});

describe('the policy', () => {
  const URL_TEXT = 'https://shop.example/robots.txt';
  const reply = (
    status: number,
    text = 'User-agent: *\nDisallow: /a\nCrawl-delay: 2.5',
    retryAfterMs: number | null = null,
  ): Omit<RobotsPolicy, 'version'> => policyFrom({ kind: 'reply', status, text, retryAfterMs }, AGENT, URL_TEXT);

  it.each([200, 203, 299])('of %i follows the file (F30)', (status) => {
    expect(reply(status)).toEqual({
      access: 'rules',
      rules: [disallow('/a')],
      crawlDelayMs: 2_500,
      source: `${URL_TEXT}: 1 rule for examplebot, Crawl-delay 2.5 s`,
    });
  });

  it.each([400, 401, 403, 404, 410, 451])('of %i allows everything (F30)', (status) => {
    expect(reply(status)).toMatchObject({ access: 'all', rules: [], crawlDelayMs: null });
  });

  it.each([429, 500, 503, 599, 600, 999])('of %i allows nothing (F30)', (status) => {
    expect(reply(status)).toMatchObject({ access: 'none', rules: [], crawlDelayMs: null });
  });

  it('of a site that asks for a pause says so, and for how long', () => {
    expect(reply(429, '', 120_000)).toMatchObject({
      access: 'none',
      retryAfterMs: 120_000,
      source: `${URL_TEXT} answers 429 and asks for a pause of 2m`,
    });
    expect(reply(404, '', 120_000)).not.toHaveProperty('retryAfterMs');
  });

  it('of a file without rules allows everything, at its pace', () => {
    expect(reply(200, 'User-agent: *\nCrawl-delay: 30')).toMatchObject({ access: 'all', crawlDelayMs: 30_000 });
    expect(reply(200, '<html>')).toMatchObject({ access: 'all', crawlDelayMs: null });
  });

  it('of endless redirects allows everything, of no reply nothing (F30)', () => {
    expect(policyFrom({ kind: 'lost', detail: 'x' }, AGENT, URL_TEXT)).toMatchObject({ access: 'all' });
    expect(policyFrom({ kind: 'unreachable', detail: 'x' }, AGENT, URL_TEXT)).toMatchObject({
      access: 'none',
      source: `${URL_TEXT} is unavailable: x`,
    });
  });
});

describe('the sitemaps of a robots.txt', () => {
  it.each<[string, string, string[]]>([
    [
      'wherever they stand',
      'Sitemap: https://a.example/1.xml\nUser-agent: *\nDisallow: /\nSitemap: http://b.example/2',
      ['https://a.example/1.xml', 'http://b.example/2'],
    ],
    [
      'with any spelling of the key',
      '\uFEFFSITEMAP :https://a.example/1\r\nsite-map: HTTPS://A.example/2',
      ['https://a.example/1', 'https://a.example/2'],
    ],
    ['each once', 'Sitemap: https://a.example/1\nsitemap: https://A.EXAMPLE/1 # again', ['https://a.example/1']],
    [
      'by their path on the host of robots.txt',
      'Sitemap: /1.xml\nSitemap: maps/2.xml\nSitemap: //a.example/3',
      ['https://shop.example/1.xml', 'https://shop.example/maps/2.xml', 'https://a.example/3'],
    ],
    ['not those of other schemes', 'Sitemap: ftp://a.example/1\nSitemap:\nSitemap: https://', []],
    ['none', 'User-agent: *\nDisallow:', []],
  ])('%s', (_, text, sitemaps) => {
    expect(sitemapsOf(text, 'https://shop.example/robots.txt')).toEqual(sitemaps);
  });
});

describe('the policy of a site with further hosts', () => {
  const reading = (changes: Partial<RobotsReading>): RobotsReading => ({
    version: 'v1',
    access: 'all',
    rules: [],
    crawlDelayMs: null,
    source: 'site',
    ...changes,
  });

  it('has the longest Crawl-delay, and goes on while one of theirs cannot be read', () => {
    const slow = reading({ version: 'v2', crawlDelayMs: 9_000, source: 'reviews' });
    const unread = reading({ version: 'v3', access: 'none', source: 'images', retryAfterMs: 60_000 });
    const whole = withFurther(reading({ crawlDelayMs: 2_000 }), [slow, unread]);
    expect(whole).toMatchObject({ version: 'v1 v2 v3', access: 'all', crawlDelayMs: 9_000 });
    expect(whole.further).toEqual([slow, { ...unread, retryAfterMs: undefined }]);
    expect(withDelays(whole, [20_000])).toMatchObject({ crawlDelayMs: 20_000, further: whole.further });
    const site = reading({});
    expect(withFurther(site, [])).toBe(site);
  });
});
