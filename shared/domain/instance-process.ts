/**
 * How the crawl API is started on an instance, on EC2 as in the sandbox. Both settings keep its memory small beside a
 * browser.
 */

export const INSTANCE_ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_ENV: 'production',
  // One arena: the C library would otherwise use one per thread, 9 MB in total.
  MALLOC_ARENA_MAX: '1',
};

/** On machines with much memory, V8 otherwise lets short-lived objects grow to 160 MB during a connection storm. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=4'];
