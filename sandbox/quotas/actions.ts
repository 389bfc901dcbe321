/**
 * Service Quotas, as far as planning a launch needs it: the vCPUs of running on-demand Standard instances.
 * https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html
 */
import { AwsError } from '../aws-error.ts';
import type { ConditionBoard } from '../conditions.ts';
import { ACCOUNT_ID } from '../ids.ts';

/** A typical quota of an old account; without the condition the sandbox itself has no limit. */
const PLENTY = 10_000;

const STANDARD = { code: 'L-1216C47A', name: 'Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances' };

/** One call of AWS's JSON protocol: maps the request's members to the answer's. Throws AwsError. */
export type JsonAction = (input: Readonly<Record<string, unknown>>) => Record<string, unknown>;

/** The actions of Service Quotas, by the value of X-Amz-Target. */
export function createQuotasActions(conditions: ConditionBoard, region: string): Map<string, JsonAction> {
  const getServiceQuota: JsonAction = ({ ServiceCode, QuotaCode }) => {
    if (ServiceCode !== 'ec2' || QuotaCode !== STANDARD.code)
      throw new AwsError(
        'NoSuchResourceException',
        'The request failed because the specified service quota does not exist.',
      );
    return {
      Quota: {
        ServiceCode,
        ServiceName: 'Amazon Elastic Compute Cloud (Amazon EC2)',
        QuotaArn: `arn:aws:servicequotas:${region}:${ACCOUNT_ID}:ec2/${STANDARD.code}`,
        QuotaCode,
        QuotaName: STANDARD.name,
        Value: conditions.now.vcpuQuota ?? PLENTY,
        Unit: 'None',
        Adjustable: true,
        GlobalQuota: false,
      },
    };
  };
  return new Map([['ServiceQuotasV20190624.GetServiceQuota', getServiceQuota]]);
}
