/** How the crawl API is started on an instance, the same on EC2 and in the sandbox. Both keep it small beside a browser. */

export const INSTANCE_ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_ENV: 'production',
  // One arena: the C library would otherwise keep one for every thread, 9 MB in all.
  MALLOC_ARENA_MAX: '1',
};

/** V8 otherwise lets short-lived objects pile up to 160 MB under a storm of connections, on machines with much memory. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=4'];
