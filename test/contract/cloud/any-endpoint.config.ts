/** For `npm run contract` alone: no part of the test command, and it needs none of what that sets up. */
import { defineConfig } from 'vitest/config';

/** A balancer takes minutes on AWS, and making one is part of hooks too. */
const TIMEOUT_MS = 15 * 60_000;

export default defineConfig({
  test: { include: ['test/contract/cloud/any-endpoint.ts'], testTimeout: TIMEOUT_MS, hookTimeout: TIMEOUT_MS },
});
