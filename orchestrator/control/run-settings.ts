/** The part of the configuration that a run keeps: plain data, no secrets, stored in the run's row. */
import type { Mapping } from '../../shared/domain/mapping.ts';

export interface RunSettings {
  site: {
    productUrl: string;
    intervalMs: number;
    maxRatePerSecond: number | null;
    userAgent: string;
    timeoutMs: number;
    maxPageBytes: number;
    allowPrivate: boolean;
  };
  mapping: Mapping;
  results: { table: string; onGone: 'keep' | 'delete' };
  run: {
    deadlineMs: number;
    maxCost: number | null;
    graceMs: number;
    minInstances: number;
    maxInstances: number;
    /** Share of products that may fail before the exit code says so. */
    maxFailed: number;
  };
  aws: {
    region: string;
    /** Null for AWS itself. */
    endpoint: string | null;
    instanceTypes: string[];
    subnets: string[];
    securityGroups: string[];
    bucket: string;
    instanceProfile: string | null;
    image: string | null;
  };
  /** Set for a dry run in our own sandbox: how to find it again. */
  sandbox: { pid: number; controlToken: string; dataDir: string } | null;
  server: { callbackUrl: string; callbackListen: string };
}
