/** What the account needs, as bash lines with the aws command. */
import { API_PORT } from '../../../shared/wire/instance-api.ts';
import { BALANCER_PORT } from '../../control/launching/launch.ts';
import { ROLE, TAG } from '../../cloud/compute.ts';
import { tagList } from '../../cloud/sdk-clients.ts';
import {
  bucketEncryption,
  instancePolicies,
  type ManagedPolicy,
  managedPolicies,
  type PolicyDialect,
  policyText,
} from './policies.ts';
import { fleetLines } from './resources.ts';
import { CANARY_PORT, type SetupValues } from './values.ts';

const SHELL: PolicyDialect = { account: '${account}', dollar: '\\$' };

/** A script for an account that has none of it yet: it stops at the first line that fails. */
export function awsCliText(values: SetupValues): string {
  return [
    head(values),
    bucket(values),
    instanceProfile(values),
    '# Security groups. They may send to anywhere, as every new group may.',
    ...(values.hasGroups ? [groups(values)] : []),
    controller(values),
    ...(values.otherRegions ?? []).flatMap((there) => [
      `# Security groups in ${there.region}.`,
      `export AWS_REGION=${there.region} AWS_DEFAULT_REGION=${there.region}`,
      groups({ ...values, ...there }),
    ]),
    tail(values),
  ].join('\n');
}

const head = ({ region }: SetupValues): string => `#!/usr/bin/env bash
# What crawlfleet needs in an account. Written by: orchestrator setup --format aws-cli
set -euo pipefail
export AWS_REGION=${region} AWS_DEFAULT_REGION=${region} AWS_PAGER=""
account=$(aws sts get-caller-identity --query Account --output text)
`;

function bucket(values: SetupValues): string {
  const { bucket: name, region, keepDays, tags } = values;
  // us-east-1 is the one region whose own name is refused here.
  const place = region === 'us-east-1' ? '' : ` --create-bucket-configuration LocationConstraint=${region}`;
  const lifecycle = {
    Rules: [
      {
        ID: 'unfinished-uploads',
        Status: 'Enabled',
        Filter: { Prefix: '' },
        AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
      },
      { ID: 'old-runs', Status: 'Enabled', Filter: { Prefix: 'runs/' }, Expiration: { Days: keepDays } },
    ],
  };
  const tagSet = Object.keys(tags).length === 0 ? '' : JSON.stringify({ TagSet: tagList(tags) });
  const encryption = { Rules: [{ ApplyServerSideEncryptionByDefault: bucketEncryption(values) }] };
  return `# The bucket. bundles/ has no lifecycle rule: a bundle is put once and used every night.
aws s3api create-bucket --bucket ${name}${place} > /dev/null
${tagSet === '' ? '' : `aws s3api put-bucket-tagging --bucket ${name} --tagging '${tagSet}'\n`}aws s3api put-public-access-block --bucket ${name} --public-access-block-configuration \\
  BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
aws s3api put-bucket-ownership-controls --bucket ${name} --ownership-controls 'Rules=[{ObjectOwnership=BucketOwnerEnforced}]'
aws s3api put-bucket-encryption --bucket ${name} --server-side-encryption-configuration \\
  '${JSON.stringify(encryption)}'
aws s3api put-bucket-lifecycle-configuration --bucket ${name} --lifecycle-configuration \\
  '${JSON.stringify(lifecycle)}' > /dev/null
`;
}

const instanceProfile = (values: SetupValues): string => `# What an instance may do.
${role(values.instanceProfile, values)}
${instancePolicies(values)
  .map(([policy, name]) => `${inlinePolicy(values, name, policyText(policy, values, SHELL))}\n`)
  .join('')}`;

const inlinePolicy = ({ instanceProfile: role }: SetupValues, name: string, text: string): string =>
  `aws iam put-role-policy --role-name ${role} --policy-name ${name} --policy-document "$(${document(text)}
)"`;

