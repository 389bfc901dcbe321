/** Lines for those who prefer cron to the daemon. Two runs cannot meet: the lock of the database refuses the second (exit code 20). */
import { AppError } from '../../../shared/domain/errors.ts';
import type { Programs } from './programs.ts';
import { NO_NPM } from './programs.ts';

export interface CrontabOptions {
  node: string;
  launcher: string;
  configFile: string;
  workingDirectory: string;
  cron: string;
  timezone: string;
  dryRun: boolean;
  programs: Programs;
}

/** Throws `not-available` for an expression that cron itself does not understand. */
export function crontabLines(options: CrontabOptions): string {
  const { node, launcher, configFile, workingDirectory, timezone, dryRun, programs } = options;
  const cron = options.cron.trim();
  const isNickname = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i.test(cron);
  if (!isNickname && (cron.split(/\s+/).length !== 5 || /[LW#?+]/i.test(cron.replaceAll(/[A-Za-z]{3}/g, ''))))
    throw new AppError('not-available', `cron does not understand schedule.cron ${cron}`, {
      hint: 'Use five fields without L, W, # and ?, or the daemon: orchestrator schedule --print-systemd',
    });
  const command = (...args: string[]): string =>
    [node, launcher, ...args, '--config', configFile].map(shellQuote).join(' ').replaceAll('%', '\\%');
  const log = shellQuote(`${workingDirectory}/.crawlfleet/cron.log`).replaceAll('%', '\\%');
  const line = (when: string, before: string, run: string): string =>
    `${when} cd ${shellQuote(workingDirectory).replaceAll('%', '\\%')} && mkdir -p .crawlfleet && ${before}${run} >>${log} 2>&1`;
  return `# crawlfleet: add these lines with crontab -e.
# CRON_TZ is known to cronie (Amazon Linux, RHEL, Fedora, Arch). The cron of Debian and Ubuntu ignores it and reads the
# times in the zone of the machine (timedatectl): there use the daemon, or set that zone to ${timezone}.
# PATH is for npm, which some runs fetch the Node of their instances with: cron's own has /usr/bin and /bin alone.
# Both stand for all lines after them: put lines of your own before them.
${programs.npm === null ? `${NO_NPM}\n` : ''}# Nobody tells you of a run that is missed or fails: look at exit codes other than 0 in the log.
CRON_TZ=${timezone}
PATH=${programs.path}
${line(cron, '', command('run', '--yes', '--json', ...(dryRun ? ['--dry-run'] : [])))}
# After a reboot: takes up the run that it has interrupted; ends with exit code 2 when there is none.
${line('@reboot', 'sleep 30 && ', command('resume', '--json'))}
`;
}

function shellQuote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
