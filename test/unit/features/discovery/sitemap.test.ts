/** Sitemaps as shops publish them, broken ones, and hostile ones. */
import { constants, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  SITEMAP_LIMITS,
  type SitemapItem,
  type SitemapLimits,
  readSitemap,
} from '../../../../orchestrator/features/discovery/sitemap.ts';

type Source = string | Uint8Array;

/** In chunks of `size` bytes. */
async function* chunksOf(source: Source, size = 50): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(source);
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

const collect = (chunks: AsyncIterable<Uint8Array>, limits?: SitemapLimits): Promise<SitemapItem[]> =>
  Array.fromAsync(readSitemap(chunks, { ...(limits && { limits }) }));

const read = (source: Source, limits?: SitemapLimits): Promise<SitemapItem[]> => collect(chunksOf(source), limits);

/** The URLs, and why it was cut. */
async function summary(source: Source, limits?: SitemapLimits): Promise<string[]> {
  return summaryOf(await read(source, limits));
}

const summaryOf = (items: readonly SitemapItem[]): string[] =>
  items.map((item) => (item.kind === 'cut' ? `cut: ${item.why}` : item.loc));

const NAMESPACE = 'http://www.sitemaps.org/schemas/sitemap/0.9';
const urlset = (inside: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="${NAMESPACE}">${inside}</urlset>\n`;
const entry = (loc: string, more = ''): string => `\n  <url>\n    <loc>${loc}</loc>${more}\n  </url>`;
const page = (i: number): string => `https://shop.example/item/${i}`;
const pages = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, i) => entry(page(from + i))).join('');

describe('a sitemap', () => {
  it('gives its pages in order, with their last change', async () => {
    const xml = urlset(
      entry('https://shop.example/item/1', '<lastmod>2026-11-23</lastmod><priority>0.5</priority>') +
        entry('  https://shop.example/item/2\n', '<changefreq>daily</changefreq>'),
    );
    expect(await read(xml)).toEqual([
      { kind: 'url', loc: 'https://shop.example/item/1', lastModMs: Date.UTC(2026, 10, 23) },
      { kind: 'url', loc: 'https://shop.example/item/2', lastModMs: null },
    ]);
  });

  it('gives the sitemaps of an index', async () => {
    const xml = `<sitemapindex xmlns="${NAMESPACE}"><sitemap><loc>https://shop.example/s1.xml.gz</loc>
      <lastmod>2026-11-23T10:00:00+09:00</lastmod></sitemap></sitemapindex>`;
    expect(await read(xml)).toEqual([
      { kind: 'sitemap', loc: 'https://shop.example/s1.xml.gz', lastModMs: Date.UTC(2026, 10, 23, 1) },
    ]);
  });

  it.each([
    ['entities', entry('https://shop.example/?a=1&amp;b=&#39;2&#x27;'), "https://shop.example/?a=1&b='2'"],
    ['bare ampersands', entry('https://shop.example/?a=1&b=2&copy=3'), 'https://shop.example/?a=1&b=2&copy=3'],
    ['CDATA', entry('<![CDATA[https://shop.example/?a=1&b=2]]>'), 'https://shop.example/?a=1&b=2'],
    ['comments', `<!-- <url> -->${entry('https://shop.example/<!-- x -->a')}`, 'https://shop.example/a'],
    ['upper case', '<URL><LOC>HTTPS://shop.example/a</LOC></URL>', 'HTTPS://shop.example/a'],
    ['empty elements', entry('https://shop.example/a', '<lastmod/><x:y a="1" />'), 'https://shop.example/a'],
    ['an undone namespace', '<url xmlns=""><loc>https://shop.example/a</loc></url>', 'https://shop.example/a'],
    ['letters of all kinds', entry('https://shop.example/商品'), 'https://shop.example/商品'],
  ])('is read with %s', async (_, inside, loc) => {
    expect(await summary(urlset(inside))).toEqual([loc]);
  });

  it('does not count images, videos and other languages as pages', async () => {
    const extensions = `
      <image:image><image:loc>https://cdn.example/1.jpg</image:loc></image:image>
      <image:loc>https://cdn.example/2.jpg</image:loc>
      <image xmlns="http://www.google.com/schemas/sitemap-image/1.1"><loc>https://cdn.example/3.jpg</loc></image>
      <loc xmlns="http://www.google.com/schemas/sitemap-image/1.1">https://cdn.example/4.jpg</loc>
      <video:video><video:player_loc>https://cdn.example/5.mp4</video:player_loc></video:video>
      <xhtml:link rel="alternate" hreflang="de" href="https://shop.example/de"/>`;
    expect(await summary(urlset(entry(page(1), extensions)))).toEqual([page(1)]);
    expect(await summary(urlset(`<url>${extensions}<loc>${page(1)}</loc></url>`))).toEqual([page(1)]);
  });

  it('may have a prefix of its own', async () => {
    const xml = `<sm:urlset xmlns:sm="${NAMESPACE}"><sm:url><sm:loc>${page(1)}</sm:loc><loc>${page(2)}</loc></sm:url></sm:urlset>`;
    expect(await summary(xml)).toEqual([page(1)]);
  });

  it('may be in another encoding', async () => {
    const xml = `<?xml version="1.0" encoding="X"?>${urlset(entry('https://shop.example/é')).replace(/^<.*?>/, '')}`;
    const url = ['https://shop.example/é'];
    expect(await summary(Buffer.from(xml.replace('X', 'ISO-8859-1'), 'latin1'))).toEqual(url);
    expect(await summary(Buffer.from(`\uFEFF${xml.replace('X', 'UTF-16')}`, 'utf16le'))).toEqual(url);
    expect(await summary(Buffer.from(xml.replace('X', 'UTF-16'), 'utf16le').swap16())).toEqual(url);
    expect(await summary(`\uFEFF${xml.replace('X', 'utf-16')}`)).toEqual(url);
    expect(await summary(xml.replace('X', 'unheard-of'))).toEqual(url);
  });

  it('gives the same however its bytes are split', async () => {
    const xml = urlset(entry('https://shop.example/商品?a&amp;b') + entry('<![CDATA[https://shop.example/é]]>'));
    const sources: Source[] = [xml, gzipSync(xml), 'https://shop.example/é\r\nhttps://shop.example/商品\n'];
    for (const source of sources) {
      const whole = await collect(chunksOf(source, 1e6));
      expect(whole).toHaveLength(2);
      for (const size of [1, 2, 3, 7, 64]) expect(await collect(chunksOf(source, size))).toEqual(whole);
    }
  });

  it('is empty, without a warning, when it has no pages', async () => {
    expect(await read(urlset(''))).toEqual([]);
    expect(await read(`<urlset/>`)).toEqual([]);
  });
});

