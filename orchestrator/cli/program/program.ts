/** The command line as a whole: its commands in the order of its help. */
import { Command } from 'commander';
import { VERSION } from '../../core/version.ts';
import { writeData } from '../terminal.ts';
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import { addCommand } from './add-command.ts';
import { addCompletion } from './completion.ts';
import { READING_COMMANDS } from './reading-commands.ts';
import { RUN_COMMANDS } from './run-commands.ts';
import { asTyped } from '../typed-name.ts';
import { TRIAL_COMMANDS } from './trial-commands.ts';

const COMMANDS = {
  'Getting ready, and clearing up:': ACCOUNT_COMMANDS,
  'Trying things out:': TRIAL_COMMANDS,
  'Runs:': RUN_COMMANDS,
  'Inspecting runs:': READING_COMMANDS,
};

/** A page and examples by command. A test parses every example and opens every page. */
export const HELP_NOTES: ReadonlyMap<string, readonly string[]> = new Map([
  ...Object.values(COMMANDS).flatMap((commands) => commands.map(({ name, help }) => [name, help] as const)),
  [
    'completion',
    ['docs/README.md', 'completion bash > /etc/bash_completion.d/orchestrator', 'completion zsh', 'completion fish'],
  ],
]);

/** Parsing runs the command and sets the exit code; usage errors and --help throw commander's CommanderError. */
export function createProgram(): Command {
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
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    for (const command of commands) addCommand(program, command);
  }
  addCompletion(program.commandsGroup('Help:'));
  addHelpNotes(program);
  return program.helpCommand(true);
}

/** Adds examples and a page to every command, and makes a usage error name the help of the command that was called. */
function addHelpNotes(program: Command): void {
  for (const command of program.commands) {
    command.showHelpAfterError(`(orchestrator ${command.name()} --help lists its flags)`);
    const [page, ...examples] = HELP_NOTES.get(command.name()) ?? [];
    if (page === undefined) continue;
    const lines = examples.map((example) => `  orchestrator ${example}`).join('\n');
    command.addHelpText('after', `\nExamples:\n${lines}\n\nMore in ${page}`);
  }
}
