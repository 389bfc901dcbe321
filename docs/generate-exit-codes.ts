/** docs/exit-codes.md from the table of exit codes and the error codes. */
import { ERROR_KINDS } from '../shared/domain/errors.ts';
import { EXIT, EXIT_MEANINGS, type ExitMeaning } from '../shared/domain/exit-codes.ts';

export function exitCodesPage(): string {
  const facts = Object.entries(EXIT_MEANINGS) as [keyof typeof EXIT, ExitMeaning][];
  return [
    '# Exit codes',
    '',
    'Made from `shared/domain/exit-codes.ts` by `npm run docs`; do not edit it by hand. A number never changes its meaning.',
    '',
    'The table is in order of precedence: if several causes apply, the first one determines the code, and the reason in the report names the others.',
    'There are two exceptions. After `cancel` the code is 11, because nothing is published and so nothing is held. And 12 precedes 15 if more time would not',
    'have helped, because the site has changed or no instance crawled anything. Suspicious rows are held whatever the code is: 4, 14, 17, 18 and 19 keep precedence over 13.',
    '',
    '| Code | When | Try again | What you do | Error codes |',
    '|---|---|---|---|---|',
    ...facts.map(([name, { meaning, retry, todo }]) => {
      return `| ${EXIT[name]} | ${meaning} | ${retry} | ${todo || '-'} | ${errorsOf(EXIT[name]) || '-'} |`;
    }),
    '',
    'A process that was killed by a signal has the code that its shell assigns (137 after SIGKILL). Its run is not over: `orchestrator resume` continues it.',
    'Messages and what to do about them: [what-happens-when.md](what-happens-when.md), [errors.md](errors.md).',
    '',
  ].join('\n');
}

function errorsOf(exit: number): string {
  return Object.entries(ERROR_KINDS)
    .filter(([, kind]) => kind.exit === exit)
    .map(([code]) => `\`${code}\``)
    .join(' ');
}
