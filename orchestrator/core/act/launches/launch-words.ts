/** The alarms about refused launches: what EC2 said, what the run does about it, and what to do. */
import { rightsRemedy } from '../../decide/launches/rights.ts';
import type { LaunchRequest, LaunchResult } from '../../cloud/compute.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';
import { describeInstanceType } from '../../plan/instance-types.ts';
import { quotaCodeOf, quotaNameOf } from '../../plan/quota-codes.ts';

type Refusal = Extract<LaunchResult, { kind: 'refused' }>;

export interface RightsRefusal {
  cause: 'credentials' | 'denied';
  message: string;
}

export const poolOf = ({ instanceType, subnetId }: LaunchRequest): string => `${instanceType} in ${subnetId}`;

/** The refusal, and how launches go on; quotaAdvice has that for a quota. */
export function refusedLaunch({ slot, request }: InstanceRecord, { cause, message }: Refusal): string {
  const said = `EC2 refuses slot ${slot} (${poolOf(request)}): ${cause}: ${message}`;
  switch (cause) {
    case 'pool':
      return `${said}; other zones and types are tried, and this one again later`;
    case 'zone':
    case 'invalid':
      return `${said}; other zones and types are tried`;
    case 'type':
      return `${said}; this account may not launch ${request.instanceType}, and the other types of aws.instance_types are tried`;
    case 'throttled':
      return `${said}; launches go on more slowly`;
    default:
      return said;
  }
}

export const refusedRights = (refused: RightsRefusal): string =>
  `AWS refuses to launch: ${refused.message.replace(/\.$/, '')}. The main server retries; ${rightsRemedy(refused)}`;

/** @param instances all of the run */
export function quotaAdvice(run: RunRecord, request: LaunchRequest, instances: readonly InstanceRecord[]): string {
  const { instanceType, region = run.settings.aws.region } = request;
  const { vcpus } = describeInstanceType(instanceType);
  const code = quotaCodeOf(instanceType);
  const has = instances.filter((r) => r.instanceId !== null && r.phase !== 'terminated').length;
  const planned = run.plan.instances;
  return (
    `The run has ${has} of ${planned} planned instances (${has * vcpus} of ${planned * vcpus} vCPUs) and goes on with them; ` +
    `it tries again when one has ended. Ask AWS for ${planned * vcpus} vCPUs above what else runs in ` +
    `${region}: quota ${code}, ${quotaNameOf(code)}`
  );
}
