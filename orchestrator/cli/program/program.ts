/** The command line as a whole: its commands in the order of its help. */
import { Command } from 'commander';
import { VERSION } from '../version.ts';
import { addAccountCommands } from './account-commands.ts';
import { addHelpNotes } from './help-notes.ts';
import { addReadingCommands } from './reading-commands.ts';
import { addRunCommands } from './run-commands.ts';
import { addTrialCommands } from './trial-commands.ts';

/** Parsing runs the command and sets the exit code; what commander refuses, and --help, it throws as CommanderError. */
export function createProgram(): Command {
  const program = new Command('orchestrator')
    .description('Plans, boots and watches a polite crawl fleet, and has the rows in the database before the deadline.')
    .version(VERSION)
    .showHelpAfterError('(orchestrator --help lists the commands)')
    // Commands made after it do the same.
    .exitOverride();
  addAccountCommands(program.commandsGroup('Getting ready, and clearing up:'));
  addTrialCommands(program.commandsGroup('Trying things out:'));
  addRunCommands(program.commandsGroup('Runs:'));
  addReadingCommands(program.commandsGroup('Looking at runs:'));
  addHelpNotes(program);
  return program.commandsGroup('Help:').helpCommand(true);
}
