/** The cloud adapters for one region and endpoint, created and closed together. */
import type { Compute, CloudInstance, LaunchRequest, LaunchResult } from './compute.ts';
import { Ec2Compute } from './ec2-compute.ts';
import { Elbv2LoadBalancer } from './elbv2-load-balancer.ts';
import type { AwsOptions } from './sdk-clients.ts';
import type { LoadBalancer, Balancer, BalancerRequest } from './load-balancer.ts';

export interface AwsAdapters {
  compute: Compute;
  balancers: LoadBalancer;
  /** Closes the kept-alive connections. */
  close: () => void;
}

/** Makes no call: each SDK is loaded at the first use of its adapter. */
export function createAwsAdapters(options: AwsOptions): AwsAdapters {
  return closedTogether(new Ec2Compute(options), new Elbv2LoadBalancer(options));
}

/** EC2 at the endpoint; machines and load balancer at the sandbox that stands in for it. Makes no call either. */
export function createStandInAdapters(endpoint: AwsOptions, standIn: AwsOptions): AwsAdapters {
  const machines = new Ec2Compute(standIn);
  return closedTogether(new StandInCompute(endpoint, machines), new StandInLoadBalancer(standIn, machines));
}

function closedTogether(compute: Ec2Compute, balancers: Elbv2LoadBalancer): AwsAdapters {
  const close = (): void => [compute, balancers].forEach((adapter) => adapter.close());
  return { compute, balancers, close };
}

class StandInCompute extends Ec2Compute {
  readonly #machines: Ec2Compute;

  /** @param machines EC2 of the stand-in; closed together with this */
  constructor(options: AwsOptions, machines: Ec2Compute) {
    super(options);
    this.#machines = machines;
  }

  override close(): void {
    super.close();
    this.#machines.close();
  }

  /** Launches without the instance profile, which the endpoint may not have: the machines have a role anyway. */
  override launch(request: LaunchRequest): Promise<LaunchResult> {
    return super.launch({ ...request, instanceProfile: null });
  }

  override async list(tag: { key: string; value: string }): Promise<CloudInstance[]> {
    const [instances, machines] = await Promise.all([super.list(tag), this.#machines.list(tag)]);
    const machineOf = new Map(machines.map((machine) => [machine.id, machine]));
    return instances.map((instance) => overlay(instance, machineOf.get(instance.id) ?? null));
  }

  override consoleOutput(instanceId: string): Promise<string | null> {
    return this.#machines.consoleOutput(instanceId);
  }
}

/** The endpoint's instance with the addresses of its machine; not running before the machine runs. */
function overlay(instance: CloudInstance, machine: CloudInstance | null): CloudInstance {
  const isUp = machine !== null && machine.state !== 'pending';
  return {
    ...instance,
    state: instance.state === 'running' && !isUp ? 'pending' : instance.state,
    publicAddress: machine?.publicAddress ?? null,
    privateAddress: machine?.privateAddress ?? null,
  };
}

class StandInLoadBalancer extends Elbv2LoadBalancer {
  readonly #network: Ec2Compute;

  /** @param options those of the stand-in; `network` is its EC2, closed by its creator */
  constructor(options: AwsOptions, network: Ec2Compute) {
    super(options);
    this.#network = network;
  }

  /** Makes the balancer in the machines' subnets: those of the endpoint mean nothing here. */
  override async ensure(request: BalancerRequest): Promise<Balancer> {
    const subnets = await this.#network.subnets([]);
    const { vpcId } = subnets[0]!;
    const securityGroupIds = await this.#network.securityGroups([], vpcId);
    const subnetIds = subnets.map(({ id }) => id);
    // Nor does the user's load balancer there: it forwards nothing.
    return super.ensure({ ...request, existing: null, vpcId, subnetIds, securityGroupIds });
  }
}
