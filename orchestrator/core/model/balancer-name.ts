/** The load balancer and the target group of a run. ELBv2 names have at most 32 characters; the run's id has fewer. */
export const balancerName = (runId: string): string => `cf-${runId}`;
