/** docs/exit-codes.md from the table of exit codes and the error codes. */
import { ERROR_KINDS } from '../shared/domain/errors.ts';
import { EXIT, EXIT_FACTS, type ExitFacts } from '../shared/domain/exit-codes.ts';

export function exitCodesPage(): string {
  const facts = Object.entries(EXIT_FACTS) as [keyof typeof EXIT, ExitFacts][];
  return [
    '# Exit codes',
    '',
    'Made from `shared/domain/exit-codes.ts` by `npm run docs`; do not edit it by hand. A number never changes its meaning.',
    '',
    'The table is in the order of precedence: where several causes apply, the first one gives the code, and the reason in the report names the',
    'rest. Two things stand before that order: `cancel` (11) publishes nothing, so nothing is held; and 12 stands before 15 where more time would not',
    'have helped, because the site has changed or nobody crawled anything. Suspicious rows are held whatever the code: 4, 14, 18 and 19 stay then.',
    '',
    '| Code | When | Try again | What you do | Error codes |',
    '|---|---|---|---|---|',
    ...facts.map(([name, { meaning, retry, todo }]) => {
      return `| ${EXIT[name]} | ${meaning} | ${retry} | ${todo || '-'} | ${errorsOf(EXIT[name]) || '-'} |`;
    }),
    '',
    'A process that is killed by a signal has the code its shell gives it (137 after SIGKILL). The run is not over then:',
    '`orchestrator resume`. Messages and what to do about each: [what-happens-when.md](what-happens-when.md), [errors.md](errors.md).',
    '',
  ].join('\n');
}

function errorsOf(exit: number): string {
  return Object.entries(ERROR_KINDS)
    .filter(([, kind]) => kind.exit === exit)
    .map(([code]) => `\`${code}\``)
    .join(' ');
}
