/**
 * Which quota counts the vCPUs of an instance type. AWS counts running On-Demand instances by groups of families, each
 * with its own code:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html#ec2-on-demand-instances-limits
 */

/** Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances: the quota of nearly every crawl. */
export const STANDARD_QUOTA = 'L-1216C47A';

/** The other groups, with the leading letters of their families' names. Families missing here are Standard. */
const QUOTAS: readonly { code: string; name: string; families: readonly string[] }[] = [
  { code: 'L-74FC7D96', name: 'F', families: ['f'] },
  { code: 'L-DB2E81BA', name: 'G and VT', families: ['g', 'gr', 'vt'] },
  { code: 'L-1945791B', name: 'Inf', families: ['inf'] },
  { code: 'L-417A185B', name: 'P', families: ['p'] },
  { code: 'L-7295265B', name: 'X', families: ['x'] },
  { code: 'L-6E869C2A', name: 'DL', families: ['dl'] },
  { code: 'L-2C3B7624', name: 'Trn', families: ['trn'] },
  { code: 'L-F7808C92', name: 'HPC', families: ['hpc'] },
  { code: 'L-43DA4232', name: 'High Memory', families: ['u'] },
];

/** The quota that counts this type: `t4g.nano` → L-1216C47A, `g5.xlarge` → L-DB2E81BA. */
export function quotaCodeOf(instanceType: string): string {
  const letters = /^[a-z]+/.exec(instanceType)?.[0] ?? '';
  return QUOTAS.find(({ families }) => families.includes(letters))?.code ?? STANDARD_QUOTA;
}

/** The name in the Service Quotas console, without the list of families. */
export const quotaNameOf = (code: string): string =>
  `Running On-Demand ${QUOTAS.find((quota) => quota.code === code)?.name ?? 'Standard'} instances`;
