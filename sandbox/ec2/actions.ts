/** EC2's calls by name. A name that is not here is answered as AWS answers one it does not know. */
import type { QueryAction } from '../query-protocol.ts';
import * as catalogue from './catalogue-actions.ts';
import type { Ec2Context } from './context.ts';
import * as instances from './instance-actions.ts';
import { runInstances } from './run-instances.ts';
import * as tags from './tag-actions.ts';

export function createEc2Actions(context: Ec2Context): Map<string, QueryAction> {
  return new Map<string, QueryAction>([
    ['RunInstances', (params) => runInstances(params, context)],
    ['DescribeInstances', (params) => instances.describeInstances(params, context)],
    ['DescribeInstanceStatus', (params) => instances.describeInstanceStatus(params, context)],
    ['DescribeInstanceAttribute', (params) => instances.describeInstanceAttribute(params, context)],
    ['TerminateInstances', (params) => instances.terminateInstances(params, context)],
    ['StopInstances', (params) => instances.stopInstances(params, context)],
    ['StartInstances', (params) => instances.startInstances(params, context)],
    ['GetConsoleOutput', (params) => instances.getConsoleOutput(params, context)],
    ['CreateTags', (params) => tags.createTags(params, context)],
    ['DeleteTags', (params) => tags.deleteTags(params, context)],
    ['DescribeTags', (params) => tags.describeTags(params, context)],
    ['DescribeSubnets', (params) => catalogue.describeSubnets(params, context)],
    ['DescribeVpcs', (params) => catalogue.describeVpcs(params, context)],
    ['DescribeSecurityGroups', (params) => catalogue.describeSecurityGroups(params, context)],
    ['DescribeImages', (params) => catalogue.describeImages(params, context)],
    ['DescribeInstanceTypes', (params) => catalogue.describeInstanceTypes(params, context)],
    ['DescribeAvailabilityZones', (params) => catalogue.describeAvailabilityZones(params, context)],
  ]);
}
