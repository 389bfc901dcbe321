/** The features that this program has. A feature is taken out by deleting its folder and its two lines here. */
import { INIT } from './features/init/index.ts';
import { SETUP } from './features/setup/index.ts';
import { DOCTOR } from './features/doctor/index.ts';
import { IMAGE } from './features/image/index.ts';
import { EXEC } from './features/exec/index.ts';
import { SCHEDULE } from './features/schedule/index.ts';
import { SERVE } from './features/serve/index.ts';
import { NOTIFY } from './features/notify/index.ts';
import { SIMULATE } from './features/simulate/index.ts';
import { PROBE } from './features/probe/index.ts';
import { EXPLAIN } from './features/explain/index.ts';
import { EXPORT } from './features/export/index.ts';
import { DISCOVERY } from './features/discovery/index.ts';
import { HISTORY } from './features/history/index.ts';
import { RECRAWL } from './features/recrawl/index.ts';
import { HOSTS } from './features/hosts/index.ts';
import type { FeatureDeclaration } from './cli/program/feature.ts';

export const FEATURES: readonly FeatureDeclaration[] = [
  INIT,
  SETUP,
  DOCTOR,
  IMAGE,
  EXEC,
  SCHEDULE,
  SERVE,
  NOTIFY,
  SIMULATE,
  PROBE,
  EXPLAIN,
  EXPORT,
  DISCOVERY,
  HISTORY,
  RECRAWL,
  HOSTS,
];
