/** What the account needs as Terraform: the files of deploy/terraform with the values of one setup, in one text. */
import { BACKUP_PREFIX, MAIN_SERVER_PREFIX, mainServerUserData } from '../../../userdata/main-server.ts';
import { API_PORT } from '../../../shared/wire/instance-api.ts';
import { BALANCER_PORT } from '../../core/act/launches/launch.ts';
import { readDeployFile } from './deploy-files.ts';
import { type ManagedPolicy, managedPolicies, type PolicyDialect, type PolicyName, policyText } from './policies.ts';
import { fleetLines } from './resources.ts';
import { CANARY_PORT, MAIN_SERVER_TYPE, type SetupValues } from './values.ts';

const TERRAFORM: PolicyDialect = { account: '${data.aws_caller_identity.current.account_id}', dollar: '$$' };

/** What stands for `var.NAME` in a file, by name. */
type Fills = Record<string, string | number | boolean | Hcl | null>;

/** An expression of Terraform, in one line or several. */
interface Hcl {
  hcl: string;
}

/**
 * One file that `terraform fmt` leaves as it is and `terraform validate` accepts. It shares nothing with what a run
 * makes for itself.
 */
export function terraformText(values: SetupValues): string {
  const fills = fillsOf(values);
  const parts = [
    'account',
    ...(values.hasGroups ? ['network'] : []),
    'bucket',
    'instance-role',
    ...(values.hasGroups ? ['groups'] : []),
    ...(values.mainServer.kind === 'vpc' ? ['main-server-group'] : []),
    ...(fills.controller_role === true ? ['controller-role'] : []),
    ...(values.ec2MainServer === null ? [] : ['main-server']),
  ].map((file) => filled(file, fills));
  return [
    ...parts,
    ...(values.otherRegions ?? []).map((there) => otherRegion({ ...values, ...there })),
    ...managedPolicies(values, TERRAFORM).map((policy) => managedPolicy(policy, fills)),
    filled('outputs', fills),
  ].join('\n');
}

/** The two groups with a provider of their own, as version 5 of the AWS provider needs it. */
function otherRegion(values: SetupValues): string {
  const fills = fillsOf(values);
  const alias = values.region.replaceAll('-', '_');
  const groups = renamed(`${filled('network', fills)}\n${filled('groups', fills)}`, (label) => `${label}_${alias}`);
  const provider = filled('region', fills).replace('"there"', `"${alias}"`);
  return `${provider}\n${groups.replaceAll(/^(?:resource|data) .*\{$/gm, `$&\n  provider = aws.${alias}\n`)}`;
}

/** What gives the policy to the main server is beside it, if that is known. */
function managedPolicy({ key, text }: ManagedPolicy, fills: Fills): string {
  const id = key.replaceAll('-', '_');
  const own = { ...fills, policy_key: key, policy: heredoc(text), is_controller: key.startsWith('controller') };
  return renamed(filled('controller-policy', own), () => id).replace('output "controller_', `output "${id}_`);
}

/** All of deploy/terraform/variables.tf but the policy of controller-policy.tf, and the names of its `# if` lines. */
function fillsOf(values: SetupValues): Fills {
  const { name, bucket, region, subnets, vpcId, mainServer, callbackPort, objectKey, ec2MainServer } = values;
  const inVpc = mainServer.kind === 'vpc';
  const firstSubnet = vpcId === null ? (subnets[0] ?? null) : null;
  const policy = (wanted: PolicyName, isWanted = true): Hcl | null =>
    isWanted ? heredoc(policyText(wanted, values, TERRAFORM)) : null;
  const makes = ec2MainServer !== null;
  return {
    region,
    tags: mapOf(values.tags),
    name,
    owner: values.owner,
    first_subnet: firstSubnet,
    vpc: vpcId ?? (firstSubnet === null ? null : { hcl: 'data.aws_subnet.first.vpc_id' }),
    default_vpc: vpcId === null && firstSubnet === null ? true : null,
    bucket,
    sse_algorithm: objectKey === null ? 'AES256' : 'aws:kms',
    object_key: objectKey,
    keep_days: values.keepDays,
    backup_prefix: ec2MainServer?.secret === null ? BACKUP_PREFIX : null,
    instance_profile: values.instanceProfile,
    instance_trust: policy('instanceTrust'),
    instance_policy: policy('instance'),
    commands_policy: policy('instanceCommands', values.commands),
    sse_policy: policy('instanceSse', objectKey !== null),
    main_server_policy: policy('mainServer', makes),
    session_policy: policy('instanceCommands', makes),
    controller_user: values.controllerUser,
    controller_role: inVpc && values.controllerUser === null,
    main_server_group: inVpc ? { hcl: 'aws_security_group.main.id' } : null,
    main_server_cidr: inVpc ? null : mainServer.cidr,
    api_port: API_PORT,
    balancer_port: BALANCER_PORT,
    callback_port: callbackPort,
    canary_port: values.canary ? CANARY_PORT : null,
    main_server_type: MAIN_SERVER_TYPE,
    main_server_prefix: MAIN_SERVER_PREFIX,
    main_server_subnet: subnets[0] ?? { hcl: 'sort(data.aws_subnets.main.ids)[0]' },
    any_subnet: subnets.length === 0,
    database_secret: ec2MainServer?.secret ?? null,
    user_data: makes ? userData(mainServerUserData({ region, bucket, callbackPort, ...ec2MainServer })) : null,
    fleet_yaml: heredoc(fleetLines(values)),
  };
}

