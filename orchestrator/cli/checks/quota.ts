/** The account's vCPU quota. The check of the plan decides whether the plan fits. */
import type { Check } from './check.ts';
import { ok, warning } from './check.ts';

export const quota: Check = {
  id: 'quota',
  title: 'vCPU quota',
  kinds: ['aws'],
  needs: ['credentials'],
  async run({ target, facts }) {
    const { quota: all, vcpus, inUse, code, source, note } = await facts.quota();
    if (vcpus === null)
      return [
        warning(
          note ?? `the vCPU quota ${code} is not known`,
          `aws service-quotas get-service-quota --service-code ec2 --quota-code ${code} --region ${target.region}`,
        ),
      ];
    if (source === 'aws.vcpu_quota') return [ok(`${vcpus} vCPUs, as aws.vcpu_quota says`)];
    return [ok(`${code}: ${all} vCPUs${inUse === null || inUse === 0 ? '' : `, ${inUse} of them in use`}`)];
  },
};
