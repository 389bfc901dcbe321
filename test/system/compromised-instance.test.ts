/**
 * What a taken instance can do to a real run: its key, user data and state folder are those of a real process, which
 * stands still meanwhile.
 *
 * @module-tag nightly
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { manifestKey, partKey } from '../../shared/domain/keys.ts';
import { NO_PROGRESS } from '../../shared/wire/callbacks.ts';
import { encodeManifest, type ItemResult } from '../../shared/wire/part.ts';
import { signPart } from '../../shared/wire/part-signature.ts';
import { importPrivateKey, importPublicKey, type KeyPair, sha256Hex } from '../../shared/wire/signature.ts';
import { type AnyUserData, parseUserData } from '../../shared/wire/settings.ts';
import { Caller } from '../contract/core/server/caller.ts';
import { waitFor } from '../support/processes.ts';
import { clientsFor, type SandboxClients } from '../support/sandbox/clients.ts';
import type { SandboxInstance } from '../support/sandbox/start-sandbox.ts';
import { expectedRow, productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const PRODUCTS = 240;
const INTERVAL_MS = 300;
const FORGED = 'made up by an attacker';

/** What an attacker has after taking a machine. */
interface Taken {
  instance: SandboxInstance & { pid: number };
  settings: AnyUserData;
  keys: KeyPair;
}

/** Numbers and IDs of products. */
interface Product {
  n: number;
  product_id: string;
}

