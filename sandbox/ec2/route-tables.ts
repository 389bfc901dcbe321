/** DescribeRouteTables: one main table for the whole VPC, with the default route set in the conditions. */
import { AwsError } from '../aws-error.ts';
import { ACCOUNT_ID } from '../ids.ts';
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { Ec2Context } from './context.ts';
import { applyFilters } from './filters.ts';
import { renderTags } from './render.ts';

const ROUTE_TABLE_ID = 'rtb-0c0a0f1ee70000001';
const WAYS_OUT = {
  'internet-gateway': { gatewayId: 'igw-0c0a0f1ee70000001' },
  'nat-gateway': { natGatewayId: 'nat-0c0a0f1ee70000001' },
} as const;

/** Subnets have no associations, so they use the main table: filters by subnet find nothing, as on AWS. */
export function describeRouteTables(params: Params, { catalogue, conditions, tags }: Ec2Context): XmlNode {
  const unknown = params.texts('RouteTableId').find((id) => id !== ROUTE_TABLE_ID);
  if (unknown !== undefined)
    throw new AwsError('InvalidRouteTableID.NotFound', `The routeTable ID '${unknown}' does not exist`);
  const { defaultRoute } = conditions.now;
  const matching = applyFilters(
    [ROUTE_TABLE_ID],
    params,
    {
      'route-table-id': (id) => id,
      'vpc-id': () => catalogue.vpcId,
      'association.main': () => 'true',
      'association.subnet-id': () => undefined,
      'owner-id': () => ACCOUNT_ID,
    },
    (id) => tags.of(id),
  );
  const route = { state: 'active', origin: 'CreateRoute' };
  return {
    routeTableSet: {
      item: matching.map((routeTableId) => ({
        routeTableId,
        vpcId: catalogue.vpcId,
        ownerId: ACCOUNT_ID,
        routeSet: {
          item: [
            {
              destinationCidrBlock: catalogue.vpcCidr,
              gatewayId: 'local',
              state: 'active',
              origin: 'CreateRouteTable',
            },
            ...(defaultRoute === 'none'
              ? []
              : [{ destinationCidrBlock: '0.0.0.0/0', ...WAYS_OUT[defaultRoute], ...route }]),
          ],
        },
        associationSet: {
          item: [
            {
              routeTableAssociationId: 'rtbassoc-0c0a0f1ee70000001',
              routeTableId,
              main: true,
              associationState: { state: 'associated' },
            },
          ],
        },
        propagatingVgwSet: null,
        tagSet: renderTags(tags.of(routeTableId)),
      })),
    },
  };
}
