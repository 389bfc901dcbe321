/** The decimal marks shown by a part's numbers, and how the run has read the numbers that these decide. */
import type { Migration } from './migration.ts';

export const numberMarks: Migration = {
  version: 10,
  name: 'number-marks',
  tables: {},
  columns: {
    crawlfleet_parts: {
      // JSON: by field, how many products show the point and the comma.
      number_marks: (t) => t.text('number_marks'),
    },
    crawlfleet_runs: {
      // JSON: NumberReport[].
      numbers: (t) => t.text('numbers'),
    },
  },
};
