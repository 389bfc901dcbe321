/** The policy files of deploy/policies with names filled in. */
import { AppError } from '../../../shared/domain/errors.ts';
import { BUILDER_TYPES } from '../../core/plan/defaults.ts';
import { readDeployFile } from './deploy-files.ts';
import type { SetupValues } from './values.ts';

/** A file there, whose name has hyphens. */
export type PolicyName =
  | 'mainServer'
  | 'controller'
  | 'image'
  | 'commands'
  | 'sse'
  | 'volumes'
  | 'instance'
  | 'instanceCommands'
  | 'instanceSse'
  | 'instanceTrust';

/** Characters of a managed policy; AWS counts no white space. */
const MAX_CHARACTERS = 6_144;

/** An account number as long as every account's. */
const ANY_ACCOUNT = '111122223333';
const PLAIN: PolicyDialect = { account: ANY_ACCOUNT, dollar: '$' };

export interface ManagedPolicy {
  /** Its name after that of the fleet: `controller`, `controller-2`, `image` … */
  key: string;
  text: string;
}

/**
 * The managed policies of the main server: the first always, the others as wanted. One that is too long for AWS goes on
 * in a second one. Throws `usage` for more subnets or types than one statement can name.
 */
export function managedPolicies(values: SetupValues, dialect = PLAIN): ManagedPolicy[] {
  const { image, commands, objectKey, volumeKey } = values;
  const wanted: [PolicyName, boolean][] = [
    ['controller', true],
    ['image', image],
    ['commands', commands],
    ['sse', objectKey !== null],
    ['volumes', volumeKey !== null],
  ];
  return wanted.flatMap(([name, isWanted]) =>
    (isWanted ? divided(policyOf(name, values, dialect.account), dialect.account) : []).map((policy, i) => ({
      key: i === 0 ? name : `${name}-${i + 1}`,
      text: textOf(policy, dialect),
    })),
  );
}

function divided({ Version, Statement }: Policy, account: string): Policy[] {
  const policies: Policy[] = [];
  for (const statement of Statement) {
    const alone = { Version, Statement: [statement] };
    const hasRoom = (policy: Policy): boolean =>
      lengthOf({ Version, Statement: [...policy.Statement, statement] }, account) <= MAX_CHARACTERS;
    const open = policies.find(hasRoom);
    if (open) open.Statement.push(statement);
    else if (lengthOf(alone, account) <= MAX_CHARACTERS) policies.push(alone);
    else
      throw new AppError(
        'usage',
        `setup cannot be written: ${statement.Sid} has ${lengthOf(alone, account)} characters, and a policy of AWS at most ${MAX_CHARACTERS}`,
        { hint: 'Name fewer subnets in aws.subnets or aws.regions, or fewer aws.instance_types.' },
      );
  }
  return policies;
}

/** The length of a policy as AWS counts it, with the number of the account. */
const lengthOf = (policy: Policy, account: string): number =>
  JSON.stringify(policy).replaceAll(account, ANY_ACCOUNT).replaceAll(/\s/g, '').length;

/** How the text around a policy writes what it inserts. */
export interface PolicyDialect {
  /** Stands for the number of the account: an expression of Terraform. */
  account: string;
  /** A `$` that is none of its expressions: IAM replaces its own variables (`${aws:userid}`) at each request. */
  dollar: string;
}

/** A policy as JSON text. */
export const policyText = (name: PolicyName, values: SetupValues, dialect: PolicyDialect): string =>
  textOf(policyOf(name, values, dialect.account), dialect);

const textOf = (policy: Policy, { dollar }: Pick<PolicyDialect, 'dollar'>): string =>
  JSON.stringify(policy, null, 2).replaceAll(/\$(?=\{\w+:)/g, () => dollar);

function policyOf(name: PolicyName, values: SetupValues, account: string): Policy {
  const regions = values.launchPlaces.map(({ region }) => region);
  const names: Record<string, string> = {
    account,
    bucket: values.bucket,
    name: values.name,
    instance_profile: values.instanceProfile,
    instance_role: values.instanceProfile,
    ...(values.objectKey === null ? {} : { object_key: values.objectKey }),
    ...(values.volumeKey === null ? {} : { volume_key: values.volumeKey }),
    owner: values.owner,
    partition: values.partition.name,
    ec2_principal: values.partition.ec2Principal,
    region: regions.length === 1 ? regions[0]! : '*',
  };
  const subnets = values.launchPlaces.flatMap(({ region, subnets: named }) =>
    (named.length > 0 ? named : ['*']).map((id) => ({ region, id })),
  );
  const lists: Record<string, readonly string[]> = {
    '${builder_types}': Object.values(BUILDER_TYPES),
    '${instance_types}': values.instanceTypes,
    '${subnets}': subnets.map(({ region, id }) => `arn:\${partition}:ec2:${region}:\${account}:subnet/${id}`),
    '${subnet_ids}': subnets.map(({ id }) => id),
  };
  const file = `policies/${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.json`;
  const { Version, Statement } = JSON.parse(readDeployFile(file)) as Policy;
  const inRegions = { Version, Statement: Statement.map((statement) => confined(statement, regions)) };
  const text = JSON.stringify(inRegions, (_, value: unknown) =>
    typeof value === 'string' ? (lists[value] ?? value) : value,
  );
  return JSON.parse(text.replaceAll(/\$\{(\w+)\}/g, (all, key: string) => names[key] ?? all)) as Policy;
}

interface Policy {
  Version: string;
  Statement: Statement[];
}

interface Statement {
  Sid: string;
  Resource?: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}

/**
 * Confines a statement to several regions by a condition: each resource with each region would be too long for a
 * policy.
 */
function confined(statement: Statement, regions: readonly string[]): Statement {
  if (regions.length === 1 || !JSON.stringify(statement.Resource ?? '').includes('${region}')) return statement;
  const { Condition = {} } = statement;
  const StringEquals = { ...Condition.StringEquals, 'aws:RequestedRegion': [...regions] };
  return { ...statement, Condition: { ...Condition, StringEquals } };
}
