/** The memory that the main server takes for a part, measured in a process of its own. */
import { expect, it } from 'vitest';
import { measurePart, PART_MEMORY_MB, PARTS } from '../../../bench/loading/reading.ts';

it.each(Object.entries(PARTS))(
  'a part with %s takes at most the memory that a part may',
  { tags: ['nightly'] },
  async (_what, lines) => {
    expect((await measurePart(lines())).figures.peakMb).toBeLessThan(PART_MEMORY_MB);
  },
);
