/** A configuration for a paid run whose AWS is a sandbox: for the checks before a run. */
import { features } from '../../support/features.ts';
import { mkdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { ALL_CHECKS } from '../../../orchestrator/core/checks/all-checks.ts';
import { doctorCommand } from '../../../orchestrator/features/doctor/command.ts';
import { runCommand } from '../../../orchestrator/cli/commands/run.ts';
import type { Output } from '../../../orchestrator/cli/output.ts';
import { ensureBucket } from '../../../orchestrator/core/cloud/bucket.ts';
import { openDatabase } from '../../../orchestrator/core/db/connect.ts';
import { createTestDatabase, type TestEngine } from '../../support/mariadb/database.ts';
import { startSandbox } from '../../support/sandbox/start-sandbox.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { freePort } from '../../support/free-port.ts';

interface Line {
  id: string;
  title: string;
  level: 'ok' | 'warning' | 'failed';
  text: string;
  remedy: string | null;
}

export interface Diagnosis {
  exitCode: number;
  ready: boolean;
  checks: Line[];
  /** The lines of one check. */
  of(id: string): Line[];
  failed: string[];
}

/** Sections of fleet.yaml, each in YAML's flow form; default: a healthy configuration. */
export type Overrides = Partial<
  Record<'site' | 'mapping' | 'aws' | 'server' | 'run' | 'results' | 'query' | 'database', string>
>;

/** Whether this machine is in EC2, and where, does not matter here. */
export const KEYS = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_EC2_METADATA_DISABLED: 'true' };

export type DoctorStage = Awaited<ReturnType<typeof openDoctorStage>>;

export async function openDoctorStage(engine: TestEngine = 'sqlite') {
  const folder = tempDir('crawlfleet-doctor-');
  const [sandbox, database, shop, port] = await Promise.all([
    startSandbox(),
    createTestDatabase(engine),
    startShop(),
    freePort(),
  ]);
  const db = await openDatabase(database.url);
  await db.knex.schema.createTable('products', (t) => void t.string('id', 40));
  await db.knex('products').insert(Array.from({ length: 30 }, (_, i) => ({ id: `p${i}` })));
  await db.close();
  await ensureBucket({
    region: sandbox.region,
    endpoint: sandbox.endpoint,
    bucket: 'results',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  const aws = `region: ${sandbox.region}, endpoint: "${sandbox.endpoint}", bucket: results, instance_profile: crawl-instance, owner: doctor-test, balancer_scheme: internal`;
  const file = folder.file('fleet.yaml');

  function configure(changes: Overrides = {}): void {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      [
        `site: { product_url: "${shop.url}/{id}", interval: 10s, allow_private: true, user_agent: "bot/1 (+https://example.com/bot)", mapping: ${changes.mapping ?? '{ fields: { title: h1 } }'}${more(changes.site)} }`,
        `products: { query: "${changes.query ?? 'select id from products'}" }`,
        `database: { url: "${changes.database ?? database.url}" }`,
        `run: { deadline: 1h${more(changes.run)} }`,
        `results: { ${changes.results ?? 'table: snapshots'} }`,
        `aws: { ${withChanges(aws, changes.aws)} }`,
        `server: { ${changes.server ?? `url: "http://127.0.0.1:${port}", listen: "127.0.0.1:${port}"`} }`,
      ].join('\n'),
    );
  }

  /** `withBundle`: building it takes most of the time of all checks, so it is left out where it does not matter. */
  async function doctor(changes: Overrides = {}, { dryRun = false, withBundle = false } = {}): Promise<Diagnosis> {
    configure(changes);
    const { output, documents } = record();
    const made = ALL_CHECKS.filter((check) => withBundle || check.id !== 'bundle');
    const options = { configPath: file, flags: [], dryRun, environment: { ...KEYS }, features, checks: made };
    const exitCode = await doctorCommand(options, output);
    const { ready, checks } = documents[0] as { ready: boolean; checks: Line[] };
    return {
      exitCode,
      ready,
      checks,
      of: (id) => checks.filter((c) => c.id === id),
      failed: checks.filter((c) => c.level === 'failed').map((c) => c.id),
    };
  }

  return {
    sandbox,
    database,
    file,
    port,
    configure,
    doctor,
    /** A paid run, as `orchestrator run --yes`. */
    run(changes: Overrides = {}): Promise<number> {
      configure(changes);
      const { output } = record();
      return runCommand(
        { configPath: file, flags: [], dryRun: false, yes: true, environment: { ...KEYS }, features },
        output,
      );
    },
    fault: (...rules: unknown[]) => sandbox.control('POST', 'faults', rules),
    be: (conditions: unknown) => sandbox.control('PATCH', 'conditions', conditions),
    async calm() {
      await sandbox.control('DELETE', 'faults');
      await sandbox.control('DELETE', 'conditions');
    },
    instances: () => sandbox.instances(),
    async close() {
      await sandbox.stop();
      await database.drop();
      shop.server.close();
      folder.remove();
    },
  };
}

/** A site without a robots.txt: everything is allowed. */
async function startShop(): Promise<{ url: string; server: Server }> {
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

const more = (text: string | undefined): string => (text === undefined ? '' : `, ${text}`);

/** A changed key appears once. */
function withChanges(base: string, changes = ''): string {
  const changed = new Set([...changes.matchAll(/(\w+):/g)].map((m) => m[1]));
  const kept = base.split(', ').filter((pair) => !changed.has(pair.split(':')[0]));
  return [...kept, ...(changes === '' ? [] : [changes])].join(', ');
}

function record(): { output: Output; documents: unknown[] } {
  const documents: unknown[] = [];
  return { documents, output: { json: true, line: () => undefined, document: (value) => void documents.push(value) } };
}
