/**
 * Which quota counts the vCPUs of an instance type. AWS counts running On-Demand instances by groups of families, each
 * with its own code:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
 */

/** Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances: the quota of nearly every crawl. */
export const STANDARD_QUOTA = 'L-1216C47A';

/** By the leading letters of the family name. Families missing here are Standard. */
const CODE_OF_FAMILY: Readonly<Record<string, string>> = {
  f: 'L-74FC7D96',
  g: 'L-DB2E81BA',
  gr: 'L-DB2E81BA',
  vt: 'L-DB2E81BA',
  inf: 'L-1945791B',
  p: 'L-417A185B',
  x: 'L-7295265B',
  dl: 'L-6E869C2A',
  trn: 'L-2C3B7624',
  hpc: 'L-F7808C92',
  u: 'L-43DA4232',
};

/** The quota that counts this type: `t4g.nano` → L-1216C47A, `g5.xlarge` → L-DB2E81BA. */
export function quotaCodeOf(instanceType: string): string {
  const letters = /^[a-z]+/.exec(instanceType)?.[0] ?? '';
  return CODE_OF_FAMILY[letters] ?? STANDARD_QUOTA;
}

const STANDARD_NAME = 'Running On-Demand Standard instances';

const NAMES: Readonly<Record<string, string>> = {
  'L-74FC7D96': 'Running On-Demand F instances',
  'L-DB2E81BA': 'Running On-Demand G and VT instances',
  'L-1945791B': 'Running On-Demand Inf instances',
  'L-417A185B': 'Running On-Demand P instances',
  'L-7295265B': 'Running On-Demand X instances',
  'L-6E869C2A': 'Running On-Demand DL instances',
  'L-2C3B7624': 'Running On-Demand Trn instances',
  'L-F7808C92': 'Running On-Demand HPC instances',
  'L-43DA4232': 'Running On-Demand High Memory instances',
};

/** The name in the Service Quotas console, without the list of families. */
export const quotaNameOf = (code: string): string => NAMES[code] ?? STANDARD_NAME;
