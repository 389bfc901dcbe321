/** The known instance types: what a plan needs of them, and which of the allowed ones to take. */
import { hourlyPrice, type Prices } from './price-table.ts';

export type Architecture = 'x86_64' | 'arm64';

export interface InstanceType {
  name: string;
  /** What the quota L-1216C47A counts. */
  vcpus: number;
  memoryGb: number;
  architecture: Architecture;
}

const SIZES = [
  ['nano', 0.5],
  ['micro', 1],
  ['small', 2],
  ['medium', 4],
] as const;

/** https://aws.amazon.com/ec2/instance-types/t4/ and /t3/: every size up to medium has two vCPUs. */
const KNOWN: readonly InstanceType[] = SIZES.flatMap(([size, memoryGb]) => [
  { name: `t4g.${size}`, vcpus: 2, memoryGb, architecture: 'arm64' as const },
  { name: `t3.${size}`, vcpus: 2, memoryGb, architecture: 'x86_64' as const },
]);

/** vCPUs of the sizes that all current families share; for types missing from the table. */
const VCPUS_BY_SIZE: Record<string, number> = { medium: 1, large: 2, xlarge: 4 };

/** Memory an HTTP instance needs: the process stays under 120 MB, the rest is for the system. */
export const HTTP_MEMORY_GB = 0.5;

/** Memory an instance with a browser needs: Chromium with one page, and a heavy page's own memory. */
export const BROWSER_MEMORY_GB = 2;

/**
 * The type by its name. AWS's naming rules decide for a type missing from the table: `g` after the generation is arm64,
 * `<n>xlarge` has 4n vCPUs; where the name is ambiguous, more vCPUs rather than fewer, because the quota counts them.
 */
export function describeInstanceType(name: string): InstanceType {
  const known = KNOWN.find((t) => t.name === name);
  if (known) return known;
  const [family = '', size = ''] = name.split('.');
  const multiple = /^(\d+)xlarge$/.exec(size)?.[1];
  const vcpus = multiple ? 4 * Number(multiple) : (VCPUS_BY_SIZE[size] ?? 2);
  const arm = /^[a-z]+\d+[a-z]*g/.test(family) || family === 'a1';
  return { name, vcpus, memoryGb: 2 * vcpus, architecture: arm ? 'arm64' : 'x86_64' };
}

/** The architecture that the type's image must have. */
export const architectureOf = (name: string): Architecture => describeInstanceType(name).architecture;

/** The cheapest of the allowed types that fits an instance; if none does, the one with the most memory. */
export function chooseInstanceType(
  allowed: readonly string[],
  region: string,
  memoryGb = HTTP_MEMORY_GB,
  prices?: Prices | null,
): InstanceType {
  const types = allowed.map(describeInstanceType);
  const price = (t: InstanceType): number => hourlyPrice(region, t.name, prices).usd;
  const fitting = types.filter((t) => t.memoryGb >= memoryGb).sort((a, b) => price(a) - price(b));
  const chosen = fitting[0] ?? types.sort((a, b) => b.memoryGb - a.memoryGb)[0];
  // The configuration refuses an empty list; the smallest known type keeps this function total.
  return chosen ?? KNOWN[0]!;
}

/**
 * The types that a run may launch when its plan has chosen `planned`: that one, then the others of its architecture,
 * for which it has an image and a bundle.
 */
export const typesOfRun = (planned: string, allowed: readonly string[]): string[] => [
  planned,
  ...allowed.filter((name) => name !== planned && architectureOf(name) === architectureOf(planned)),
];