describe('the last change', () => {
  it.each([
    ['2026', Date.UTC(2026, 0)],
    ['2026-11', Date.UTC(2026, 10)],
    ['2026-11-23', Date.UTC(2026, 10, 23)],
    ['2026-11-23T10:20Z', Date.UTC(2026, 10, 23, 10, 20)],
    ['2026-11-23T10:20:30.45+01:00', Date.UTC(2026, 10, 23, 9, 20, 30, 450)],
    ['2026-11-23T10:20:30-0130', Date.UTC(2026, 10, 23, 11, 50, 30)],
    [' 2026-11-23 10:20:30 ', Date.UTC(2026, 10, 23, 10, 20, 30)],
    ['2026-13-01', null],
    ['yesterday', null],
    ['23.11.2026', null],
    ['', null],
  ])('of %s', async (text, lastModMs) => {
    const items = await read(urlset(entry(page(1), `<lastmod>${text}</lastmod>`)));
    expect(items).toEqual([{ kind: 'url', loc: page(1), lastModMs }]);
  });
});

describe('a list of one URL a line', () => {
  it('is read with any line ends, with blank lines, and without a final line end', async () => {
    expect(await summary(`\uFEFF\n${page(1)}\r\n\r\n  ${page(2)}  \r${page(3)}`)).toEqual([page(1), page(2), page(3)]);
  });

  it('reports how many lines are not URLs', async () => {
    expect(await summary(`# ours\n${page(1)}\n/item/2\nhttps://\n`)).toEqual([
      page(1),
      'cut: 3 entries without a usable URL',
    ]);
  });
});

describe('a path in a sitemap', () => {
  it('is resolved where the file is', async () => {
    const base = 'https://shop.example/maps/1.xml';
    const at = async (source: string): Promise<string[]> =>
      summaryOf(await Array.fromAsync(readSitemap(chunksOf(source), { base })));
    expect(await at(urlset(entry(' /item/1 ') + entry('//cdn.example/2')))).toEqual([page(1), 'https://cdn.example/2']);
    expect(await at('/item/1\nNot found\n')).toEqual([page(1), 'cut: 1 entry without a usable URL']);
  });
});

