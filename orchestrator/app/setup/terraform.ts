/** What the account needs as Terraform, formatted as `terraform fmt` does. */
import { BACKUP_PREFIX, MAIN_SERVER_PREFIX, mainServerUserData } from '../../../userdata/main-server.ts';
import { API_PORT } from '../../../shared/wire/instance-api.ts';
import { BALANCER_PORT } from '../../control/launching/launch.ts';
import {
  bucketEncryption,
  instancePolicies,
  type ManagedPolicy,
  managedPolicies,
  type PolicyDialect,
  type PolicyName,
  policyText,
} from './policies.ts';
import { fleetLines } from './resources.ts';
import { CANARY_PORT, MAIN_SERVER_TYPE, type SetupValues } from './values.ts';

const FROM_INSTANCES = 'referenced_security_group_id = aws_security_group.instance.id';
const TERRAFORM: PolicyDialect = { account: '${data.aws_caller_identity.current.account_id}', dollar: '$$' };

/** One file that `terraform validate` accepts. It shares nothing with what a run makes for itself. */
export function terraformText(values: SetupValues): string {
  const inVpc = values.mainServer.kind === 'vpc';
  const [first, ...others] = managedPolicies(values, TERRAFORM);
  return [
    head(values),
    values.hasGroups ? network(values) : '',
    bucket(values),
    instanceProfile(values),
    values.hasGroups ? groups(values) : '',
    inVpc ? mainGroup(values) : '',
    ...(values.otherRegions ?? []).map((there) => otherRegion({ ...values, ...there })),
    controller(values, first!),
    ...others.map((policy) => attachedPolicy(policy, values).join('\n')),
    values.ec2MainServer === null ? '' : mainServer(values, values.ec2MainServer),
    outputs(values),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

const head = ({
  region,
  tags,
}: SetupValues): string => `# What crawlfleet needs in an account. Written by: orchestrator setup
terraform {
  required_version = ">= 1.3"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

${providerBlock('', region, tags)}
data "aws_caller_identity" "current" {}
`;

const providerBlock = (alias: string, region: string, tags: SetupValues['tags']): string => `provider "aws" {
${alias}  region = "${region}"
${defaultTags(tags)}}
`;

/** Where a resource is: lines and names that distinguish it from that of the main region. */
interface Place {
  suffix: string;
  provider: string;
}

const HERE: Place = { suffix: '', provider: '' };

/** The two groups with a provider of their own, as version 5 of the AWS provider needs it. */
function otherRegion(values: SetupValues): string {
  const alias = values.region.replaceAll('-', '_');
  const there = { suffix: `_${alias}`, provider: `  provider = aws.${alias}\n\n` };
  return [
    providerBlock(`  alias  = "${alias}"\n`, values.region, values.tags),
    network(values, there),
    groups(values, there),
  ].join('\n');
}

/** On everything below. `aws.tags` has no character that HCL reads. */
function defaultTags(tags: SetupValues['tags']): string {
  const quoted = Object.entries(tags).map((tag) => tag.map((text) => JSON.stringify(text)));
  if (quoted.length === 0) return '';
  const width = Math.max(...quoted.map(([key]) => key!.length));
  const lines = quoted.map(([key, value]) => `      ${key!.padEnd(width)} = ${value}\n`);
  return `  default_tags {\n    tags = {\n${lines.join('')}    }\n  }\n`;
}

function network({ vpcId, subnets }: SetupValues, place = HERE): string {
  const subnet = subnets[0];
  if (vpcId !== null) return vpc(`id = "${vpcId}"`, place);
  if (subnet === undefined) return vpc('default = true', place);
  return `data "aws_subnet" "first${place.suffix}" {
${place.provider}  id = "${subnet}"
}

${vpc(`id = data.aws_subnet.first${place.suffix}.vpc_id`, place)}`;
}

const vpc = (which: string, { suffix, provider }: Place): string => `data "aws_vpc" "fleet${suffix}" {
${provider}  ${which}
}
`;

const bucket = (values: SetupValues): string => `resource "aws_s3_bucket" "fleet" {
  bucket = "${values.bucket}"
}

resource "aws_s3_bucket_public_access_block" "fleet" {
  bucket                  = aws_s3_bucket.fleet.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "fleet" {
  bucket = aws_s3_bucket.fleet.id
  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "fleet" {
  bucket = aws_s3_bucket.fleet.id
  rule {
    apply_server_side_encryption_by_default {
${sseLines(values)}
    }
  }
}

# bundles/ has no rule: a bundle is put once and used every night, and one deleted in the middle of a run would be missing.
resource "aws_s3_bucket_lifecycle_configuration" "fleet" {
  bucket = aws_s3_bucket.fleet.id
  rule {
    id     = "unfinished-uploads"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
  rule {
    id     = "old-runs"
    status = "Enabled"
    filter {
      prefix = "runs/"
    }
    expiration {
      days = ${values.keepDays}
    }
  }
${values.ec2MainServer?.secret === null ? expiredBackups(values) : ''}}
`;

const expiredBackups = ({ keepDays }: SetupValues): string => `  rule {
    id     = "old-backups"
    status = "Enabled"
    filter {
      prefix = "${BACKUP_PREFIX}"
    }
    expiration {
      days = ${keepDays}
    }
  }
`;

function sseLines(values: SetupValues): string {
  const { SSEAlgorithm, KMSMasterKeyID } = bucketEncryption(values);
  if (KMSMasterKeyID === undefined) return `      sse_algorithm = "${SSEAlgorithm}"`;
  return `      sse_algorithm     = "${SSEAlgorithm}"\n      kms_master_key_id = "${KMSMasterKeyID}"`;
}

const role = (key: string, name: string, values: SetupValues): string => `resource "aws_iam_role" "${key}" {
  name               = "${name}"
  assume_role_policy = <<-EOT
${indent(policyText('instanceTrust', values, TERRAFORM))}
  EOT
}
`;

const profile = (key: string, name: string): string => `resource "aws_iam_instance_profile" "${key}" {
  name = "${name}"
  role = aws_iam_role.${key}.name
}
`;

const instanceProfile = (values: SetupValues): string =>
  [
    role('instance', values.instanceProfile, values),
    ...instancePolicies(values).map((policy) => inlinePolicy(policy, values)),
    profile('instance', values.instanceProfile),
  ].join('\n');

const inlinePolicy = (
  [policy, name]: [PolicyName, string],
  values: SetupValues,
  role = 'instance',
): string => `resource "aws_iam_role_policy" "${role === 'instance' ? '' : `${role}_`}${snakeCase(policy)}" {
  name   = "${name}"
  role   = aws_iam_role.${role}.id
  policy = <<-EOT
${indent(policyText(policy, values, TERRAFORM))}
  EOT
}
`;

const snakeCase = (name: string): string =>
  name.replaceAll('-', '_').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const groups = (
  values: SetupValues,
  place = HERE,
): string => `${group('instance', 'Instances of the fleet', values, place)}
${ingress('instance', API_PORT, `referenced_security_group_id = aws_security_group.balancer${place.suffix}.id`, { place })}
${egress('instance', place)}
${group('balancer', 'Load balancers of the fleet', values, place)}
${ingress(
  'balancer',
  BALANCER_PORT,
  values.mainServer.kind === 'vpc'
    ? 'referenced_security_group_id = aws_security_group.main.id'
    : `cidr_ipv4         = "${values.mainServer.cidr}"`,
  { place },
)}
${egress('balancer', place)}`;

const mainGroup = (values: SetupValues): string => `# For the main server: it has to carry this group.
${group('main', 'Main server of the fleet', values)}
${ingress('main', values.callbackPort, FROM_INSTANCES)}
# For runs without a load balancer.
${ingress('instance', API_PORT, 'referenced_security_group_id = aws_security_group.main.id', { name: 'direct' })}
${values.canary ? `# The pages of npm run canary.\n${ingress('main', CANARY_PORT, FROM_INSTANCES, { name: 'canary' })}\n` : ''}${egress('main')}`;

const group = (
  role: string,
  description: string,
  { name, owner }: SetupValues,
  { suffix, provider } = HERE,
): string => `resource "aws_security_group" "${role}${suffix}" {
${provider}  name        = "${name}-${role}"
  description = "${description}"
  vpc_id      = data.aws_vpc.fleet${suffix}.id
  tags = {
    "crawlfleet:owner" = "${owner}"
    "crawlfleet:role"  = "${role}"
  }
}
`;

/** `from`: the line with the source; terraform fmt aligns the others with it. */
function ingress(role: string, port: number, from: string, { name = role, place = HERE } = {}): string {
  const { suffix, provider } = place;
  const width = from.indexOf('=') - 1;
  const line = (key: string, value: string | number): string => `  ${key.padEnd(width)} = ${value}`;
  return `resource "aws_vpc_security_group_ingress_rule" "${name}${suffix}" {
${provider}${line('security_group_id', `aws_security_group.${role}${suffix}.id`)}
  ${from}
${line('ip_protocol', '"tcp"')}
${line('from_port', port)}
${line('to_port', port)}
}
`;
}

const egress = (
  role: string,
  { suffix, provider } = HERE,
): string => `resource "aws_vpc_security_group_egress_rule" "${role}${suffix}" {
${provider}  security_group_id = aws_security_group.${role}${suffix}.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}
`;

function controller(values: SetupValues, managed: ManagedPolicy): string {
  const policy = attachedPolicy(managed, values);
  if (values.controllerUser !== null || values.mainServer.kind === 'outside') return policy.join('\n');
  const [resource, attachment] = policy;
  return `${resource}
${role('controller', `${values.name}-controller`, values)}
${attachment}
${profile('controller', `${values.name}-controller`)}`;
}

/** The policy, and what gives it to the main server, if that is known. */
function attachedPolicy({ key, text }: ManagedPolicy, values: SetupValues): string[] {
  const { name, controllerUser, mainServer } = values;
  const id = snakeCase(key);
  const policy = `resource "aws_iam_policy" "${id}" {
  name   = "${name}-${key}"
  policy = <<-EOT
${indent(text)}
  EOT
}
`;
  const attach = (to: string, line: string): string => `resource "aws_iam_${to}_policy_attachment" "${id}" {
  ${line}
  policy_arn = aws_iam_policy.${id}.arn
}
`;
  if (controllerUser !== null) return [policy, attach('user', `user       = "${controllerUser}"`)];
  if (mainServer.kind === 'outside') return [policy];
  return [policy, attach('role', 'role       = aws_iam_role.controller.name')];
}

/** A machine that installs the package and runs the schedule. Its shell is reached by Session Manager, without an open port. */
function mainServer(values: SetupValues, { secret }: { secret: string | null }): string {
  const { region, bucket, name, callbackPort, subnets } = values;
  const script = mainServerUserData({ region, bucket, callbackPort, secret });
  const database = `# Without the waiting time, in which no secret of this name could be made again.
resource "aws_secretsmanager_secret" "database" {
  name                    = "${secret}"
  recovery_window_in_days = 0
}
`;
  return [
    ...(secret === null ? [] : [database]),
    inlinePolicy(['mainServer', 'main-server'], values, 'controller'),
    inlinePolicy(['instanceCommands', 'session-manager'], values, 'controller'),
    `# fleet.yaml, the files that it names, and the output of npm pack belong into main-server/ beside this file.
resource "aws_s3_object" "main_server" {
  for_each    = fileset("\${path.module}/main-server", "**")
  bucket      = aws_s3_bucket.fleet.id
  key         = "${MAIN_SERVER_PREFIX}\${each.value}"
  source      = "\${path.module}/main-server/\${each.value}"
  source_hash = filemd5("\${path.module}/main-server/\${each.value}")
}

data "aws_ssm_parameter" "main_image" {
  name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
}
${
  subnets.length > 0
    ? ''
    : `
data "aws_subnets" "main" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.fleet.id]
  }
}
`
}
resource "aws_instance" "main" {
  ami                         = data.aws_ssm_parameter.main_image.value
  instance_type               = "${MAIN_SERVER_TYPE}"
  subnet_id                   = ${subnets.length > 0 ? `"${subnets[0]}"` : 'sort(data.aws_subnets.main.ids)[0]'}
  vpc_security_group_ids      = [aws_security_group.main.id]
  iam_instance_profile        = aws_iam_instance_profile.controller.name
  associate_public_ip_address = true
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  root_block_device {
    volume_size = 20
    volume_type = "gp3"
    encrypted   = true
  }
  tags = {
    Name = "${name} main server"
  }
  user_data = <<-EOT
${indent(script.replaceAll(/([$%])\{/g, '$1$1{'))}
  EOT
  # A newer image or script is for a new machine: terraform apply -replace=aws_instance.main
  lifecycle {
    ignore_changes = [ami, user_data]
  }
  depends_on = [
    aws_iam_role_policy.controller_main_server,
    aws_iam_role_policy_attachment.controller,
    aws_s3_object.main_server,
    aws_vpc_security_group_egress_rule.main,
  ]
}
`,
  ].join('\n');
}

const outputs = (values: SetupValues): string => `${managedPolicies(values, TERRAFORM)
  .filter(({ key }) => key.startsWith('controller'))
  .map(({ key }) => snakeCase(key))
  .map((id) => `output "${id}_policy_arn" {\n  value = aws_iam_policy.${id}.arn\n}\n`)
  .join('\n')}
output "fleet_yaml" {
  value = <<-EOT
${indent(fleetLines(values))}
  EOT
}
`;

const indent = (text: string): string => text.trimEnd().replaceAll(/^(?=.)/gm, '    ');
