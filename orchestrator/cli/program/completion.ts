/** `orchestrator completion`: what a shell offers while a command is typed. */
import { type Command, Option } from 'commander';
import { writeData } from '../terminal.ts';
import { NAMES } from '../typed-name.ts';

/** The scripts only ask: what is offered is decided here, for all shells alike. */
const SCRIPTS = {
  bash: `_orchestrator() {
  local IFS=$'\\n'
  COMPREPLY=($("\${COMP_WORDS[0]}" completion bash --words "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _orchestrator ${NAMES.join(' ')}
`,
  zsh: `#compdef ${NAMES.join(' ')}
_orchestrator() {
  local -a found
  found=("\${(@f)$("\${words[1]}" completion zsh --words "\${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)}")
  compadd -a found || _files
}
compdef _orchestrator ${NAMES.join(' ')}
`,
  fish: NAMES.map(
    (name) =>
      `complete -c ${name} -a '(${name} completion fish --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n`,
  ).join(''),
} as const;

/** The script that completes commands in a shell; undefined for a shell that has none. */
export const completionScript = (shell: string): string | undefined => SCRIPTS[shell as keyof typeof SCRIPTS];

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and flags in your shell')
    .argument('<shell>', Object.keys(SCRIPTS).join(', '))
    .addOption(new Option('--words <words...>', 'what is typed so far').hideHelp())
    .allowUnknownOption()
    .allowExcessArguments()
    .action((shell: string, _flags: object, command: Command) => {
      const at = command.args.length === 0 ? -1 : process.argv.indexOf('--words');
      if (at !== -1) {
        const found = completionsFor(program, process.argv.slice(at + 1));
        writeData(process.stdout, found.map((word) => `${word}\n`).join(''));
        return;
      }
      const script = completionScript(shell);
      if (script === undefined) command.error(`error: ${shell} is none of ${Object.keys(SCRIPTS).join(', ')}`);
      writeData(process.stdout, script);
    });
}

/** Candidates for the last word; none where the shell should offer files. */
export function completionsFor(program: Command, words: readonly string[]): string[] {
  const typed = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const command = program.commands.find((c) => c.name() === before[0]);
  const offered = command ? wordsOf(command, typed, before.at(-1) ?? '') : program.commands.map((c) => c.name());
  return offered.filter((word) => word.startsWith(typed)).toSorted();
}

function wordsOf(command: Command, typed: string, last: string): string[] {
  const visible = command.options.filter(({ hidden }) => !hidden);
  const open = visible.find((option) => [option.long, option.short].includes(last) && !option.isBoolean());
  if (open) return open.argChoices ?? [];
  return typed.startsWith('-') ? visible.map(({ long }) => long!) : [];
}
