/** Flags that several commands share: declared once, with the same text in every help. */
import { Option } from 'commander';
import { readAmount, readDuration } from './readers.ts';

/** A flag of one command, with the reader of its value. */
export const flag = (flags: string, description: string, read?: (text: string, before: unknown) => unknown): Option =>
  read === undefined ? new Option(flags, description) : new Option(flags, description).argParser(read);

export const configFlag = flag('-c, --config <file>', 'configuration file').default('fleet.yaml').env('FLEET_CONFIG');

/** The flag --config of a command that works without a configuration. */
export const optionalConfigFlag = (what: string): Option => flag('-c, --config <file>', what).env('FLEET_CONFIG');

export const jsonFlag = flag('--json', 'print exactly one JSON document on stdout');

export const deadlineFlag = flag(
  '-d, --deadline <duration>',
  'from now to the rows in the result table, such as 4h',
  readDuration,
);

export const maxCostFlag = flag('--max-cost <usd>', 'maximum cost of the run', readAmount);

/** The flags of a command that plans a run. */
export const planFlags = [configFlag, deadlineFlag, maxCostFlag];

export const acceptDropFlag = flag(
  '--accept-drop',
  'the product list has shrunk and is right: later runs are compared with it',
);

export const dryRunFlag = flag('--dry-run', 'on this machine, without a cloud account');

export const yesFlag = (beforeWhat: string): Option => flag('-y, --yes', `do not ask ${beforeWhat}`);

const quietFlag = flag('-q, --quiet', 'print only alarms and how the run ended').conflicts('verbose');

const verboseFlag = flag('-v, --verbose', 'print the log of the run as well');

/** The flags of a command that works on a run. */
export const detailFlags = [quietFlag, verboseFlag];

export const addColumnsFlag = flag(
  '--add-columns',
  'add the columns of new fields to a result table that crawlfleet has made',
);

/** The flags of a command that launches a run. */
export const launchFlags = [yesFlag('before launching'), ...detailFlags];

export const metricsFlag = flag(
  '--metrics <address>',
  'serve metrics for Prometheus on this address and port while the run works',
);

export const toFlag = flag('--to <file>', 'write here instead of to stdout (-)');

export const architectureFlag = (insteadOf: string): Option =>
  flag('--architecture <name>', `instead of ${insteadOf}`).choices(['x86_64', 'arm64']);
