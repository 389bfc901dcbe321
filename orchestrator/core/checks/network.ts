/** Checks of the network: subnets, load balancer, security groups. */
import { type RouteTable, wayOut } from '../cloud/route-tables.ts';
import { templatesOf } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import type { SubnetInfo } from '../cloud/compute.ts';
import { type Check, failed, type Finding, findingOf, lacksRegion, ok, warning } from './check.ts';
import { assertFreePort } from '../cloud/listener-ports.ts';
import { isIP } from 'node:net';
import {
  isAnywhere,
  isRange,
  isWithin,
  letsOut,
  letsSomethingOut,
  readGroups,
  type SecurityGroup,
  sourcesOf,
} from '../cloud/group-rules.ts';
import { API_PORT } from '../../../shared/wire/instance-api.ts';
import { BALANCER_PORT } from '../act/launches/launch.ts';
import { bareHostOf, portOf } from '../../../shared/domain/same-site.ts';

export const subnets: Check = {
  id: 'subnets',
  regional: true,
  title: 'subnets and their way to the site',
  only: 'aws',
  needs: ['credentials'],
  lacks: lacksRegion,
  beforeLaunch: true,
  async run({ facts }) {
    const found = await facts.subnets();
    const isFaithful = await facts.isFaithful();
    try {
      const tables = await facts.routeTables();
      return judgeSubnets(found, tables, isFaithful);
    } catch (error) {
      const finding = findingOf(error);
      const isRight = error instanceof AppError && error.code === 'aws-denied';
      const unseen = isRight ? warning('the route tables could not be read', 'Allow ec2:DescribeRouteTables') : finding;
      return [zones(found), unseen];
    }
  },
};

/** @param isFaithful false for emulators, which may show no gateway because none is needed */
export function judgeSubnets(
  found: readonly SubnetInfo[],
  tables: readonly RouteTable[],
  isFaithful: boolean,
): Finding[] {
  const ways = found.map((subnet) => ({ subnet, way: wayOut(tables, subnet.id) }));
  const of = (kind: string): string[] =>
    ways
      .filter(({ way }) => way.kind === kind)
      .map(({ subnet, way }) => (way.target === null ? subnet.id : `${subnet.id} (${way.target})`));
  const nat = of('nat');
  const none = of('none');
  const other = of('other');
  const remedy = 'Set aws.subnets to public subnets: their route table sends 0.0.0.0/0 to an internet gateway';
  const findings = [zones(found)];
  const shared = 'behind a NAT all instances have one address, and site.interval counts by address';
  if (nat.length > 0) findings.push(failed('aws-invalid', `${shared}: ${nat.join(', ')}`, remedy));
  if (none.length > 0 && isFaithful)
    findings.push(failed('aws-invalid', `no way to the internet from ${none.join(', ')}`, remedy));
  else if (none.length > 0) findings.push(warning(`no way to the internet is shown for ${none.join(', ')}`));
  if (other.length > 0)
    findings.push(warning(`what address instances have outside cannot be known for ${other.join(', ')}`, remedy));
  if (findings.length > 1) return findings;
  return [...findings, ok('each instance gets a public address of its own, and an internet gateway is its way out')];
}

function zones(found: readonly SubnetInfo[]): Finding {
  const names = [...new Set(found.map((s) => s.zone))];
  if (names.length >= 2) return ok(`${found.length} subnets in ${names.join(', ')}`);
  return failed(
    'aws-invalid',
    `all subnets are in ${names.join()}: an application load balancer needs two zones`,
    'Add a subnet in another zone to aws.subnets',
  );
}

export const loadBalancer: Check = {
  id: 'load-balancer',
  regional: true,
  title: 'load balancer',
  only: 'aws',
  // Unsuitable subnets still have groups and zones.
  after: ['subnets'],
  beforeLaunch: true,
  limitMs: 15_000,
  async run({ config, facts, target }) {
    // Both throw: when the user's load balancer does not exist, does not fit the subnets, or has no room.
    const { balancer, notes } = await facts.network();
    const named = config.values.aws.load_balancer;
    if (balancer?.existing) await assertFreePort(facts.aws(), balancer.existing);
    const certificate = judgeCertificate(config.values.aws.certificate?.arn ?? null, target.region);
    const said =
      named === null ? `an ${balancer?.scheme} one is made for the run` : `${named} serves the zones of the subnets`;
    return [
      ...(balancer === null ? [] : [ok(said)]),
      ...certificate,
      ...notes.map((text) =>
        /default group/.test(text) ? warning(text, 'orchestrator setup shows groups of their own') : ok(text),
      ),
    ];
  },
};

