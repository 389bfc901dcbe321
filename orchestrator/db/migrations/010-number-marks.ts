/** Which decimal marks the numbers of a part show, and how the run has read the numbers that this decides. */
import type { Migration } from './migration.ts';

export const numberMarks: Migration = {
  version: 10,
  name: 'number-marks',
  tables: {},
  columns: {
    crawlfleet_parts: {
      // JSON: by field how many products show the point and the comma.
      number_marks: (t) => t.text('number_marks'),
    },
    crawlfleet_runs: {
      // JSON: NumberReport[].
      numbers: (t) => t.text('numbers'),
    },
  },
};