describe('a feed', () => {
  it('of RSS gives its items', async () => {
    const xml = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>https://shop.example/</link>
      <atom:link href="https://shop.example/feed" rel="self"/><image><link>https://shop.example/logo</link></image>
      <item><title>One</title><atom:link href="https://shop.example/9"/><link>
        ${page(1)}</link><guid>https://shop.example/?p=1</guid><pubDate>Mon, 23 Nov 2026 10:20:30 +0900</pubDate></item>
      <item><guid isPermaLink="true">${page(2)}</guid></item>
      <item><link><![CDATA[${page(3)}]]></link><pubDate>23 Nov 2026 10:20 GMT</pubDate></item>
      <item><title>No link</title><guid isPermaLink="false">${page(4)}</guid></item></channel></rss>`;
    expect(await read(xml)).toEqual([
      { kind: 'url', loc: page(1), lastModMs: Date.UTC(2026, 10, 23, 1, 20, 30) },
      { kind: 'url', loc: page(2), lastModMs: null },
      { kind: 'url', loc: page(3), lastModMs: Date.UTC(2026, 10, 23, 10, 20) },
    ]);
  });

  it('of RSS 1.0 gives its items', async () => {
    const xml = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
      <channel rdf:about="x"><link>https://shop.example/</link><items><rdf:Seq/></items></channel>
      <item rdf:about="${page(1)}"><link>${page(1)}</link></item></rdf:RDF>`;
    expect(await summary(xml)).toEqual([page(1)]);
  });

  it('of Atom gives its entries', async () => {
    const xml = `<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://shop.example/"/>
      <entry><link rel="self" href="https://shop.example/x"/><link rel="alternate" type="text/html" href="${page(1)}"/>
      <link rel="alternate" hreflang="de" href="https://shop.example/de"/><updated>2026-11-23T10:00:00Z</updated></entry>
      <entry><link href="${page(2)}"/><modified>2026-11-24</modified></entry></feed>`;
    expect(await read(xml)).toEqual([
      { kind: 'url', loc: page(1), lastModMs: Date.UTC(2026, 10, 23, 10) },
      { kind: 'url', loc: page(2), lastModMs: Date.UTC(2026, 10, 24) },
    ]);
  });

  it('without items is empty', async () => {
    expect(await read('<rss version="2.0"><channel/></rss>')).toEqual([]);
  });
});

describe('what follows the root element', () => {
  it.each([
    ['text', 'cached at 10:20 & <1 s'],
    ['a script', '<script>if (a < b) stop();</script><img src=x>'],
    ['an open element', '<p>Served by'],
    ['bytes of nothing', '\0'.repeat(100)],
    ['an endless comment', `<!--${'x'.repeat(600_000)}`],
  ])('does not count: %s', async (_, tail) => {
    expect(await summary(urlset(pages(1, 2)) + tail)).toEqual([page(1), page(2)]);
    expect(await summary(gzipSync(urlset(pages(1, 2)) + tail))).toEqual([page(1), page(2)]);
  });
});

