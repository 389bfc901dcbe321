/** One region: a VPC with its own network, EC2 with its hosts, and ELBv2. */
import type { Clock } from '../shared/ports/clock.ts';
import type { Random } from '../shared/ports/random.ts';
import { AwsError } from './aws-error.ts';
import type { ConditionBoard } from './conditions.ts';
import { createEc2Actions } from './ec2/actions.ts';
import { type Catalogue, createCatalogue } from './ec2/catalogue.ts';
import { type Ec2Context, findKnown } from './ec2/context.ts';
import { Fleet } from './ec2/fleet.ts';
import type { Machine, MachineSpec } from './ec2/machine.ts';
import { RequestLimits } from './ec2/request-limits.ts';
import { TagStore } from './ec2/tag-store.ts';
import { TokenLedger } from './ec2/token-ledger.ts';
import { createElbActions } from './elb/actions.ts';
import { httpHealthCheck } from './elb/health-check.ts';
import { ElbRegistry } from './elb/registry.ts';
import type { FaultBook } from './faults.ts';
import { identityOf } from './instance-role.ts';
import { AddressPool, type Network, takeNetwork } from './network.ts';
import { createQuotasActions, type JsonAction } from './quotas/actions.ts';
import type { QueryAction, QueryService } from './query-protocol.ts';
import { createSsmActions } from './ssm/actions.ts';

/** 127.A.1.0 to 127.A.1.255. */
const BALANCER_ADDRESSES = { first: 256, count: 256 };

export interface RegionOptions {
  clock: Clock;
  faults: FaultBook;
  conditions: ConditionBoard;
  random: Random;
  log: (event: string, fields: Record<string, unknown>) => void;
  makeMachine: (spec: MachineSpec, fleet: Fleet) => Machine;
}

type Others = Pick<Ec2Context, 'imagesOf'>;

export class Region {
  readonly name: string;
  readonly network: Network;
  readonly catalogue: Catalogue;
  readonly fleet: Fleet;
  readonly actions: Record<QueryService, ReadonlyMap<string, QueryAction>>;
  /** The actions of the JSON protocol, by the value of X-Amz-Target. */
  readonly jsonActions: ReadonlyMap<string, JsonAction>;
  /** EC2's; ELBv2 has none here. */
  readonly limits: RequestLimits;
  readonly #registry = new ElbRegistry();

  /** @param ordinal distinguishes the ids of its VPC from those of other regions */
  constructor(name: string, ordinal: number, network: Network, options: RegionOptions & Others) {
    const { clock, faults, conditions, log, makeMachine, imagesOf } = options;
    const tags = new TagStore();
    const catalogue = createCatalogue(name, network.cidr, ordinal);
    const addresses = new Map(catalogue.subnets.map((s) => [s.id, new AddressPool(network, s.firstOffset, s.size)]));
    const fleet: Fleet = new Fleet({
      clock,
      makeMachine: (spec) => makeMachine(spec, fleet),
      tags,
      region: name,
      addresses,
      conditions,
      log,
    });
    const ec2: Ec2Context = {
      clock,
      conditions,
      faults,
      catalogue,
      fleet,
      tags,
      launches: new TokenLedger(),
      copies: new TokenLedger(),
      snapshots: new Set(),
      addresses,
      imagesOf,
    };
    this.name = name;
    this.network = network;
    this.catalogue = catalogue;
    this.fleet = fleet;
    this.limits = new RequestLimits(clock);
    this.jsonActions = new Map([...createQuotasActions(conditions, name), ...createSsmActions(fleet, clock)]);
    this.actions = {
      sts: new Map([['GetCallerIdentity', (_, instanceId) => identityOf(instanceId)]]),
      ec2: createEc2Actions(ec2),
      elbv2: createElbActions({
        clock,
        conditions,
        faults,
        catalogue,
        registry: this.#registry,
        addresses: new AddressPool(network, BALANCER_ADDRESSES.first, BALANCER_ADDRESSES.count),
        healthCheck: httpHealthCheck,
        findInstance: (id) => findKnown(id, ec2),
      }),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.fleet.close(), this.#registry.close()]);
  }
}

/** The regions of a sandbox; each is opened by the first call that is signed for it. */
export class Regions {
  readonly #options: RegionOptions & Others;
  readonly #first: string;
  readonly #opening = new Map<string, Promise<Region>>();
  readonly #open: Region[] = [];

  /** @param first of calls that are signed for none */
  constructor(first: string, options: RegionOptions) {
    this.#first = first;
    const imagesOf = (name: string) => this.#open.find((region) => region.name === name)?.catalogue.images ?? [];
    this.#options = { ...options, imagesOf };
  }

  get all(): readonly Region[] {
    return this.#open;
  }

  /** Throws AppError `platform` when no network is free. */
  of(name = this.#first): Promise<Region> {
    let region = this.#opening.get(name);
    if (region === undefined) {
      const ordinal = this.#opening.size;
      region = takeNetwork(Math.floor(this.#options.random.next() * 200)).then((network) => {
        const opened = new Region(name, ordinal, network, this.#options);
        this.#open.push(opened);
        this.#options.log('region', { name, network: network.cidr });
        return opened;
      });
      this.#opening.set(name, region);
      region.catch(() => this.#opening.delete(name));
    }
    return region;
  }

  /** Takes the power from all machines in regions that fail whole; EC2 would show them as running. */
  strike(): void {
    for (const { name, fleet } of this.#open)
      if (this.isOut(name)) for (const { machine } of fleet.all()) void machine?.powerOff();
  }

  isOut(name: string): boolean {
    return this.#options.conditions.now.outages.includes(name);
  }

  /** Throws the answer of a region that fails whole. */
  refuseOutage(name = this.#first): void {
    if (this.isOut(name)) throw new AwsError('ServiceUnavailable', `The region ${name} is out`, 503);
  }

  /** Ends every instance and every load balancer. */
  async close(): Promise<void> {
    await Promise.all(this.#open.map((region) => region.close()));
  }

  /** Releases the networks of all regions, once nothing of them runs any more. */
  async release(): Promise<void> {
    await Promise.all(this.#open.map(({ network }) => network.release()));
  }
}

/** The region of the signature's scope; undefined without one. @param credential Authorization or X-Amz-Credential */
export const scopeRegionOf = (credential = ''): string | undefined =>
  /\/\d{8}\/([a-z0-9-]+)\/[a-z0-9-]+\/aws4_request/.exec(credential)?.[1];
