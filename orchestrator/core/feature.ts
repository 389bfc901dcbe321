/** What a feature adds to the core: each part is no wider than what the features there are use. */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import type { Output } from './caller.ts';
import type { Config, Environment } from './config/load-config.ts';
import type { Database } from './db/connect.ts';
import type { DataFeature } from './db/data-feature.ts';
import type { RunRecord, StoreReaders } from './model/stores.ts';
import type { Listener } from './server/listen.ts';
import type { Section } from './config/section.ts';
import type { RunEvents } from './run-events.ts';

export interface Feature extends DataFeature, PageFeature {
  /** Its top-level keys of fleet.yaml. */
  sections?: readonly Section<unknown>[];
  /** Listeners to what runs and the schedule do. */
  runEvents?: RunEvents;
}

/** What one feature offers to others, which ask for it here: the page of a run, due times, and their daemon. */
interface PageFeature {
  /** The page of a run that is over as one file, which asks no server for anything. */
  reportPage?(run: RunRecord, stores: StoreReaders): Promise<string>;
  /** When the next run is due; null: no daemon waits for a due time. */
  nextDue?(database: Database, config: Config): Promise<number | null>;
  /** Starts runs at their due times until the signal. Refuses at once what would make every run fail. */
  runDaemon?(options: DaemonOptions, output: Output): Promise<ExitCode>;
}

export interface DaemonOptions extends ConfigSource {
  /** The program that this process runs. */
  launcher: string;
  /** The environment for the processes that the daemon starts. */
  processEnvironment: Environment;
  dryRun: boolean;
  signal: AbortSignal;
  /** Listens instead of a server with `/healthz` alone. */
  listenWith?: (health: () => { ok: boolean }) => Promise<Listener>;
}

export type Features = readonly Feature[];

/** Where a command reads its configuration, and the features that this program has. */
export interface ConfigSource {
  configPath: string;
  environment: Environment;
  features: Features;
}