/** The script, without what Terraform would take for its own expressions. */
const userData = (script: string): Hcl => heredoc(script.replaceAll(/([$%])\{/g, '$1$1{'));

const heredoc = (text: string): Hcl => ({ hcl: `<<-EOT\n${text.trimEnd().replaceAll(/^(?=.)/gm, '  ')}\nEOT` });

/** The map in HCL; null without an entry. `aws.tags` has no character that HCL reads. */
function mapOf(entries: Readonly<Record<string, string>>): Hcl | null {
  const quoted = Object.entries(entries).map(([key, value]) => ({
    key: JSON.stringify(key),
    value: JSON.stringify(value),
  }));
  const width = Math.max(...quoted.map(({ key }) => key.length));
  const lines = quoted.map(({ key, value }) => `  ${key.padEnd(width)} = ${value}\n`);
  return lines.length === 0 ? null : { hcl: `{\n${lines.join('')}}` };
}

/** A block below `# if NAME`, with the comment above it. */
const OPTIONAL_BLOCK = /^( *)# if (\w+)\n((?:\1#.*\n)*\1\w.*\{\n[^]*?^\1\}\n\n?)/gm;
const ATTRIBUTE = /^( *)(\S+ += )var\.(\w+)\n/gm;
/** Attributes in lines one after the other, of which none goes on in the next line. */
const ATTRIBUTES = /(?:^ +\S+ += .*[^{[\n]\n)+/gm;

/**
 * A file of deploy/terraform with its values: without blocks that are not wanted, and attributes that would be null.
 */
function filled(file: string, fills: Fills): string {
  const valueOf = (name: string): Fills[string] => {
    if (!Object.hasOwn(fills, name)) throw new Error(`deploy/terraform/${file}.tf: no value for ${name}`);
    return fills[name]!;
  };
  const isWanted = (name: string): boolean => valueOf(name) !== null && valueOf(name) !== false;
  const text = readDeployFile(`terraform/${file}.tf`)
    .replaceAll(OPTIONAL_BLOCK, (_, _indent, name: string, block: string) => (isWanted(name) ? block : ''))
    .replaceAll(ATTRIBUTE, (line, _indent, _key, name: string) => (valueOf(name) === null ? '' : line))
    .replaceAll(ATTRIBUTES, aligned)
    .replaceAll(/\$\{var\.(\w+)\}/g, (_, name: string) => valueOf(name) as string)
    .replaceAll(ATTRIBUTE, (_, indent: string, key: string, name: string) => {
      const value = valueOf(name);
      const hcl = typeof value === 'object' ? value!.hcl : JSON.stringify(value);
      return `${indent}${key}${hcl.replaceAll(/\n(?=.)/g, `\n${indent}`)}\n`;
    });
  return `${text.trimEnd()}\n`;
}

/** The attributes with all values in one column, as `terraform fmt` writes them. */
function aligned(attributes: string): string {
  const width = Math.max(...[...attributes.matchAll(/^ +\S+/gm)].map(([key]) => key.length));
  return attributes.replaceAll(/^( +\S+) += /gm, (_, key: string) => `${key.padEnd(width)} = `);
}

/** The resources that the text defines under other names, and what refers to them. */
function renamed(text: string, rename: (label: string) => string): string {
  const defined = [...text.matchAll(/^(?:resource|data) "(\w+)" "(\w+)"/gm)];
  return defined.reduce(
    (all, [, type, label]) => all.replaceAll(new RegExp(`(?<=\\b${type}(?:" "|\\.))${label}\\b`, 'g'), rename(label!)),
    text,
  );
}