/** ELBv2 takes a certificate of ACM only in its own region. */
export function judgeCertificate(arn: string | null, region: string): Finding[] {
  const there = /^arn:[^:]+:acm:([^:]+):/.exec(arn ?? '')?.[1] ?? region;
  if (there === region) return [];
  const text = `the certificate of aws.certificate is in ${there}, and a balancer in ${region} takes only those of ${region}`;
  return [
    failed('aws-invalid', text, `Request or import one in ${region}: aws acm request-certificate --region ${region}`),
  ];
}

export const securityGroups: Check = {
  id: 'security-groups',
  regional: true,
  title: 'security groups',
  only: 'aws',
  needs: ['load-balancer'],
  beforeLaunch: true,
  async run({ config, facts }) {
    const { securityGroupIds, balancer } = await facts.network();
    const read = (ids: readonly string[]): Promise<SecurityGroup[]> =>
      ids.length === 0 ? Promise.resolve([]) : readGroups(facts.aws(), ids);
    // The groups of a user's load balancer are the user's business.
    const both = await Promise.all([read(securityGroupIds), read(balancer?.securityGroupIds ?? [])]).catch(unseen);
    if ('level' in both) return both;
    const [instances, groups] = both;
    const [{ vpcId }] = (await facts.subnets()) as [SubnetInfo];
    // If the interfaces cannot be read, aws.balancer_scheme has been set, or the check of the load balancer reports it.
    const own = await facts.ownInterfaces().catch(() => []);
    const inside = own.filter((each) => each.vpcId === vpcId);
    const here = inside.flatMap((each) => each.securityGroupIds);
    const addresses = inside.flatMap((each) => [...each.addresses, ...each.publicAddresses]);
    const server = addressOf(config.values.server.url);
    const sites = templatesOf(config.values.site.product_url).map((template) => new URL(productUrl(template, 'x')));
    const place = { here, addresses, server, isFaithful: await facts.isFaithful() };
    return judgeGroups({ instances, balancer: balancer && groups, ...place }, sites.map(portOf));
  },
};

/** A run needs no right to read them. */
function unseen(error: unknown): Finding {
  if (!(error instanceof AppError) || error.code !== 'aws-denied') throw error;
  return warning('the security groups could not be read', 'Allow ec2:DescribeSecurityGroups');
}

/** The address in server.url, if it is one; a name may lead to another address than this machine's own. */
function addressOf(url: string | null): string | null {
  const host = url === null ? '' : bareHostOf(URL.parse(url) ?? { hostname: '' });
  return isIP(host) === 0 ? null : host;
}

export interface Groups {
  instances: readonly SecurityGroup[];
  /**
   * The groups of the balancer; empty for the user's own, null where the main server offers the products to the
   * instances itself.
   */
  balancer: readonly SecurityGroup[] | null;
  /** Ids of this machine's groups in the VPC of the fleet; empty when it is not known to be in it. */
  here: readonly string[];
  /** This machine's addresses there, private and public; empty when it is not known to be in it. */
  addresses?: readonly string[];
  /** The address by which instances reach this machine: likely also the source of its own calls. */
  server?: string | null;
  /** False for an emulator, which lets everything through whatever its groups contain. */
  isFaithful?: boolean;
}

/**
 * Groups only allow: traffic that no rule allows is refused, and a run would fail. Everything else is a warning: rules
 * may name prefix lists and other groups, network ACLs may refuse more, and the addresses of a machine outside the VPC
 * are not known for sure.
 */
