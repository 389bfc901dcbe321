/** One case of sections.ts, in a process of its own: `sections-case.ts host|folder|none SECTIONS`. */
import { compileMapping } from '../../crawl-api/extract/compile-mapping.ts';
import { compilePattern } from '../../shared/adapters/steps/regex.ts';
import { median } from '../frame.ts';

const ROUNDS = 7;
const URLS = 2_000;

const [kind, given] = process.argv.slice(2);
const sections = Number(given);
const patternOf = (i: number): string =>
  kind === 'host'
    ? String.raw`^https?://(www\.)?shop${i}\.example/item/\d+`
    : String.raw`^https://shop\.example/[a-z]{2}/cat${i}/`;
const urlOf = (i: number): string =>
  kind === 'host'
    ? `https://shop${i}.example/item/${i}123`
    : `https://shop.example/en/${kind === 'none' ? 'x' : 'cat'}${i}/some-product-${i}`;

const pages = Array.from({ length: sections }, (_, i) => ({
  name: `section ${i}`,
  urlPatterns: [patternOf(i)],
  urlParsers: [],
  rows: null,
  fields: ['title', 'price', 'stock', 'brand', 'sku', 'text'].map((name) => ({
    name,
    steps: [{ type: 'css' as const, selector: `.section-${i} .${name}` }],
    required: name === 'title',
  })),
}));
const beforeCompileMs = performance.now();
const mapping = await compileMapping({ pages });
const compileMs = performance.now() - beforeCompileMs;
const patterns = pages.map(({ urlPatterns: [pattern] }) => compilePattern(pattern!));
const urls = Array.from({ length: URLS }, (_, i) => urlOf((i * 7_919) % sections));

function perUrlUs(urlsNow: readonly string[], choose: (url: string) => unknown): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    for (const url of urlsNow) choose(url);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / urlsNow.length;
  });
  return median(rounds);
}

const chooseUs = perUrlUs(urls, (url) => mapping.forUrl(url));
const patternsUs = perUrlUs(urls.slice(0, 50), (url) => patterns.find((pattern) => pattern.isIn(url)));
process.stdout.write(JSON.stringify({ chooseUs, patternsUs, compileMs }));
