/**
 * The machine of boot.ts, as PID 1 of its own namespaces: bucket, main server and metadata service on private
 * addresses, the root as an overlay, and the user-data script in it. Everything it starts ends with it.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HELLO_PATH, helloSchema } from '../../../shared/wire/callbacks.ts';
import { packCrawlSettings } from '../../../shared/wire/crawl-settings.ts';
import type { UserData } from '../../../shared/wire/settings.ts';
import { HEADER, createKeyPair, exportPublicKey, verifyMac } from '../../../shared/wire/signature.ts';
import { renderUserData } from '../../../userdata/user-data.ts';
import type { Boot, BootPlan } from './boot.ts';
import { oneTitle } from '../one-title.ts';

const plan = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as BootPlan & { folder: string };
const METADATA = '169.254.169.254';
const [BUCKET, MAIN, OWN] = ['127.0.1.1', '127.0.2.1', '127.0.3.1'];
const SETTINGS_PATH = '/settings.json.gz';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const token = randomBytes(32).toString('hex');

const run = (file: string, ...args: string[]): void =>
  void execFileSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { PATH } });

async function serve(address: string, port: number, listener: RequestListener): Promise<void> {
  const server = createServer(listener).listen(port, address);
  await once(server, 'listening');
}

/** A copy of the root that disappears with the namespaces. */
function mountRoot(): string {
  const top = join(plan.folder, 'machine');
  mkdirSync(top);
  run('mount', '-t', 'tmpfs', 'tmpfs', top);
  const [upper, work, root] = ['upper', 'work', 'root'].map((name) => join(top, name)) as [string, string, string];
  for (const folder of [upper, work, root]) mkdirSync(folder);
  try {
    run('mount', '-t', 'overlay', 'overlay', '-o', `lowerdir=${plan.root},upperdir=${upper},workdir=${work}`, root);
  } catch {
    // Overlays cannot be stacked here, as in some containers.
    run('cp', '-a', `${plan.root}/.`, root);
  }
  run('mount', '-t', 'proc', 'proc', join(root, 'proc'));
  return root;
}

/** Adds what cloud images have and the small root lacks, and a readable console. */
function furnish(root: string): void {
  for (const name of ['console', 'null']) rmSync(join(root, 'dev', name), { force: true });
  run('mkfifo', '-m', '0600', join(root, 'dev/console'));
  writeFileSync(join(root, 'dev/null'), '');
  run('mount', '--bind', '/dev/null', join(root, 'dev/null'));
  mkdirSync(join(root, 'etc/systemd/system'), { recursive: true });
  copyFileSync(new URL('systemctl.sh', import.meta.url), join(root, 'usr/bin/systemctl'));
  chmodSync(join(root, 'usr/bin/systemctl'), 0o755);
  if (plan.imageNode !== undefined) {
    copyFileSync(plan.imageNode, join(root, 'usr/local/bin/node'));
    chmodSync(join(root, 'usr/local/bin/node'), 0o755);
  }
  if (plan.prepare !== undefined) run('chroot', root, '/bin/bash', '-c', plan.prepare);
}

const crawl = oneTitle('http://127.0.4.1/item/{id}');
const crawlSettings = packCrawlSettings(crawl);

function settings(): UserData {
  const now = Date.now();
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    version: 2,
    run: 'run-boot',
    slot: 0,
    epoch: 1,
    token,
    runPublicKey: exportPublicKey(createKeyPair().publicKey),
    callbackUrl: `http://${MAIN}:8700`,
    apiPort: 8080,
    localPort: 8081,
    bundle: { url: `http://${BUCKET}/bundles/b.tar.gz?X-Amz-Signature=a&x-id='GetObject'`, sha256: plan.sha256 },
    crawlSettings: { url: `http://${BUCKET}${SETTINGS_PATH}`, sha256: crawlSettings.sha256 },
    s3: { region: 'us-east-1', bucket: 'bucket', endpoint: `http://${BUCKET}` },
    startedAt: iso(now - 60_000),
    deadline: iso(now + 600_000),
    powerOffAt: iso(now + plan.powerOffInMs),
    heartbeatMs: 500,
    partMs: 1_000,
  };
}

/** The process of the machine that runs the program. */
function programProcess(): { program: string; user: string } {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [file, ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      if (args.find((arg) => !arg.startsWith('-')) !== '/opt/crawlfleet/crawl-api.mjs') continue;
      const uid = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!;
      const names = readFileSync(join(root, 'etc/passwd'), 'utf8').split('\n');
      const user = names.find((line) => line.split(':')[2] === uid)?.split(':')[0] ?? uid;
      return { program: `${file} = ${readlinkSync(`/proc/${pid}/exe`).split('/').slice(-4).join('/')}`, user };
    } catch {
      // The process has just ended.
    }
  }
  return { program: 'none', user: 'none' };
}

