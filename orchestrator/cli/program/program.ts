/** The command line as a whole: its commands in the order of its help. */
import { Command } from 'commander';
import { VERSION } from '../../app/version.ts';
import { addAccountCommands } from './account-commands.ts';
import { addHelpNotes } from './help-notes.ts';
import { addReadingCommands } from './reading-commands.ts';
import { addRunCommands } from './run-commands.ts';
import { addTrialCommands } from './trial-commands.ts';

/** Parsing runs the command and sets the exit code; usage errors and --help throw commander's CommanderError. */
export function createProgram(): Command {
  const program = new Command('orchestrator')
    .description('Plans, boots and watches a polite crawl fleet, and has the rows in the database before the deadline.')
    .version(VERSION)
    .showHelpAfterError('(orchestrator --help lists the commands)')
    // Commands created after this call inherit it.
    .exitOverride();
  addAccountCommands(program.commandsGroup('Getting ready, and clearing up:'));
  addTrialCommands(program.commandsGroup('Trying things out:'));
  addRunCommands(program.commandsGroup('Runs:'));
  addReadingCommands(program.commandsGroup('Inspecting runs:'));
  addHelpNotes(program);
  return program.commandsGroup('Help:').helpCommand(true);
}