describe('a compressed sitemap', () => {
  it('is recognized by its first bytes', async () => {
    expect(await summary(gzipSync(urlset(pages(1, 3))))).toEqual([page(1), page(2), page(3)]);
    expect(await summary(gzipSync(`${page(1)}\n`))).toEqual([page(1)]);
  });

  it('may be compressed in several parts', async () => {
    const xml = urlset(pages(1, 2));
    const parts = Buffer.concat([gzipSync(xml.slice(0, 100)), gzipSync(xml.slice(100))]);
    expect(await summary(parts)).toEqual([page(1), page(2)]);
  });

  it('that ends early yields its entries, and is reported', async () => {
    const list = Array.from({ length: 5_000 }, (_, i) => page(i)).join('\n');
    const bytes = gzipSync(list);
    const found = await summary(bytes.subarray(0, bytes.length / 2));
    expect(found.length).toBeGreaterThan(1_000);
    expect(found.slice(0, -1)).toEqual(list.split('\n').slice(0, found.length - 1));
    expect(found.at(-1)).toBe('cut: broken gzip: unexpected end of file');
  });

  it('is read as by a browser: whatever its checksum, and without what follows its end', async () => {
    const bytes = gzipSync(urlset(pages(1, 3)));
    const found = [page(1), page(2), page(3)];
    expect(await summary(bytes.subarray(0, -8))).toEqual(found);
    expect(await summary(Buffer.concat([bytes, Buffer.from('\n<!-- cached -->')]))).toEqual(found);
    bytes[bytes.length - 6]! ^= 1;
    expect(await summary(bytes)).toEqual(found);
  });

  it('that is damaged is reported', async () => {
    const bytes = gzipSync(urlset(pages(1, 2_000)), { level: constants.Z_NO_COMPRESSION });
    // The length of the second block.
    bytes[10 + 5 + bytes.readUInt16LE(11) + 1]! ^= 1;
    const found = await summary(bytes);
    expect(found[0]).toBe(page(1));
    expect(found.at(-1)).toBe('cut: broken gzip: invalid stored block lengths');
    expect((await summary(Buffer.from([0x1f, 0x8b, 1, 2, 3]))).at(-1)).toMatch(/^cut: broken gzip/);
  });

  it('that is a bomb stops at the limit', async () => {
    const start = urlset(pages(1, 2)).replace('</urlset>', '');
    const spaces = gzipSync(' '.repeat(1_000_000));
    const bomb = Buffer.concat([gzipSync(start), ...Array.from({ length: 400 }, () => spaces)]);
    let taken = 0;
    async function* counted(): AsyncGenerator<Uint8Array> {
      for await (const chunk of chunksOf(bomb, 1_000)) {
        taken += chunk.length;
        yield chunk;
      }
    }
    const items = await collect(counted(), { maxBytes: 2_000_000, maxUrls: 50_000 });
    expect(items.map((item) => item.kind)).toEqual(['url', 'url', 'cut']);
    expect(items.at(-1)).toEqual({ kind: 'cut', why: 'longer than 2000000 bytes' });
    expect(taken).toBeLessThan(bomb.length / 2);
  });
});

describe('the limits', () => {
  const limits = { maxBytes: 1_000_000, maxUrls: 3 };

  it('are those of sitemaps.org', () => {
    expect(SITEMAP_LIMITS).toEqual({ maxBytes: 50 * 2 ** 20, maxUrls: 50_000 });
  });

  it('admit exactly that many URLs', async () => {
    expect(await summary(urlset(pages(1, 3)), limits)).toEqual([1, 2, 3].map(page));
    const cut = [...[1, 2, 3].map(page), 'cut: more than 3 URLs'];
    expect(await summary(urlset(pages(1, 4)), limits)).toEqual(cut);
    expect(await summary([1, 2, 3, 4].map(page).join('\n'), limits)).toEqual(cut);
  });

  it('admit exactly that many bytes, and never half a URL', async () => {
    const xml = urlset(pages(1, 3));
    const text = [1, 2, 3].map(page).join('\n');
    for (const source of [xml, text]) {
      const { length } = source;
      expect(await summary(source, { maxBytes: length, maxUrls: 3 })).toEqual([1, 2, 3].map(page));
      for (const bytes of [length - 1, Math.floor(length / 2), 1]) {
        const found = await summary(source, { maxBytes: bytes, maxUrls: 3 });
        expect(found.pop()).toBe(`cut: longer than ${bytes} bytes`);
        expect([1, 2, 3].map(page)).toEqual(expect.arrayContaining(found));
      }
    }
  });

  it('stop reading the source', async () => {
    let isClosed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        yield Buffer.from(`<urlset>`);
        for (let i = 1; ; i++) yield Buffer.from(entry(page(i)));
      } finally {
        isClosed = true;
      }
    }
    expect((await collect(endless(), limits)).at(-1)).toEqual({ kind: 'cut', why: 'more than 3 URLs' });
    expect(isClosed).toBe(true);
  });
});

describe('a file that is not a sitemap', () => {
  it.each<[string, Source, string[]]>([
    ['an empty file', '', ['cut: the file is empty']],
    ['white space', ' \n ', ['cut: the file is empty']],
    ['a page', '<!DOCTYPE html><html><body>Not found</body></html>', ['cut: not a sitemap: it is <html>']],
    ['another document', '<opml version="2.0"><body/></opml>', ['cut: not a sitemap: it is <opml>']],
    ['a declaration alone', '<?xml version="1.0"?>', ['cut: broken XML: it has no element']],
    ['text', 'Not found', ['cut: 1 entry without a usable URL']],
  ])('is reported: %s', async (_, source, expected) => {
    expect(await summary(source)).toEqual(expected);
  });
});