run('ip', 'link', 'set', 'lo', 'up');
run('ip', 'address', 'add', `${METADATA}/32`, 'dev', 'lo');
const root = mountRoot();
furnish(root);
let consoleText = '';
// A separate process reads the console, because a blocked read would keep this one from exiting. It opens the FIFO for
// reading and writing, so that the stream never ends and no writer waits for a reader.
const reader = spawn('sh', ['-c', 'exec cat <> "$1"', 'sh', join(root, 'dev/console')], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { PATH },
});
reader.stdout.setEncoding('utf8').on('data', (text: string) => (consoleText += text));
const given = settings();
const script = renderUserData(given, crawl.site);

const boot: Boot = {
  exitCode: null,
  console: '',
  systemctl: [],
  units: {},
  verified: { exitCode: null, output: '' },
  installed: [],
  hello: null,
  asked: [],
};
const log = join(root, 'var/log/systemctl.log');
const calls = (): string[] => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);

await serve(BUCKET, 80, (request, response) => {
  if (request.url === SETTINGS_PATH) return void response.end(crawlSettings.bytes);
  if (plan.archive === null)
    return void response
      .writeHead(403)
      .end('<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>');
  response.writeHead(200, { 'content-length': statSync(plan.archive).size });
  return void createReadStream(plan.archive).pipe(response);
});
await serve(METADATA, 80, (request, response) => {
  boot.asked.push(`${request.method} ${request.url}`);
  if (request.method === 'PUT') return void response.end('token');
  if (request.headers['x-aws-ec2-metadata-token'] !== 'token') return void response.writeHead(401).end();
  const answers: Record<string, string> = {
    '/latest/meta-data/instance-id': 'i-0123456789abcdef0',
    '/latest/meta-data/local-ipv4': OWN,
    '/latest/user-data': script,
  };
  const answer = answers[request.url!];
  return void (answer === undefined ? response.writeHead(404).end() : response.end(answer));
});
const startedMs = performance.now();
await serve(MAIN, 8700, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    if (request.url === HELLO_PATH && boot.hello === null) {
      const hello = helloSchema.parse(JSON.parse(body.toString('utf8')));
      const { run: runId, slot, epoch } = given;
      const envelope = { method: 'POST', path: HELLO_PATH, run: runId, slot, epoch };
      const macOk = verifyMac(token, envelope, body, String(request.headers[HEADER.signature]));
      const afterMs = Math.round(performance.now() - startedMs);
      boot.hello = { instanceId: hello.instanceId, macOk, ...programProcess(), afterMs };
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
});

mkdirSync(join(root, 'var/lib/cloud/instance/scripts'), { recursive: true });
writeFileSync(join(root, 'var/lib/cloud/instance/scripts/part-001'), script, { mode: 0o700 });
// Like cloud-init: executes the script itself with a nearly empty environment, even without HOME.
const child = spawn('chroot', [root, '/var/lib/cloud/instance/scripts/part-001'], {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: { PATH },
});
[boot.exitCode] = (await once(child, 'exit')) as [number | null];
const giveUpMs = performance.now() + 60_000;
while (boot.hello === null && !calls().some((call) => call.startsWith('poweroff')) && performance.now() < giveUpMs)
  await delay(20);

// The end marker follows everything written so far.
const END = '\0';
appendFileSync(join(root, 'dev/console'), END);
while (!consoleText.includes(END)) await delay(5);
boot.console = consoleText.slice(0, consoleText.indexOf(END));
boot.systemctl = calls();
for (const name of readdirSync(join(root, 'etc/systemd/system')).filter((file) => file.startsWith('crawlfleet')))
  boot.units[name] = readFileSync(join(root, 'etc/systemd/system', name), 'utf8');
const verify = spawnSync('chroot', [root, 'systemd-analyze', 'verify', '--man=no', ...Object.keys(boot.units)], {
  encoding: 'utf8',
  env: { PATH },
});
boot.verified = { exitCode: verify.status, output: `${verify.stdout}${verify.stderr}` };
boot.installed = existsSync(join(root, 'opt/crawlfleet')) ? readdirSync(join(root, 'opt/crawlfleet')).sort() : [];
process.stdout.write(JSON.stringify(boot), () => process.exit(0));
