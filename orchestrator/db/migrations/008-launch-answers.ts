/**
 * EC2's answer to a launch, and why it ended an instance: as JSON, so that no decision depends on the wording of a
 * text.
 */
import type { Migration } from './migration.ts';

export const launchAnswers: Migration = {
  version: 8,
  name: 'launch-answers',
  tables: {},
  columns: {
    crawlfleet_instances: {
      // A LaunchFailure. Rows of earlier versions store it in `last_error` (launch-answers.ts).
      answer: (t) => t.text('answer'),
      // A StateReason.
      state_reason: (t) => t.text('state_reason'),
    },
  },
};
