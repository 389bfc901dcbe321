/**
 * Runs as the crawl API's user in the stage of browser-user.test.ts: fetches pages with the real browser source and
 * prints its findings as one JSON document. Its argument is the folder for profiles.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expectTitle } from '../browser/expect-title.ts';
import { createBrowserSource } from '../../../crawl-api/fetch/browser/browser-source.ts';
import { findChild, groupMemory, listGroup } from '../../../crawl-api/fetch/browser/process-group.ts';
import type { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';

const METADATA = '169.254.169.254';
const SHOP = '127.0.7.10';
const CALM_MS = 20_000;
const wrapper = process.env.CRAWLFLEET_CHROMIUM!;
const profileDirectory = process.argv[2]!;

const hits: Record<string, number> = {};

/** Requests the metadata service of the stage, which returns the number of its requests. */
const askMetadata = async (): Promise<number> =>
  Number(await fetch(`http://${METADATA}/latest/meta-data/`).then((reply) => reply.text()));
const askedBefore = await askMetadata();

/** A server that counts its requests, by `name`. */
async function serve(name: string, host: string, port: number, body: string): Promise<Server> {
  hits[name] = 0;
  const server = createServer((_, response) => {
    hits[name]!++;
    response.setHeader('content-type', 'text/html');
    response.end(body);
  }).listen(port, host);
  await once(server, 'listening');
  return server;
}

const servers = await Promise.all([
  // The stage runs the metadata service, as root: only root may listen on port 80.
  serve('shop', SHOP, 0, '<h1 id="t"></h1><script>document.getElementById("t").textContent = "built"</script>'),
  serve('crawlApi', '127.0.0.1', 8080, 'crawl API'),
  serve('localRoutes', '127.0.0.1', 8081, 'local routes'),
  serve('otherProgram', '127.0.0.1', 9090, 'another program'),
  // Listens as the proxy does; shows that a page that is not refused would be seen.
  serve('proxyPort', '127.0.0.1', 0, 'on a port of the proxy'),
]);
const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const shopUrl = `http://${SHOP}:${portOf(servers[0])}`;

function titleExtractor(): PageExtractor {
  let html = '';
  return {
    write: (text: string) => void (html += text),
    end() {
      const title = /<h1[^>]*>([^<]+)<\/h1>/.exec(html)?.[1];
      return title === undefined
        ? { rows: null, missing: 'title', links: [] }
        : { rows: [{ key: null, row: { title } }], missing: null, links: [] };
    },
  } as unknown as PageExtractor;
}

const status = (pid: number | string): Record<string, string> =>
  Object.fromEntries(
    readFileSync(`/proc/${pid}/status`, 'utf8')
      .split('\n')
      .map((line) => line.split(/:\s*/, 2) as [string, string]),
  );

const source = await createBrowserSource({
  executablePath: wrapper,
  localAddress: '127.0.7.9',
  guard: createAddressGuard({ productUrl: `${shopUrl}/p/{id}`, allowPrivate: false, forbidden: [] }),
  settings: { userAgent: 'examplebot/1.0', timeoutMs: 20_000, maxPageBytes: 1_000_000 },
  openExtractor: titleExtractor,
  expect: expectTitle(),
  patienceMs: 300,
  clock: systemClock,
  profileDirectory,
  onProblem: (text) => console.error(text),
  recycle: { pages: 2 },
});

const titles: unknown[] = [];
let groups: number[] = [];
const groupNow = (): number => findChild(profileArgument())!;
const profileArgument = (): string =>
  `--user-data-dir=${profileDirectory}/${readdirSync(profileDirectory).find((name) => name.startsWith('chromium-'))}`;

async function fetchPage(number: number): Promise<void> {
  const hooks = { onStart: () => {}, onFirstByte: () => {} };
  const result = await source.fetch(`${shopUrl}/p/${number}`, hooks, AbortSignal.timeout(CALM_MS));
  titles.push(result.kind === 'page' ? (result.extraction.rows?.[0]?.row.title ?? null) : result);
}

await fetchPage(1);
groups.push(groupNow());
const members = listGroup(groups[0]!).map((pid) => {
  const { Uid, Groups, CapEff, NoNewPrivs, Seccomp } = status(pid);
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  return {
    uid: Uid!.split('\t')[1],
    groups: Groups!.trim(),
    // Of the browser only; its sandbox gives helpers some that are valid only in a user namespace of their own.
    capabilities: pid === groups[0] ? CapEff : null,
    noNewPrivileges: NoNewPrivs === '1',
    seccomp: Seccomp === '2',
    command,
  };
});
const memoryBytes = groupMemory(groups[0]!);
await fetchPage(2);
await fetchPage(3);
groups = [...new Set([...groups, groupNow()])];
await source.close();
const left = groups.flatMap(listGroup);
const leftProfiles = readdirSync(profileDirectory);

/** The text of a page that the browser fetches directly, without the filtering proxy; empty when it gets none. */
async function browse(url: string): Promise<string> {
  const flags = ['--headless', '--dump-dom', '--no-proxy-server', '--disable-gpu', '--timeout=5000'];
  const options = { timeout: 30_000, killSignal: 'SIGKILL' } as const;
  const { stdout } = await promisify(execFile)(wrapper, [...flags, url], options).catch(() => ({ stdout: '' }));
  return /<body>(.*)<.body>/s.exec(stdout)?.[1]?.trim() ?? '';
}

const shopHits = hits.shop!;
const direct = {
  metadata: await browse(`http://${METADATA}/latest/meta-data/`),
  metadata6: await browse('http://[fd00:ec2::254]/latest/meta-data/'),
  crawlApi: await browse('http://127.0.0.1:8080/'),
  localRoutes: await browse('http://127.0.0.1:8081/'),
  otherProgram: await browse('http://127.0.0.1:9090/'),
  shop: await browse(shopUrl),
  proxyPort: await browse(`http://127.0.0.1:${portOf(servers[4])}/`),
};
// Zombies would still be children.
const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').trim();
const seen = {
  own: {
    uid: String(process.getuid!()),
    capabilities: status('self').CapEff,
    metadata: (await askMetadata()) - askedBefore - 1,
  },
  titles,
  members,
  memoryBytes,
  groups: groups.length,
  left,
  leftProfiles,
  children,
  direct,
  hits: { ...hits, shop: hits.shop! - shopHits },
};
console.log(JSON.stringify(seen));
process.exit(0);
