/** Health checks: the request to a target, its interval, and which answers pass. */
import { request } from 'node:http';

export interface HealthCheckSettings {
  path: string;
  /** A number, or `traffic-port` for the port the target is registered with. */
  port: string;
  intervalS: number;
  timeoutS: number;
  healthyThreshold: number;
  unhealthyThreshold: number;
  /** `200`, `200-299`, `200,204` */
  matcher: string;
}

/**
 * Checks are ten times as frequent as configured in the group, because AWS's shortest interval (5 s) is long for a run
 * of 45 s. Timeouts are unchanged: a busy laptop answers no faster than EC2.
 */
const SPEED_FACTOR = 10;
const MIN_INTERVAL_MS = 250;

export function healthCheckIntervalMs(settings: HealthCheckSettings): number {
  return Math.max(MIN_INTERVAL_MS, (settings.intervalS * 1_000) / SPEED_FACTOR);
}

interface HealthCheckRequest {
  instanceId: string;
  address: string;
  port: number;
  /** The load balancer's own address. */
  from: string;
  settings: HealthCheckSettings;
  signal: AbortSignal;
}

/** Checks a target. Null for a pass, otherwise AWS's reason code and text. Never throws. */
export type HealthCheck = (request: HealthCheckRequest) => Promise<{ code: string; text: string } | null>;

export const httpHealthCheck: HealthCheck = ({ address, port, from, settings, signal }) =>
  new Promise((resolve) => {
    const call = request({
      host: address,
      port,
      localAddress: from,
      path: settings.path,
      // A new connection: a check must not pass because an old connection is still open.
      agent: false,
      signal,
      timeout: settings.timeoutS * 1_000,
      headers: { 'user-agent': 'ELB-HealthChecker/2.0', connection: 'close' },
    });
    call.on('response', (response) => {
      response.resume();
      response.on('error', () => {});
      const status = response.statusCode ?? 0;
      resolve(
        matchesStatus(settings.matcher, status)
          ? null
          : { code: 'Target.ResponseCodeMismatch', text: `Health checks failed with these codes: [${status}]` },
      );
    });
    call.on('timeout', () => {
      resolve({ code: 'Target.Timeout', text: 'Request timed out' });
      call.destroy();
    });
    call.on('error', () => resolve({ code: 'Target.FailedHealthChecks', text: 'Health checks failed' }));
    call.end();
  });

/** Whether a status matches a matcher such as `200-299,301`. */
export function matchesStatus(matcher: string, status: number): boolean {
  return matcher.split(',').some((part) => {
    const [low = NaN, high = low] = part.split('-').map(Number);
    return status >= low && status <= high;
  });
}
