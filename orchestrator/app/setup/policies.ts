/** The policy files of userdata/iam with names filled in. */
import commands from '../../../userdata/iam/commands.json' with { type: 'json' };
import controller from '../../../userdata/iam/controller.json' with { type: 'json' };
import image from '../../../userdata/iam/image.json' with { type: 'json' };
import instanceCommands from '../../../userdata/iam/instance-commands.json' with { type: 'json' };
import instanceTrust from '../../../userdata/iam/instance-trust.json' with { type: 'json' };
import instance from '../../../userdata/iam/instance.json' with { type: 'json' };
import type { SetupValues } from './values.ts';

const POLICIES = { controller, image, commands, instance, instanceCommands, instanceTrust };

export type PolicyName = keyof typeof POLICIES;

/** The managed policies of the main server: the first always, the others as wanted. */
export const controllerPolicies = ({ image, commands }: SetupValues): ('controller' | 'image' | 'commands')[] => [
  'controller',
  ...(image ? (['image'] as const) : []),
  ...(commands ? (['commands'] as const) : []),
];

/** A policy as JSON text; `account` stands for the number: an expression of Terraform or the shell. */
export function policyText(name: PolicyName, values: SetupValues, account: string): string {
  const names: Record<string, string> = {
    account,
    bucket: values.bucket,
    instance_profile: values.instanceProfile,
    instance_role: values.instanceProfile,
    owner: values.owner,
    partition: values.partition.name,
    ec2_principal: values.partition.ec2Principal,
    region: values.region,
  };
  return JSON.stringify(POLICIES[name], null, 2).replaceAll(/\$\{(\w+)\}/g, (all, key: string) => names[key] ?? all);
}
