/** The load balancer rights that read calls prove; ELBv2 has no dry run for the others. */
import { probeElbRights } from '../../cloud/right-probes.ts';
import type { Check } from './check.ts';
import { standing } from './check.ts';
import { judgeRights } from './ec2-rights.ts';

export const elbRights: Check = {
  id: 'elb-rights',
  title: 'load balancer rights',
  kinds: ['aws'],
  needs: ['credentials'],
  beforeLaunch: true,
  async run({ aws }) {
    const findings = judgeRights(await probeElbRights(aws!));
    const changing = 'the rights to make, fill and remove a balancer cannot be checked without making one';
    return [...findings, standing(changing, 'npm run canary makes one and removes it')];
  },
};
