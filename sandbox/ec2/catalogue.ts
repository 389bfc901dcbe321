/** The account's environment: the default VPC with two subnets, images and instance types. Ids never change. */
import { createHash } from 'node:crypto';
import { ACCOUNT_ID } from '../ids.ts';

export interface Subnet {
  id: string;
  arn: string;
  zone: string;
  zoneId: string;
  cidr: string;
  /** The zone's default subnet; other subnets are used only when named. */
  isDefault: boolean;
  /** First address and number of addresses, as offsets into the network (network.ts). */
  firstOffset: number;
  size: number;
}

export interface Image {
  id: string;
  name: string;
  description: string;
  ownerId: string;
  ownerAlias: string | null;
  architecture: 'x86_64' | 'arm64';
  createdAt: string;
  /** The snapshot of an image made by the account. */
  own?: { snapshotId: string; availableAtMs: number };
}

export interface InstanceType {
  name: string;
  architecture: 'x86_64' | 'arm64';
  vcpus: number;
  memoryMib: number;
}

export interface Catalogue {
  region: string;
  vpcId: string;
  vpcCidr: string;
  securityGroupId: string;
  subnets: readonly Subnet[];
  /** Images made by the account are appended. */
  images: Image[];
  instanceTypes: readonly InstanceType[];
}

/** The same at every start, and another one in each region. @param end one hexadecimal digit */
const idOf = (kind: string, ordinal: number, end: string): string =>
  `${kind}-0c0a0f1ee7${ordinal.toString(16).padStart(6, '0')}${end}`;

/**
 * Zones a and c: the pair that nearly every region has. A /20 each, as in a default VPC. The subnet in zone d is not a
 * default subnet: it is for launches into a zone that a load balancer does not have.
 */
function subnetsOf(region: string, vpcCidr: string, ordinal: number): Subnet[] {
  const base = vpcCidr.split('.').slice(0, 2).join('.');
  return ['a', 'c', 'd'].map((letter, index) => {
    const third = 16 * (index + 1);
    const id = idOf('subnet', ordinal, letter);
    return {
      id,
      arn: `arn:aws:ec2:${region}:${ACCOUNT_ID}:subnet/${id}`,
      zone: `${region}${letter}`,
      zoneId: `${region.replaceAll(/[^a-z0-9]/g, '')}-az${index + 1}`,
      cidr: `${base}.${third}.0/20`,
      isDefault: letter !== 'd',
      // AWS reserves the first four addresses and the last one of every subnet.
      firstOffset: third * 256 + 4,
      size: 4_096 - 5,
    };
  });
}

const image = (given: Omit<Image, 'id'>): Image => ({
  id: `ami-0${createHash('sha256').update(given.name).digest('hex').slice(0, 16)}`,
  ...given,
});

const AMAZON = { description: 'Amazon Linux 2023', ownerId: '137112412989', ownerAlias: 'amazon' };
const DEBIAN = { description: 'Debian 13', ownerId: '136693071363', ownerAlias: null };

const IMAGES: readonly Image[] = (['x86_64', 'arm64'] as const).flatMap((architecture) => {
  const al2023 = (name: string, createdAt: string): Image =>
    image({ ...AMAZON, name: `${name}-kernel-6.1-${architecture}`, architecture, createdAt });
  const debian = `debian-13-${architecture === 'arm64' ? 'arm64' : 'amd64'}-20260815-2201`;
  return [
    // Two releases, so that a caller who wants the newest has to compare the dates.
    al2023('al2023-ami-2023.9.20251208.0', '2025-12-08T20:00:00.000Z'),
    al2023('al2023-ami-2023.10.20260901.0', '2026-09-01T20:00:00.000Z'),
    al2023('al2023-ami-minimal-2023.10.20260901.0', '2026-09-01T20:00:00.000Z'),
    image({ ...DEBIAN, name: debian, architecture, createdAt: '2026-08-15T10:00:00.000Z' }),
  ];
});

const MEMORY_MIB = { nano: 512, micro: 1_024, small: 2_048, medium: 4_096, large: 8_192 };

// All burstable sizes up to large have two vCPUs.
const INSTANCE_TYPES: readonly InstanceType[] = (['t3', 't3a', 't4g'] as const).flatMap((family) =>
  Object.entries(MEMORY_MIB).map(([size, memoryMib]) => ({
    name: `${family}.${size}`,
    architecture: family === 't4g' ? ('arm64' as const) : ('x86_64' as const),
    vcpus: 2,
    memoryMib,
  })),
);

/** @param ordinal of the region in this sandbox */
export function createCatalogue(region: string, vpcCidr: string, ordinal = 0): Catalogue {
  return {
    region,
    vpcId: idOf('vpc', ordinal, '1'),
    vpcCidr,
    securityGroupId: idOf('sg', ordinal, '1'),
    subnets: subnetsOf(region, vpcCidr, ordinal),
    images: [...IMAGES],
    instanceTypes: INSTANCE_TYPES,
  };
}
