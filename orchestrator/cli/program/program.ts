/** The command line as a whole: its commands in the order of its help. */
import { Command } from 'commander';
import { VERSION } from '../../core/version.ts';
import { writeData } from '../terminal.ts';
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import { addCommand } from './add-command.ts';
import { addCompletion } from './completion.ts';
import type { CommandDeclaration, FeatureDeclaration } from './feature.ts';
import { READING_COMMANDS } from './reading-commands.ts';
import { RUN_COMMANDS } from './run-commands.ts';
import { asTyped } from '../typed-name.ts';
import { LOCAL_COMMANDS } from './local-commands.ts';

/** The commands of the help, by heading; one of a feature that is not there is left out. */
const HEADINGS = {
  'Getting ready, and clearing up:': ['init', 'setup', 'doctor', 'bundle', 'image', 'gc', 'prune'],
  'Trying things out:': ['extract', 'simulate', 'probe', 'sandbox'],
  'Runs:': [
    'plan',
    'run',
    'discover',
    'resume',
    'retry',
    'pace',
    'hosts',
    'stop',
    'cancel',
    'publish',
    'exec',
    'load',
    'schedule',
    'serve',
    'notify',
  ],
  'Inspecting runs:': ['status', 'watch', 'explain', 'product', 'export', 'report', 'logs', 'cost', 'verify'],
};

/** A page and examples of a command. */
export type HelpNotes = readonly [page: string, ...examples: string[]];

const COMPLETION_HELP: HelpNotes = [
  'docs/README.md',
  'completion bash > /etc/bash_completion.d/orchestrator',
  'completion zsh',
  'completion fish',
];

const commandsWith = (features: readonly FeatureDeclaration[]): readonly CommandDeclaration[] => [
  ...[ACCOUNT_COMMANDS, LOCAL_COMMANDS, RUN_COMMANDS, READING_COMMANDS].flat(),
  ...features.flatMap(({ commands = [] }) => commands),
];

/** The help notes by command. A test parses every example and opens every page. */
export const helpNotes = (features: readonly FeatureDeclaration[]): ReadonlyMap<string, HelpNotes> =>
  new Map([...commandsWith(features).map(({ name, help }) => [name, help] as const), ['completion', COMPLETION_HELP]]);

/** Parsing runs the command and sets the exit code; usage errors and --help throw commander's CommanderError. */
export function createProgram(features: readonly FeatureDeclaration[]): Command {
  const program = new Command('orchestrator')
    .description('Plans, boots and watches a polite crawl fleet, and has the rows in the database before the deadline.')
    .version(VERSION)
    .showHelpAfterError('(orchestrator --help lists the commands)')
    .configureOutput({
      writeOut: (text) => writeData(process.stdout, asTyped(text)),
      writeErr: (text) => writeData(process.stderr, asTyped(text)),
    })
    // Commands created after this call inherit it.
    .exitOverride();
  const commands = commandsWith(features);
  for (const [heading, names] of Object.entries(HEADINGS)) {
    program.commandsGroup(heading);
    for (const command of names.flatMap((name) => commands.find((one) => one.name === name) ?? []))
      addCommand(program, command, features);
  }
  addCompletion(program.commandsGroup('Help:'));
  addHelpNotes(program, helpNotes(features));
  return program.helpCommand(true);
}

/** Adds examples and a page to every command, and makes a usage error name the help of the command that was called. */
function addHelpNotes(program: Command, notes: ReadonlyMap<string, HelpNotes>): void {
  for (const command of program.commands) {
    command.showHelpAfterError(`(orchestrator ${command.name()} --help lists its flags)`);
    const [page, ...examples] = notes.get(command.name()) ?? [];
    if (page === undefined) continue;
    const lines = examples.map((example) => `  orchestrator ${example}`).join('\n');
    command.addHelpText('after', `\nExamples:\n${lines}\n\nMore in ${page}`);
  }
}
