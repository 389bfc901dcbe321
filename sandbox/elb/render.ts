/** Renders ELBv2 resources as ELBv2's XML. */
import type { XmlNode } from '../xml.ts';
import type { Listener, LoadBalancer } from './load-balancer.ts';
import type { Target, TargetGroup } from './target-group.ts';

/** AWS takes minutes to provision a load balancer; this is only long enough to be observed. */
const PROVISIONING_MS = 250;

export function renderLoadBalancer(balancer: LoadBalancer, nowMs: number): XmlNode {
  const { about } = balancer;
  return {
    LoadBalancerArn: about.arn,
    DNSName: about.address,
    CanonicalHostedZoneId: 'Z00000000000000000000',
    CreatedTime: new Date(about.createdMs).toISOString(),
    LoadBalancerName: about.name,
    Scheme: about.scheme,
    VpcId: about.vpcId,
    State: { Code: nowMs - about.createdMs < PROVISIONING_MS ? 'provisioning' : 'active' },
    Type: 'application',
    AvailabilityZones: {
      member: about.subnets.map(({ id, zone }) => ({ ZoneName: zone, SubnetId: id, LoadBalancerAddresses: null })),
    },
    SecurityGroups: { member: [...about.securityGroupIds] },
    IpAddressType: 'ipv4',
  };
}

export function renderTargetGroup(group: TargetGroup): XmlNode {
  const { arn, name, port, vpcId, healthCheck: check } = group.about;
  return {
    TargetGroupArn: arn,
    TargetGroupName: name,
    Protocol: 'HTTP',
    Port: port,
    VpcId: vpcId,
    HealthCheckProtocol: 'HTTP',
    HealthCheckPort: check.port,
    HealthCheckEnabled: true,
    HealthCheckIntervalSeconds: check.intervalS,
    HealthCheckTimeoutSeconds: check.timeoutS,
    HealthyThresholdCount: check.healthyThreshold,
    UnhealthyThresholdCount: check.unhealthyThreshold,
    HealthCheckPath: check.path,
    Matcher: { HttpCode: check.matcher },
    LoadBalancerArns: { member: group.use ? [group.use.loadBalancerArn] : [] },
    TargetType: 'instance',
    ProtocolVersion: 'HTTP1',
    IpAddressType: 'ipv4',
  };
}

export function renderListener(listener: Listener, loadBalancerArn: string): XmlNode {
  const { arn } = listener.targetGroup.about;
  return {
    ListenerArn: listener.arn,
    LoadBalancerArn: loadBalancerArn,
    Port: listener.port,
    Protocol: 'HTTP',
    DefaultActions: {
      member: {
        Type: 'forward',
        TargetGroupArn: arn,
        ForwardConfig: {
          TargetGroups: { member: { TargetGroupArn: arn, Weight: 1 } },
          TargetGroupStickinessConfig: { Enabled: false },
        },
      },
    },
  };
}

export function renderTargetHealth(group: TargetGroup, target: Target): XmlNode {
  const view = group.healthOf(target);
  const { port } = group.about.healthCheck;
  return {
    Target: { Id: target.id, Port: target.port },
    HealthCheckPort: port === 'traffic-port' ? target.port : port,
    TargetHealth: { State: view.state, Reason: view.reason, Description: view.description },
  };
}

export function renderAttributes(attributes: ReadonlyMap<string, string>): XmlNode {
  return { Attributes: { member: [...attributes].map(([Key, Value]) => ({ Key, Value })) } };
}
