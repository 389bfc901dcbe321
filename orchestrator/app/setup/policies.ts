/** The policy files of userdata/iam with names filled in. */
import commands from '../../../userdata/iam/commands.json' with { type: 'json' };
import controller from '../../../userdata/iam/controller.json' with { type: 'json' };
import image from '../../../userdata/iam/image.json' with { type: 'json' };
import instanceCommands from '../../../userdata/iam/instance-commands.json' with { type: 'json' };
import instanceTrust from '../../../userdata/iam/instance-trust.json' with { type: 'json' };
import instanceSse from '../../../userdata/iam/instance-sse.json' with { type: 'json' };
import instance from '../../../userdata/iam/instance.json' with { type: 'json' };
import mainServer from '../../../userdata/iam/main-server.json' with { type: 'json' };
import sse from '../../../userdata/iam/sse.json' with { type: 'json' };
import volumes from '../../../userdata/iam/volumes.json' with { type: 'json' };
import type { SetupValues } from './values.ts';

const POLICIES = {
  mainServer,
  controller,
  image,
  commands,
  sse,
  volumes,
  instance,
  instanceCommands,
  instanceSse,
  instanceTrust,
};

export type PolicyName = keyof typeof POLICIES;

/** The managed policies of the main server: the first always, the others as wanted. */
export const controllerPolicies = ({ image, commands, objectKey, volumeKey }: SetupValues): ControllerPolicy[] => {
  const wanted: [ControllerPolicy, boolean][] = [
    ['controller', true],
    ['image', image],
    ['commands', commands],
    ['sse', objectKey !== null],
    ['volumes', volumeKey !== null],
  ];
  return wanted.flatMap(([name, isWanted]) => (isWanted ? name : []));
};

export type ControllerPolicy = 'controller' | 'image' | 'commands' | 'sse' | 'volumes';

/** The inline policies of the instance role, with their names there. */
export const instancePolicies = ({ commands, objectKey }: SetupValues): [PolicyName, inlineName: string][] => [
  ['instance', 'put-results'],
  ...(commands ? [['instanceCommands', 'take-commands'] satisfies [PolicyName, string]] : []),
  ...(objectKey === null ? [] : [['instanceSse', 'encrypt-results'] satisfies [PolicyName, string]]),
];

/** Of new objects in the bucket. */
export const bucketEncryption = ({ objectKey }: SetupValues): { SSEAlgorithm: string; KMSMasterKeyID?: string } =>
  objectKey === null ? { SSEAlgorithm: 'AES256' } : { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: objectKey };

/** A policy as JSON text; `account` stands for the number: an expression of Terraform or the shell. */
export function policyText(name: PolicyName, values: SetupValues, account: string): string {
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
    region: values.policyRegion,
  };
  return JSON.stringify(POLICIES[name], null, 2).replaceAll(/\$\{(\w+)\}/g, (all, key: string) => names[key] ?? all);
}
