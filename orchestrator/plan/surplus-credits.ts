/** What T types cost in addition to their price when their processors are busy. */
import { describeInstanceType } from './instance-types.ts';

/**
 * T types with unlimited credits, the launch default: a vCPU-hour beyond the baseline, Linux, the same in every region.
 * https://aws.amazon.com/ec2/pricing/on-demand/#T2.2FT3.2FT4g_Unlimited_Mode_Pricing
 */
const SURPLUS_VCPU_HOUR: Record<string, number> = { t3: 0.05, t3a: 0.05, t4g: 0.04 };
/**
 * Share of a vCPU included in the price:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/burstable-credits-baseline-concepts.html
 */
const BASELINE: Record<string, number> = { nano: 0.05, micro: 0.1, small: 0.2, medium: 0.2, large: 0.3, xlarge: 0.4 };

/** USD per hour on top of the instance's price when all its vCPUs are busy; 0 for types without credits. */
export function surplusPerHour(instanceType: string): number {
  const [family = '', size = ''] = instanceType.split('.');
  const usd = SURPLUS_VCPU_HOUR[family];
  return usd === undefined ? 0 : usd * describeInstanceType(instanceType).vcpus * (1 - (BASELINE[size] ?? 0.4));
}
