/** Flags that several commands share: declared once, with the same text in every help. */
import { Option } from 'commander';
import type { FlagValue } from '../../app/config/load-config.ts';
import { readAmount, readDuration } from './readers.ts';

/** All common flags; a flag that a command does not declare is never set. */
export interface CommonFlags {
  config: string;
  json?: boolean;
  deadline?: string;
  maxCost?: number;
  dryRun?: boolean;
  yes?: boolean;
  acceptDrop?: boolean;
}

export const configFlag = (): Option =>
  new Option('-c, --config <file>', 'configuration file').default('fleet.yaml').env('FLEET_CONFIG');

export const jsonFlag = (): Option => new Option('--json', 'print exactly one JSON document on stdout');

export const deadlineFlag = (): Option =>
  new Option('-d, --deadline <duration>', 'from now to the rows in the result table, such as 4h').argParser(
    readDuration,
  );

export const maxCostFlag = (): Option =>
  new Option('--max-cost <usd>', 'maximum cost of the run').argParser(readAmount);

export const acceptDropFlag = (): Option =>
  new Option('--accept-drop', 'the product list has shrunk and is right: later runs are compared with it');

export const dryRunFlag = (): Option => new Option('--dry-run', 'on this machine, without a cloud account');

export const yesFlag = (beforeWhat: string): Option => new Option('-y, --yes', `do not ask ${beforeWhat}`);

export const architectureFlag = (insteadOf: string): Option =>
  new Option('--architecture <name>', `instead of ${insteadOf}`).choices(['x86_64', 'arm64']);

/** Flags that stand for settings, in the form the configuration takes: a flag wins over the file. */
export function settingsIn(flags: Pick<CommonFlags, 'deadline' | 'maxCost'>): FlagValue[] {
  return [
    ...(flags.deadline === undefined ? [] : [{ path: ['run', 'deadline'], flag: '--deadline', value: flags.deadline }]),
    ...(flags.maxCost === undefined ? [] : [{ path: ['run', 'max_cost'], flag: '--max-cost', value: flags.maxCost }]),
  ];
}
