/**
 * How the crawl API is started on an instance, on EC2 as in the sandbox. All settings keep its memory small beside a
 * browser.
 */

export const INSTANCE_ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_ENV: 'production',
  // One arena: the C library would otherwise use one per thread, 9 MB in total.
  MALLOC_ARENA_MAX: '1',
  // Buffers from this size are given back when they are freed. The C library would otherwise raise the limit with each
  // larger buffer: 152 MB instead of 174 over pages of 10 MB.
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

/**
 * Flags of the Node of an instance. On machines with much memory, V8 otherwise lets short-lived objects grow to 160 MB
 * during a connection storm. Garbage is collected after heavy pages (crawl-api/fetch/page-body.ts).
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=4', '--expose-gc'];
