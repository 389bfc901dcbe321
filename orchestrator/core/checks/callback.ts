/** Whether instances will reach the callback listener, as far as this machine can check. */
import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { describeError } from '../../../shared/domain/errors.ts';
import type { RouteTable } from '../cloud/route-tables.ts';
import { bareHostOf, portOf } from '../../../shared/domain/same-site.ts';
import { isLocal } from '../config/target.ts';
import { type Check, type CheckContext, failed, type Finding, lacksServerUrl, ok, standing, warning } from './check.ts';
import { isRange, readGroups, type SecurityGroup, sourcesOf } from '../cloud/group-rules.ts';
import { splitAddress } from '../server/listen.ts';

const USUAL_LISTEN = '0.0.0.0:8700';
const FETCH_MS = 4_000;
const STILL = 'instances need to; without callbacks the results come by S3 alone, later';

export const callback: Check = {
  id: 'callback',
  regional: true,
  title: 'callback URL',
  only: 'aws',
  lacks: lacksServerUrl,
  beforeLaunch: true,
  limitMs: 15_000,
  async run(context) {
    const { config, target, facts } = context;
    const url = config.values.server.url!;
    const host = bareHostOf(new URL(url));
    const addresses = await lookup(host, { all: true }).then(
      (found) => found.map((a) => a.address),
      () => [],
    );
    if (addresses.length === 0)
      return failed('config-invalid', `server.url ${url}: the name ${host} does not resolve`, 'Correct server.url');
    // Instances of an endpoint on this machine are its processes.
    const isAws = !isLocal(target.endpoint);
    const tables = isAws ? await facts.routeTables().catch(() => null) : null;
    return [
      ...(isAws ? judgeAddress(url, addresses, tables) : []),
      await tryOut(url, config.values.server.listen ?? USUAL_LISTEN),
      ...(isAws ? await lookAtDoors(context, addresses) : []),
    ];
  },
};

const PRIVATE = blockOf([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  'fc00::/7',
  'fe80::/10',
]);
const LOOPBACK = blockOf(['127.0.0.0/8', '::1/128', '0.0.0.0/8']);

/** How instances reach these addresses; none for public ones. `tables` null: what is in the VPC is unknown. */
export function judgeAddress(
  url: string,
  addresses: readonly string[],
  tables: readonly RouteTable[] | null,
): Finding[] {
  const remedy = 'Set server.url to an address of this machine that the subnets reach, such as http://10.0.0.5:8700';
  const loopback = addresses.find((a) => isIn(LOOPBACK, a));
  if (loopback !== undefined)
    return [
      failed('config-invalid', `server.url ${url} leads to ${loopback}: each instance would call itself`, remedy),
    ];
  if (tables === null) return [];
  const inside = blockOf(
    tables.flatMap((t) =>
      (t.Routes ?? []).flatMap((r) =>
        r.GatewayId === 'local' && r.DestinationCidrBlock ? [r.DestinationCidrBlock] : [],
      ),
    ),
  );
  const hidden = addresses.find((a) => isIn(PRIVATE, a) && !isIn(inside, a));
  if (hidden === undefined) return [];
  return [
    warning(
      `server.url ${url} leads to ${hidden}, a private address outside the VPC of the subnets: reached only by VPN or peering`,
      remedy,
    ),
  ];
}

function blockOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits = ''] = range.split('/');
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

const isIn = (list: BlockList, address: string): boolean => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

/** Listens for a moment where a run will, and requests the URL from here. */
async function tryOut(url: string, listen: string): Promise<Finding> {
  const nonce = randomBytes(16).toString('hex');
  // An instance of another run that calls back at this moment must not take this for the main server.
  const server = createServer((request, response) =>
    request.method === 'GET' ? response.end(nonce) : response.writeHead(503).end(),
  );
  try {
    await open(server, listen);
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    if (isTaken)
      return failed(
        'port-taken',
        `server.listen ${listen} is used by another program`,
        'End it, or choose another port for server.listen and server.url',
      );
    return failed('config-invalid', `cannot listen on ${listen}: ${describeError(error)}`, 'Correct server.listen');
  }
  try {
    const reply = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS), redirect: 'manual' });
    if ((await reply.text()) === nonce) return ok(`${url} leads to the listener on ${listen}, tested from here`);
    return warning(
      `${url} is answered by something else (HTTP ${reply.status}), not by the listener on ${listen}`,
      'Check the proxy or the port forwarding before it',
    );
  } catch (error) {
    const why = describeError(error instanceof Error && error.cause !== undefined ? error.cause : error);
    return warning(
      `${url} cannot be reached from here (${why}): ${STILL}`,
      `Open the port in the firewall, and check that server.url leads to ${listen}`,
    );
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function open(server: Server, listen: string): Promise<void> {
  server.listen(splitAddress(listen));
  await once(server, 'listening');
}

/** An interface of this machine that server.url leads to. */
export interface Door {
  groups: readonly SecurityGroup[];
  port: number;
  /** True when instances come by its private address: then rules that name their group apply. */
  isPrivate: boolean;
}

const UNSEEN = standing(
  'whether firewalls let instances in at server.url cannot be seen from here',
  'npm run canary tries it with two small instances',
);

export async function lookAtDoors({ config, facts }: CheckContext, addresses: readonly string[]): Promise<Finding[]> {
  // The check that needs the interfaces reports a failure to read them: this one only adds detail.
  const own = await facts.ownInterfaces().catch(() => []);
  const found = own.find((each) => [...each.addresses, ...each.publicAddresses].some((a) => addresses.includes(a)));
  if (found === undefined) return [UNSEEN];
  try {
    const [groups, instances] = await Promise.all([readGroups(facts.aws(), found.securityGroupIds), facts.groups()]);
    const isPrivate = addresses.some((a) => found.addresses.includes(a));
    return [judgeDoor({ groups, port: portOf(new URL(config.values.server.url!)), isPrivate }, instances)];
  } catch {
    return [UNSEEN];
  }
}

/** A warning only: a network ACL or a group with other rules may change the result. */
export function judgeDoor({ groups, port, isPrivate }: Door, instances: readonly string[]): Finding {
  const names = groups.map((g) => g.GroupId ?? '').join(', ');
  const letsIn = sourcesOf(groups, port).some((s) => isRange(s) || (isPrivate && instances.includes(s)));
  if (letsIn) return ok(`${names}, of this machine, lets instances in on port ${port}`);
  const what = `no rule of ${names}, of this machine, lets instances in on port ${port}: no call would arrive, and each instance would be given up at boot`;
  const allow = (from: string): string =>
    `aws ec2 authorize-security-group-ingress --group-id ${groups[0]?.GroupId ?? 'sg-…'} --protocol tcp --port ${port} ${from}`;
  const byGroup = allow(`--source-group ${instances[0] ?? 'sg-…'}`);
  if (isPrivate)
    return warning(what, `Give this machine the group that orchestrator setup makes for it, or: ${byGroup}`);
  // The instances' public addresses are known only once they run, and a port open to the world is open to strangers.
  return warning(
    what,
    `Set server.url to this machine's private address and let the instances' group in: ${byGroup}. If they come through a NAT gateway: ${allow('--cidr <its address>/32')}`,
  );
}