describe('broken XML', () => {
  it.each([
    ['that ends early', `<urlset>${pages(1, 2)}<url><loc>${page(3)}`, 'it ends inside <loc>'],
    [
      'with an open element',
      `<urlset>${pages(1, 2)}<url><loc>${page(3)}</url>${pages(4, 5)}</urlset>`,
      '<loc> is not closed',
    ],
    ['with a second document', urlset(pages(1, 2)) + urlset(pages(3, 4)), 'it has a second root element'],
    ['nested without end', `<urlset>${pages(1, 2)}${'<a>'.repeat(100_000)}`, 'elements nested deeper than 64'],
    [
      'with an endless comment',
      `<urlset>${pages(1, 2)}<!--${'x'.repeat(400_000)}`,
      'a tag, comment or section does not end within 262144 characters',
    ],
    [
      'with an endless attribute',
      `<urlset>${pages(1, 2)}<a b="${'x'.repeat(400_000)}`,
      'a tag, comment or section does not end within 262144 characters',
    ],
  ])('%s yields the entries before the fault, and is reported', async (_, xml, why) => {
    const items = await collect(chunksOf(xml, 10_000));
    expect(items.map((item) => (item.kind === 'cut' ? item.why : item.loc))).toEqual([
      page(1),
      page(2),
      `broken XML: ${why}`,
    ]);
  });

  it('skips and counts entries without a usable URL', async () => {
    const long = `https://shop.example/${'x'.repeat(2_048)}`;
    const bad = [entry('/item/2'), entry('ftp://shop.example/'), entry(long), entry('x'.repeat(9_000)), '<url></url>'];
    expect(await summary(urlset(entry(page(1)) + bad.join('') + entry(page(3))))).toEqual([
      page(1),
      page(3),
      'cut: 5 entries without a usable URL',
    ]);
  });

  it('never throws, whatever the bytes are', async () => {
    const piece = fc.constantFrom(
      '<urlset>', '</urlset>', '<url>', '</url>', '<loc>', '</loc>', '<loc/>', '<![CDATA[', ']]>', '<!--', '-->', '&',
      '&#x110000;', '<', '>', '"', page(1), '\n', '\0', '<?', '<!DOCTYPE a [', '<a:b c="',
    ); // prettier-ignore
    const source = fc.oneof(
      fc.array(piece).map((pieces) => Buffer.from(pieces.join(''))),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      fc.uint8Array().map((bytes) => Buffer.from([0x1f, 0x8b, 8, ...bytes])),
    );
    await fc.assert(
      fc.asyncProperty(source, async (bytes) => {
        const items = await read(bytes);
        expect(items.slice(0, -1).every((item) => item.kind !== 'cut')).toBe(true);
      }),
    );
  });
});

describe('a source that fails', () => {
  it.each([
    ['plain', (text: string): Uint8Array => Buffer.from(text)],
    ['compressed', (text: string): Uint8Array => gzipSync(text)],
  ])('propagates its own error: %s', async (_, encode) => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield* chunksOf(encode(urlset(pages(1, 2))), 20);
      throw new Error('connection reset');
    }
    await expect(collect(failing())).rejects.toThrow('connection reset');
  });
});

describe('a sitemap as a stream', () => {
  it.each([
    ['plain', (text: string): Uint8Array => Buffer.from(text)],
    ['compressed', (text: string): Uint8Array => gzipSync(text, { level: constants.Z_NO_COMPRESSION })],
  ])('is read only as far as its entries are consumed: %s', async (_, encode) => {
    let taken = 0;
    async function* counted(): AsyncGenerator<Uint8Array> {
      for await (const chunk of chunksOf(encode(urlset(pages(1, 20_000))), 4_096)) {
        taken += chunk.length;
        yield chunk;
      }
    }
    const items = readSitemap(counted());
    for (let i = 1; i <= 100; i++) expect(await items.next()).toMatchObject({ value: { loc: page(i) } });
    // Of more than a megabyte; Node's gunzip takes a few of its buffers ahead.
    expect(taken).toBeLessThan(200_000);
    await items.return(undefined);
  });
});
