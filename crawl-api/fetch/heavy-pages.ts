/** Keeps the memory of an instance small while it reads heavy pages. */
import v8 from 'node:v8';

/** Bytes of a page after which the memory is checked, again and again, and once more at the page's end. */
export const HEAVY_BYTES = 500_000;

/** An instance has 25 MB while it reads ordinary pages. */
const MAX_USED_BYTES = 40e6;

/**
 * Collects garbage if more than an ordinary page's memory is in use: V8 would let it grow beside what is kept of this
 * page and the next. Takes 25 to 60 ms of processor time, a tenth of what the page itself took. Possible only where
 * Node has
 * `--expose-gc`, as on an instance; elsewhere it does nothing.
 */
export function collectGarbage(): void {
  const { gc } = globalThis;
  if (gc === undefined) return;
  const { used_heap_size, external_memory } = v8.getHeapStatistics();
  if (used_heap_size + external_memory > MAX_USED_BYTES) gc();
}
