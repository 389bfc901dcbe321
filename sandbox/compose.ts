/** Assembles the sandbox: network, EC2 with its hosts, ELBv2, S3, and the endpoint in front of them. */
import { randomBytes, createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../shared/ports/clock.ts';
import type { Random } from '../shared/ports/random.ts';
import { ConditionBoard } from './conditions.ts';
import { createEc2Actions } from './ec2/actions.ts';
import { createCatalogue } from './ec2/catalogue.ts';
import { Fleet } from './ec2/fleet.ts';
import { LaunchLedger } from './ec2/launch-ledger.ts';
import { RequestLimits } from './ec2/request-limits.ts';
import { TagStore } from './ec2/tag-store.ts';
import { findKnown } from './ec2/context.ts';
import { createElbActions } from './elb/actions.ts';
import { httpProbe } from './elb/health-check.ts';
import { ElbRegistry } from './elb/registry.ts';
import type { EndTimer } from './end-timer.ts';
import { FaultBook } from './faults.ts';
import { openIdFile } from './id-file.ts';
import { ProcessMachine } from './host/machine.ts';
import { startSupervisor } from './supervisor/start-supervisor.ts';
import { closeServer, listen } from './listening.ts';
import { openLog } from './log.ts';
import { AddressPool, takeNetwork } from './network.ts';
import { BucketStore } from './s3/bucket-store.ts';
import { MultipartUploads } from './s3/multipart-uploads.ts';
import { createQuotasActions } from './quotas/actions.ts';
import { createSsmActions } from './ssm/actions.ts';
import { startEndpoint } from './server/endpoint.ts';
import type { StandInPlace } from './flags.ts';
import { createServer } from 'node:net';
import { AppError } from '../shared/domain/errors.ts';
import { ACCOUNT_ID } from './ids.ts';
import { openForeignEc2 } from './stand-in/foreign-ec2.ts';
import { StandIn } from './stand-in/stand-in.ts';

/** 127.A.1.0 to 127.A.1.255. */
const BALANCER_ADDRESSES = { first: 256, count: 256 };

const CALLER = { Arn: `arn:aws:iam::${ACCOUNT_ID}:root`, UserId: ACCOUNT_ID, Account: ACCOUNT_ID };

export interface SandboxOptions {
  port: number;
  dataDir: string;
  region: string;
  allowedBundles: ReadonlySet<string>;
  /** Null: its instances are launched here. */
  standInFor: StandInPlace | null;
  controlToken: string;
  /** Environment of every instance: the search path, and what its image would provide. */
  environment: Record<string, string>;
  clock: Clock;
  random: Random;
  onShutdown: (why: string) => void;
  timer: EndTimer;
}

export interface Sandbox {
  endpoint: string;
  network: string;
  log: (event: string, fields?: Record<string, unknown>) => void;
  /** Ends every instance and every listener. Objects stay in the data folder. */
  close(): Promise<void>;
}

/** Throws AppError `platform`, `port-taken` or `sandbox-failed` (the data folder is in use). */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { clock, dataDir, region } = options;
  const network = await takeNetwork(Math.floor(options.random.next() * 200));
  const lock = await lockDataFolder(dataDir).catch(async (error: unknown) => {
    await network.release();
    throw error;
  });
  // A new folder for each start: the supervisor of a killed sandbox must never find the instances of the next one.
  const instanceFolder = join(dataDir, 'instances', randomBytes(4).toString('hex'));
  mkdirSync(instanceFolder, { recursive: true, mode: 0o700 });
  const log = openLog(join(dataDir, 'sandbox.log'), clock);
  const supervisor = startSupervisor(instanceFolder, (message) => log.write('supervisor', { message }));

  const faults = new FaultBook();
  const conditions = new ConditionBoard();
  const tags = new TagStore();
  const catalogue = createCatalogue(region, network.cidr);
  const addresses = new Map(catalogue.subnets.map((s) => [s.id, new AddressPool(network, s.firstOffset, s.size)]));
  const { environment } = options;
  const allowedBundles = await openIdFile(join(dataDir, 'allowed-bundles'), options.allowedBundles);
  const fleet: Fleet = new Fleet({
    clock,
    makeMachine: (spec) =>
      new ProcessMachine({
        spec,
        clock,
        folder: instanceFolder,
        allowedBundles,
        environment,
        faults,
        onPowerOff: () => fleet.poweredOff(spec.id),
      }),
    tags,
    region,
    addresses,
    conditions,
    log: log.write,
  });
  const ec2 = {
    clock,
    conditions,
    faults,
    catalogue,
    fleet,
    tags,
    launches: new LaunchLedger(),
    snapshots: new Set<string>(),
    addresses,
  };
  const registry = new ElbRegistry();
  const s3 = { clock, buckets: new BucketStore(join(dataDir, 's3')), uploads: new MultipartUploads() };

  let standIn: StandIn | null = null;

  const closeParts = async (): Promise<void> => {
    // Before anything else: the other endpoint must be notified of instances that end here while it still runs.
    await standIn?.close();
    await Promise.all([fleet.close(), registry.close()]);
    await supervisor.close();
    await network.release();
    await lock.release();
    await log.close();
  };
  try {
    const endpoint = await startEndpoint(options.port, {
      clock,
      faults,
      conditions,
      limits: new RequestLimits(clock),
      log,
      s3,
      jsonActions: new Map([...createQuotasActions(conditions, region), ...createSsmActions(fleet, clock)]),
      actions: {
        // Every caller is the account itself: keys are not checked here.
        sts: new Map([['GetCallerIdentity', () => CALLER]]),
        ec2: createEc2Actions(ec2),
        elbv2: createElbActions({
          clock,
          conditions,
          faults,
          catalogue,
          registry,
          addresses: new AddressPool(network, BALANCER_ADDRESSES.first, BALANCER_ADDRESSES.count),
          probe: httpProbe,
          findInstance: (id) => findKnown(id, ec2),
        }),
      },
      control: {
        token: options.controlToken,
        fleet,
        faults,
        conditions,
        clock,
        shutdown: options.onShutdown,
        timer: options.timer,
        allowBundle: (sha256) => allowedBundles.add(sha256),
      },
    });
    if (options.standInFor) {
      const foreign = await openForeignEc2({ ...options.standInFor, region });
      const booted = await openIdFile(join(dataDir, 'booted-instances'));
      standIn = new StandIn({ clock, catalogue, fleet, log, foreign, booted });
      standIn.start();
      log.write('stand-in', { ...options.standInFor });
    }
    log.write('started', { endpoint: endpoint.url, network: network.cidr, region });
    return {
      endpoint: endpoint.url,
      network: network.cidr,
      log: log.write,
      async close() {
        await endpoint.close();
        await closeParts();
      },
    };
  } catch (error) {
    await closeParts();
    throw error;
  }
}

/**
 * Holds the folder until `release`, or until this process ends: an abstract socket is a name in the kernel, so a killed
 * sandbox leaves nothing behind. Throws AppError `sandbox-failed` when another sandbox holds it.
 */
async function lockDataFolder(folder: string): Promise<{ release: () => Promise<void> }> {
  const name = createHash('sha256').update(realpathSync(folder)).digest('hex');
  const server = createServer((socket) => socket.destroy());
  await listen(server, { path: `\0crawlfleet-sandbox-${name}` }).catch((cause: unknown) => {
    throw new AppError('sandbox-failed', `Another sandbox is using the data folder ${folder}`, {
      hint: 'Give each sandbox its own --data folder, or end the other one.',
      cause,
    });
  });
  return { release: () => closeServer(server) };
}
