/** What must be configured for a check to be possible; the check of the settings has the remedy. */
import { regionOf } from '../plan/target.ts';
import type { Check } from './check.ts';

type Lacks = NonNullable<Check['lacks']>;

/** Without a region the user's resources cannot be found. */
export const lacksRegion: Lacks = ({ config, target, environment }) =>
  target.dryRun || regionOf(config, environment) !== null ? null : 'aws.region is not set';

export const lacksBucket: Lacks = (context) =>
  lacksRegion(context) ?? (context.target.bucket === '' ? 'aws.bucket is not set' : null);

export const lacksServerUrl: Lacks = (context) =>
  lacksRegion(context) ?? (context.config.values.server.url === null ? 'server.url is not set' : null);
