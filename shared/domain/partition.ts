/**
 * AWS's partitions: sets of regions with accounts, ARNs and host names of their own.
 * https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html
 */
export interface Partition {
  /** Second part of its ARNs. */
  name: 'aws' | 'aws-cn' | 'aws-us-gov' | 'aws-eusc';
  /** End of its services' host names. */
  dnsSuffix: string;
  /** EC2 in trust policies. It ends in amazonaws.com in the European Sovereign Cloud too; only China has its own. */
  ec2Principal: string;
}

const COMMERCIAL: Partition = { name: 'aws', dnsSuffix: 'amazonaws.com', ec2Principal: 'ec2.amazonaws.com' };
const OTHERS: readonly [prefix: string, Partition][] = [
  ['cn-', { name: 'aws-cn', dnsSuffix: 'amazonaws.com.cn', ec2Principal: 'ec2.amazonaws.com.cn' }],
  ['us-gov-', { ...COMMERCIAL, name: 'aws-us-gov' }],
  ['eusc-', { ...COMMERCIAL, name: 'aws-eusc', dnsSuffix: 'amazonaws.eu' }],
];

/** The partition of a region by its name, such as `cn-north-1`. */
export const partitionOf = (region: string): Partition =>
  OTHERS.find(([prefix]) => region.startsWith(prefix))?.[1] ?? COMMERCIAL;