export function judgeGroups(groups: Groups, sitePorts: readonly number[]): Finding[] {
  const { instances, isFaithful = true } = groups;
  const names = namesOf(instances);
  const { balancer } = groups;
  const offers =
    balancer === null
      ? judgeDoor(groups, INSTANCES)
      : [...judgeApi(instances, balancer), ...judgeDoor({ ...groups, instances: balancer }, BALANCER)];
  const findings = [...offers, ...judgeWayOut(instances, sitePorts)].map((finding) =>
    finding.level === 'failed' && !isFaithful ? warning(finding.text, finding.remedy) : finding,
  );
  return findings.length > 0
    ? findings
    : [
        ok(
          `${names}: ${balancer === null ? 'this machine' : 'the balancer'} gets in on port ${API_PORT}, instances get out`,
        ),
      ];
}

const namesOf = (groups: readonly SecurityGroup[]): string => groups.map((g) => g.GroupId ?? '').join(', ');

const shut = (text: string, remedy: string): Finding => failed('config-invalid', text, remedy);

function judgeApi(instances: readonly SecurityGroup[], balancer: readonly SecurityGroup[]): Finding[] {
  const sources = sourcesOf(instances, API_PORT);
  const own = balancer.map((g) => g.GroupId ?? '');
  const letsIn = balancer.length === 0 ? sources.length > 0 : sources.some((s) => own.includes(s) || isRange(s));
  const [group = 'sg-…', from = group] = [instances[0]?.GroupId, own[0]];
  const closed = shut(
    `no rule of ${namesOf(instances)} lets the balancer reach instances on port ${API_PORT}: they would never be healthy`,
    `aws ec2 authorize-security-group-ingress --group-id ${group} --protocol tcp --port ${API_PORT} --source-group ${from}`,
  );
  const open = warning(
    `port ${API_PORT} of the instances is open to the world (offers are signed, but only the balancer needs it)`,
    'Allow it from the security group of the balancer only',
  );
  return [...(letsIn ? [] : [closed]), ...(sources.some(isAnywhere) ? [open] : [])];
}

/** What this machine sends its offers to. */
const BALANCER = { what: 'the balancer', port: BALANCER_PORT };
const INSTANCES = { what: 'the instances', port: API_PORT };

/** Whether this machine may connect to what has the groups of `instances`. */
function judgeDoor(
  { instances: groups, here, addresses = [], server = null }: Omit<Groups, 'balancer'>,
  { what, port }: typeof BALANCER,
): Finding[] {
  if (groups.length === 0) return [];
  const own = groups.map((g) => g.GroupId ?? '');
  const sources = sourcesOf(groups, port);
  if (sources.some((source) => here.includes(source))) return [];
  const ranges = sources.filter(isRange);
  const known = addresses.length > 0 ? addresses : server === null ? [] : [server];
  const isIn = (range: string): boolean => range.startsWith('pl-') || known.some((address) => isWithin(address, range));
  const isCovered = known.length === 0 ? ranges.length > 0 : ranges.some(isIn);
  // Another group may be that of a VPN or proxy; a default group lets its members in, and we may be none.
  const mayBeBehind = here.length === 0 && sources.some((source) => !isRange(source) && !own.includes(source));
  if (isCovered || mayBeBehind) return [];
  const from = here.length > 0 ? `--source-group ${here[0]}` : `--cidr ${server ?? 'ADDRESS-OF-THIS-MACHINE'}/32`;
  const who = ranges.length > 0 ? `this machine (${known.join(', ')})` : 'this machine';
  const text = `no rule of ${namesOf(groups)} lets ${who} reach ${what} on port ${port}: instances would boot, and get no offer`;
  const remedy = `Take the groups that orchestrator setup makes in the VPC of the subnets, or: aws ec2 authorize-security-group-ingress --group-id ${own[0]} --protocol tcp --port ${port} ${from}`;
  // A machine in the VPC is known by its groups; and with no allowed source at all, this machine is not allowed either.
  return [here.length > 0 || sources.length === 0 ? shut(text, remedy) : warning(text, remedy)];
}

function judgeWayOut(instances: readonly SecurityGroup[], sitePorts: readonly number[]): Finding[] {
  const ports = [...new Set([443, ...sitePorts])].filter((port) => !letsOut(instances, port));
  return ports.map((port) => {
    const [judge, lets] = letsSomethingOut(instances, port) ? [warning, 'may let'] : [shut, 'lets'];
    const text = `${namesOf(instances)} ${lets} nothing out on port ${port}: instances could not reach S3 or the site`;
    return judge(text, 'Allow outgoing TCP to 0.0.0.0/0');
  });
}
