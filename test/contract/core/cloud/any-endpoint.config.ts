/** Only for `npm run contract`: not part of the test command, and needs none of its setup. */
import { defineConfig } from 'vitest/config';

/** A load balancer takes minutes on AWS, and hooks make one, too. */
const TIMEOUT_MS = 15 * 60_000;

export default defineConfig({
  test: { include: ['test/contract/core/cloud/any-endpoint.ts'], testTimeout: TIMEOUT_MS, hookTimeout: TIMEOUT_MS },
});