const role = (name: string, values: SetupValues): string => `aws iam create-role --role-name ${name} \\
  --assume-role-policy-document "$(${document(policyText('instanceTrust', values, SHELL))}
)"${tagged(values)} > /dev/null
aws iam create-instance-profile --instance-profile-name ${name}${tagged(values)} > /dev/null
aws iam add-role-to-instance-profile --instance-profile-name ${name} --role-name ${name}`;

function groups(values: SetupValues): string {
  const { mainServer, callbackPort } = values;
  const inVpc = mainServer.kind === 'vpc';
  return [
    network(values),
    group('balancer', 'Load balancers of the fleet', values),
    group('instance', 'Instances of the fleet', values),
    ...(inVpc ? [group('main', 'Main server of the fleet', values)] : []),
    ingress('instance', API_PORT, '--source-group "$balancer"'),
    // For runs without a load balancer.
    ...(inVpc ? [ingress('instance', API_PORT, '--source-group "$main"')] : []),
    ingress('balancer', BALANCER_PORT, inVpc ? '--source-group "$main"' : `--cidr ${mainServer.cidr}`),
    ...(inVpc ? [ingress('main', callbackPort, '--source-group "$instance"')] : []),
    ...(inVpc && values.canary ? [ingress('main', CANARY_PORT, '--source-group "$instance"')] : []),
    '',
  ].join('\n');
}

function network({ vpcId, subnets }: SetupValues): string {
  if (vpcId !== null) return `vpc="${vpcId}"`;
  const subnet = subnets[0];
  const [what, query] =
    subnet === undefined
      ? ['describe-vpcs --filters Name=is-default,Values=true', 'Vpcs[0].VpcId']
      : [`describe-subnets --subnet-ids ${subnet}`, 'Subnets[0].VpcId'];
  return `vpc=$(aws ec2 ${what} --query '${query}' --output text)`;
}

function group(role: string, description: string, { name, owner, tags }: SetupValues): string {
  const specification = [
    { ResourceType: 'security-group', Tags: tagList({ [ROLE.key]: role, [TAG.owner]: owner, ...tags }) },
  ];
  return `${role}=$(aws ec2 create-security-group --group-name ${name}-${role} --description '${description}' --vpc-id "$vpc" \\
  --tag-specifications '${JSON.stringify(specification)}' --query GroupId --output text)`;
}

/** `aws.tags` has no character that a shell reads between single quotes. */
const tagged = ({ tags }: SetupValues): string =>
  Object.keys(tags).length === 0 ? '' : ` --tags '${JSON.stringify(tagList(tags))}'`;

const ingress = (role: string, port: number, from: string): string =>
  `aws ec2 authorize-security-group-ingress --group-id "$${role}" --protocol tcp --port ${port} ${from} > /dev/null`;

function controller(values: SetupValues): string {
  const { name, controllerUser, mainServer } = values;
  const makesRole = controllerUser === null && mainServer.kind === 'vpc';
  const attach = (variable: string): string[] => {
    if (controllerUser !== null)
      return [`aws iam attach-user-policy --user-name ${controllerUser} --policy-arn "$${variable}"`];
    return makesRole ? [`aws iam attach-role-policy --role-name ${name}-controller --policy-arn "$${variable}"`] : [];
  };
  return [
    '# What the main server may do.',
    ...(makesRole ? [role(`${name}-controller`, values)] : []),
    ...managedPolicies(values, SHELL).flatMap((policy) => [
      `${variableOf(policy)}=$(aws iam create-policy --policy-name ${name}-${policy.key} --query Policy.Arn --output text${tagged(values)} --policy-document "$(${document(
        policy.text,
      )}
)")`,
      ...attach(variableOf(policy)),
    ]),
    '',
  ].join('\n');
}

const variableOf = ({ key }: ManagedPolicy): string => `${key.replaceAll('-', '_')}_policy`;

/** Unquoted, so that the shell inserts the account number; IAM's own variables are escaped. */
const document = (text: string): string => `cat << POLICY
${text}
POLICY`;

const tail = (values: SetupValues): string => `cat << FLEET
Made. The main server needs: ${managedPolicies(values, SHELL)
  .map((policy) => `$${variableOf(policy)}`)
  .join(' ')}
For fleet.yaml:

${fleetLines(values)}
FLEET
`;
