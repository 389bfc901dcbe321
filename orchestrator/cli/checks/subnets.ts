/** Subnets in two zones, where every instance has its own public address. */
import type { RouteTable } from '../../cloud/route-tables.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { SubnetInfo } from '../../cloud/compute.ts';
import { wayOut } from '../../cloud/route-tables.ts';
import type { Check, Finding } from './check.ts';
import { failed, ok, warning } from './check.ts';
import { lacksRegion } from './lacks.ts';
import { findingOf } from './run-checks.ts';

export const subnets: Check = {
  id: 'subnets',
  title: 'subnets and their way to the site',
  kinds: ['aws'],
  needs: ['credentials'],
  lacks: lacksRegion,
  beforeLaunch: true,
  async run({ facts }) {
    const found = await facts.subnets();
    const isFaithful = await facts.isFaithful();
    try {
      const tables = await facts.routeTables();
      return judgeSubnets(found, tables, isFaithful);
    } catch (error) {
      const finding = findingOf(error);
      const isRight = error instanceof AppError && error.code === 'aws-denied';
      const unseen = isRight ? warning('the route tables could not be read', 'Allow ec2:DescribeRouteTables') : finding;
      return [zones(found), unseen];
    }
  },
};

/** @param isFaithful false for emulators, which may show no gateway because none is needed */
export function judgeSubnets(
  found: readonly SubnetInfo[],
  tables: readonly RouteTable[],
  isFaithful: boolean,
): Finding[] {
  const ways = found.map((subnet) => ({ subnet, way: wayOut(tables, subnet.id) }));
  const of = (kind: string): string[] =>
    ways
      .filter(({ way }) => way.kind === kind)
      .map(({ subnet, way }) => (way.target === null ? subnet.id : `${subnet.id} (${way.target})`));
  const nat = of('nat');
  const none = of('none');
  const other = of('other');
  const remedy = 'Set aws.subnets to public subnets: their route table sends 0.0.0.0/0 to an internet gateway';
  return [
    zones(found),
    ...(nat.length > 0
      ? [
          failed(
            'aws-invalid',
            `behind a NAT all instances have one address, and site.interval counts by address: ${nat.join(', ')}`,
            remedy,
          ),
        ]
      : []),
    ...(none.length > 0
      ? [
          isFaithful
            ? failed('aws-invalid', `no way to the internet from ${none.join(', ')}`, remedy)
            : warning(`no way to the internet is shown for ${none.join(', ')}`),
        ]
      : []),
    ...(other.length > 0
      ? [warning(`what address instances have outside cannot be known for ${other.join(', ')}`, remedy)]
      : []),
    ...(nat.length + none.length + other.length === 0
      ? [ok('each instance gets a public address of its own, and an internet gateway is its way out')]
      : []),
  ];
}

function zones(found: readonly SubnetInfo[]): Finding {
  const names = [...new Set(found.map((s) => s.zone))];
  if (names.length >= 2) return ok(`${found.length} subnets in ${names.join(', ')}`);
  return failed(
    'aws-invalid',
    `all subnets are in ${names.join()}: an application load balancer needs two zones`,
    'Add a subnet in another zone to aws.subnets',
  );
}
