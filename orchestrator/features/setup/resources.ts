/** What the account needs, in words. */
import { API_PORT } from '../../../shared/wire/instance-api.ts';
import { BALANCER_PORT } from '../../core/act/launches/launch.ts';
import { managedPolicies } from './policies.ts';
import { CANARY_PORT, MAIN_SERVER_TYPE, type SetupValues } from './values.ts';

export interface Resource {
  kind: 'bucket' | 'instance-profile' | 'security-group' | 'policy' | 'role' | 'instance' | 'secret';
  name: string;
  why: string;
}

/** The resources in the order of creation. */
export function resourcesOf(values: SetupValues): Resource[] {
  const { bucket, keepDays, instanceProfile, name, mainServer, callbackPort, controllerUser, owner, canary } = values;
  const { otherRegions = [] } = values;
  const inVpc = mainServer.kind === 'vpc';
  const canaryToo = canary ? `ports ${callbackPort} and ${CANARY_PORT}` : `port ${callbackPort}`;
  const kept = `objects under runs/ go after ${keepDays} days`;
  const withKey = values.objectKey === null ? '' : ' and use the KMS key of aws.sse';
  const resources: [Resource['kind'], name: string, why: string, isWanted?: boolean][] = [
    ['bucket', bucket, `bundles and results; encrypted, private, no versions; ${kept}`],
    [
      'instance-profile',
      instanceProfile,
      `what an instance may do: put new objects under runs/${withKey}, ${values.commands ? 'take commands by SSM' : 'and nothing else'}`,
    ],
    ...(values.hasGroups ? groupsOf(values, '') : []),
    [
      'security-group',
      `${name}-main`,
      `crawlfleet:role=main; for the main server: ${canaryToo} from the instances' group${otherRegions.length > 0 ? '; you must open it to the instances of other regions' : ''}`,
      inVpc,
    ],
    [
      'policy',
      `${name}-controller`,
      `what the main server may do: launch, end and balance what carries the tag crawlfleet:owner=${owner}, and use the bucket`,
    ],
    ...managedPolicies(values)
      .filter(({ key }) => key.startsWith('controller-'))
      .map(({ key }): [Resource['kind'], string, string] => [
        'policy',
        `${name}-${key}`,
        'the rest of it, which is too long for one policy of AWS',
      ]),
    ['policy', `${name}-image`, 'what `orchestrator image` needs beside it', values.image],
    ['policy', `${name}-commands`, 'what `orchestrator exec` needs beside it', values.commands],
    ['policy', `${name}-sse`, 'use of the KMS key of aws.sse', values.objectKey !== null],
    ['policy', `${name}-volumes`, 'use of the KMS key for volumes', values.volumeKey !== null],
    ['role', `${name}-controller`, 'role and instance profile of the main server', inVpc && controllerUser === null],
    ...otherRegions.flatMap((there) => groupsOf({ ...values, ...there }, `in ${there.region}: `)),
    [
      'secret',
      `${name}-database`,
      "the database's URL; its value is yours to put",
      (values.ec2MainServer?.secret ?? null) !== null,
    ],
    [
      'instance',
      `${name} main server`,
      `a ${MAIN_SERVER_TYPE} with the package, that runs the schedule of fleet.yaml`,
      values.ec2MainServer !== null,
    ],
  ];
  return resources.flatMap(([kind, named, why, isWanted = true]) => (isWanted ? [{ kind, name: named, why }] : []));
}

function groupsOf({ name, mainServer }: SetupValues, where: string): ['security-group', name: string, why: string][] {
  const inVpc = mainServer.kind === 'vpc';
  const from = inVpc ? `the group ${name}-main` : mainServer.cidr;
  return [
    [
      'security-group',
      `${name}-instance`,
      `${where}crawlfleet:role=instance; port ${API_PORT} from the group of the balancer${inVpc ? ' and that of the main server' : ''} only`,
    ],
    ['security-group', `${name}-balancer`, `${where}crawlfleet:role=balancer; port ${BALANCER_PORT} from ${from} only`],
  ];
}

export function fleetLines(values: SetupValues): string {
  const { mainServer } = values.otherRegions?.[0] ?? values;
  const host = mainServer.kind === 'vpc' ? 'PRIVATE-ADDRESS-OF-THE-MAIN-SERVER' : hostOf(mainServer.cidr);
  return [
    'aws:',
    `  region: ${values.region}`,
    `  bucket: ${values.bucket}`,
    `  instance_profile: ${values.instanceProfile}`,
    `  owner: "${values.owner}"`,
    ...(values.commands ? ['  commands: true'] : []),
    ...subnetLines(values),
    // A main server that setup makes knows its own address.
    ...(values.ec2MainServer !== null
      ? []
      : ['server:', `  listen: "0.0.0.0:${values.listenPort}"`, `  url: "http://${host}:${values.callbackPort}"`]),
  ].join('\n');
}

/**
 * The lines of the subnets: without them a run goes to the default VPC, which lacks these groups; only the owner can
 * choose.
 */
function subnetLines({ subnets, vpcId, otherRegions }: SetupValues): string[] {
  // They are in the entries of aws.regions.
  if (otherRegions !== undefined) return [];
  if (subnets.length > 0) return [`  subnets: [${subnets.join(', ')}]`];
  return vpcId === null ? [] : [`  subnets: [SUBNET-OF-${vpcId}-IN-ONE-ZONE, SUBNET-OF-${vpcId}-IN-ANOTHER-ZONE]`];
}

const hostOf = (cidr: string): string =>
  cidr.endsWith('/32') ? cidr.slice(0, -'/32'.length) : 'ADDRESS-OF-THE-MAIN-SERVER';
