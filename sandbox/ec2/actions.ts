/** EC2's calls by name. Any other name is answered like an unknown action on AWS. */
import type { Params, QueryAction } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import * as catalogue from './catalogue-actions.ts';
import { type Ec2Context, refuseDryRun } from './context.ts';
import * as images from './image-actions.ts';
import * as instances from './instance-actions.ts';
import { runInstances } from './run-instances.ts';
import * as tags from './tag-actions.ts';

export function createEc2Actions(context: Ec2Context): Map<string, QueryAction> {
  /**
   * Parsing changes nothing, so it comes first: faults in the request are reported before whether it would be allowed.
   */
  const reads =
    (read: (params: Params, context: Ec2Context) => XmlNode): QueryAction =>
    (params) => {
      const reply = read(params, context);
      refuseDryRun(params);
      return reply;
    };
  return new Map<string, QueryAction>([
    ['RunInstances', (params) => runInstances(params, context)],
    ['DescribeInstances', reads(instances.describeInstances)],
    ['DescribeInstanceStatus', reads(instances.describeInstanceStatus)],
    ['DescribeInstanceAttribute', reads(instances.describeInstanceAttribute)],
    ['ModifyInstanceAttribute', (params) => instances.modifyInstanceAttribute(params, context)],
    ['TerminateInstances', (params) => instances.terminateInstances(params, context)],
    ['StopInstances', (params) => instances.stopInstances(params, context)],
    ['StartInstances', (params) => instances.startInstances(params, context)],
    ['GetConsoleOutput', reads(instances.getConsoleOutput)],
    ['CreateTags', (params) => tags.createTags(params, context)],
    ['DeleteTags', (params) => tags.deleteTags(params, context)],
    ['DescribeTags', reads(tags.describeTags)],
    ['DescribeSubnets', reads(catalogue.describeSubnets)],
    ['DescribeVpcs', reads(catalogue.describeVpcs)],
    // What ELBv2 looks at when it makes a load balancer: there is none of it here, but a caller may ask for the right.
    ['DescribeAccountAttributes', reads(() => ({ accountAttributeSet: {} }))],
    ['DescribeAddresses', reads(() => ({ addressesSet: {} }))],
    ['DescribeInternetGateways', reads(() => ({ internetGatewaySet: {} }))],
    ['DescribeSecurityGroups', reads(catalogue.describeSecurityGroups)],
    ['GetSecurityGroupsForVpc', reads(catalogue.getSecurityGroupsForVpc)],
    ['DescribeImages', reads(catalogue.describeImages)],
    ['CreateImage', (params) => images.createImage(params, context)],
    ['CopyImage', (params) => images.copyImage(params, context)],
    ['DeregisterImage', (params) => images.deregisterImage(params, context)],
    ['DeleteSnapshot', (params) => images.deleteSnapshot(params, context)],
    ['DescribeInstanceTypes', reads(catalogue.describeInstanceTypes)],
    ['DescribeAvailabilityZones', reads(catalogue.describeAvailabilityZones)],
    ['DescribeRouteTables', reads(catalogue.describeRouteTables)],
    ['DescribeVpcAttribute', reads(catalogue.describeVpcAttribute)],
    ['DescribeVolumes', reads(instances.describeVolumes)],
    ['GetEbsEncryptionByDefault', reads(instances.getEbsEncryptionByDefault)],
    ['GetEbsDefaultKmsKeyId', reads(instances.getEbsDefaultKmsKeyId)],
    ['DescribeInstanceCreditSpecifications', reads(instances.describeInstanceCreditSpecifications)],
  ]);
}