describe('a compromised instance', () => {
  const { shop, fleet, sandbox, startSandbox, open, crawl } = useStage({ products: PRODUCTS });

  let clients: SandboxClients;
  afterEach(() => clients.destroy());

  async function begin(products: number) {
    await startSandbox();
    clients = clientsFor(sandbox);
    await open(productIds(products), {
      site: { interval: `${INTERVAL_MS}ms` },
      run: { deadline: '100s', min_instances: 3, max_instances: 3 },
    });
    return crawl(12);
  }

  /** The serving instances. */
  const serving = async (): Promise<Taken['instance'][]> =>
    (await sandbox.instances()).flatMap(({ pid, ...rest }) =>
      rest.state === 'running' && pid !== null ? [{ ...rest, pid }] : [],
    );

  async function take(instance: Taken['instance']): Promise<Taken> {
    const { UserData } = await clients.ec2.describeInstanceAttribute({
      InstanceId: instance.id,
      Attribute: 'userData',
    });
    const settings = parseUserData(Buffer.from(UserData!.Value!, 'base64').toString());
    const { run, slot, epoch } = settings;
    const file = join(instance.folder, 'state', `${run}-${slot}-${epoch}`, 'identity.json');
    const { privateKey, publicKey } = JSON.parse(readFileSync(file, 'utf8')) as Record<keyof KeyPair, string>;
    const keys = { privateKey: importPrivateKey(privateKey), publicKey: importPublicKey(publicKey) };
    return { instance, settings, keys };
  }

  const planned = async (): Promise<Product[]> =>
    (await fleet.query('select n, product_id from crawlfleet_items order by n')) as unknown as Product[];

  /** Rows for every product of the run. */
  function forgedGzip(products: readonly Product[]): Buffer {
    const results = products.map(({ n, product_id: id }): ItemResult => {
      const row = { ...expectedRow(1, id), title: FORGED };
      const at = new Date().toISOString();
      return { n, id, url: shop.productUrl, at, attempts: 1, outcome: 'stored', rows: [{ key: null, row }] };
    });
    return gzipSync(results.map((result) => JSON.stringify(result)).join('\n'));
  }

  /** The attacker stores a part in that place: signed with its own key, or not at all. */
  async function putPart(
    { settings, keys }: Taken,
    place: EpochId & { seq: number },
    gzip: Buffer,
    by: 'signed' | 'none',
  ) {
    const { run, s3 } = settings;
    const bytes = by === 'signed' ? signPart(gzip, { run, ...place }, keys.privateKey) : gzip;
    const sha256 = sha256Hex(bytes);
    const key = partKey(run, { ...place, sha256 });
    await clients.s3.putObject({ Bucket: s3.bucket, Key: key, Body: bytes });
    return { seq: place.seq, key, sha256, sizeBytes: bytes.length };
  }

  const column = async (sql: string): Promise<string[]> =>
    (await fleet.query(sql)).flatMap((row) => Object.values(row).map(String));
  const forgedRows = (): Promise<string[]> =>
    column(`select product_id from product_snapshots where title = '${FORGED}' order by product_id`);
  const alarms = async (): Promise<string> =>
    (await column(`select detail from crawlfleet_events where kind = 'alarm'`)).join('\n');

  it('F58: adds no row of a product that it was never granted, by a part that its own signed heartbeat names', async () => {
    const run = await begin(120);
    const [first] = await serving();
    process.kill(first!.pid, 'SIGSTOP');
    const taken = await take(first!);
    const { settings, keys } = taken;
    const { run: id, slot, epoch, token } = settings;
    const products = await planned();
    const stored = await putPart(taken, { slot, epoch, seq: 90 }, forgedGzip(products), 'signed');
    const forger = new Caller(
      {
        baseUrl: settings.callbackUrl.replace(/\/+$/, ''),
        run: { id, publicKey: settings.runPublicKey },
        slot,
        epoch,
        token,
        instanceId: first!.id,
        now: Date.now,
      },
      keys,
    );
    // Counters begin at the clock when the process starts, and grow far more slowly.
    forger.counter = Date.now();
    expect((await forger.orders({ parts: [{ ...stored, products: products.length }] })).partsAck).toBe(90);
    // It is silent from then on, and wakes when the run has moved on.
    const lost = `select slot from crawlfleet_instances where slot = ${slot} and epoch = ${epoch} and reason is not null`;
    await waitFor(async () => (await fleet.query(lost)).length > 0, { what: 'the loss', timeoutMs: 60_000 });
    process.kill(first!.pid, 'SIGCONT');
    const end = await endOf(run);
    const report = expectAllStored(end, 120);
    const granted = await column(
      `select i.product_id from crawlfleet_items i join crawlfleet_chunks c on c.run_id = i.run_id and i.n between c.first_n and c.last_n
       join crawlfleet_grants g on g.run_id = c.run_id and g.idx = c.idx where g.slot = ${slot} and g.epoch = ${epoch}`,
    );
    const forged = await forgedRows();
    expect(granted.length).toBeLessThan(products.length);
    expect(forged).not.toEqual([]);
    expect(forged.filter((product) => !granted.includes(product))).toEqual([]);
    expect(await alarms()).toMatch(
      new RegExp(`\\d+ results in ${stored.key} were put aside: .*slot ${slot} epoch ${epoch}`),
    );
    expect((await fleet.run('verify', '--json')).stdout).toContain(`parts: ${slot}/${epoch}/90`);
    await expectSound(fleet, report, shop, INTERVAL_MS);
  });

  it('F58: adds no row by objects in the places of other instances', async () => {
    const run = await begin(PRODUCTS);
    const [attacker, victim, other] = await Promise.all((await serving()).map(take));
    const gzip = forgedGzip(await planned());
    const planted: string[] = [];
    for (const { settings } of [victim!, other!])
      for (const epoch of [settings.epoch, settings.epoch + 1])
        for (const [i, signature] of (['none', 'signed'] as const).entries()) {
          const place = { slot: settings.slot, epoch, seq: 90 + i };
          planted.push((await putPart(attacker!, place, gzip, signature)).key);
        }
    const { run: id, slot, epoch, s3 } = victim!.settings;
    const manifest = encodeManifest(
      {
        version: 1,
        run: id,
        slot,
        epoch,
        instanceId: victim!.instance.id,
        parts: [],
        progress: { ...NO_PROGRESS },
        closedBy: 'instance',
        closedAt: new Date().toISOString(),
      },
      attacker!.keys.privateKey,
    );
    await clients.s3.putObject({ Bucket: s3.bucket, Key: manifestKey(id, slot, epoch), Body: manifest });
    // Only what a lost instance has left is looked for in the bucket.
    await clients.ec2.terminateInstances({ InstanceIds: [victim!.instance.id] });
    const report = expectAllStored(await endOf(run), PRODUCTS);
    expect(await forgedRows()).toEqual([]);
    await expectTrueRows(fleet, 1, productIds(PRODUCTS));
    const said = await alarms();
    const ofVictim = planted.filter((key) => key.includes(`/${slot}/${epoch}/`));
    expect(ofVictim).toHaveLength(2);
    for (const key of ofVictim) expect(said).toContain(`part ${key} of a lost instance is left out: it is not signed`);
    expect(said).toContain(`the object ${manifestKey(id, slot, epoch)} is neither from slot ${slot} epoch ${epoch}`);
    await expectSound(fleet, report, shop, INTERVAL_MS);
  });
});
