/**
 * What `orchestrator schedule` prints for systemd and for cron: the daemon as a unit, or a run and a resume as lines.
 */
import { createHash } from 'node:crypto';
import { dirname, isAbsolute, join } from 'node:path';
import { isProgram } from '../../../shared/adapters/is-program.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { shellWord } from '../../../shared/domain/shell-word.ts';

export interface Program {
  node: string;
  launcher: string;
  configFile: string;
  workingDirectory: string;
  dryRun: boolean;
  /** PATH of the user who asks: a service and cron have a short one of their own. */
  userPath: string | undefined;
}

/** Longer than the daemon gives a run to leave. */
const STOP_S = 150;

/** The daemon is started at boot, again after a crash, with few rights; it may write to `folders` alone. */
export function systemdUnit(program: Program, name: string, user: string, folders: readonly string[]): string {
  const { node, launcher, configFile, workingDirectory, dryRun } = program;
  const command = [node, launcher, 'schedule', '--config', configFile, ...(dryRun ? ['--dry-run'] : [])];
  const { path, noNpm } = findNpm(program);
  return `# ${unitName(name)}
# Install it:   sudo cp ${unitName(name)} /etc/systemd/system/ && sudo systemctl daemon-reload
#               sudo systemctl enable --now ${unitName(name)}
# Look at it:   systemctl status ${unitName(name)}; journalctl -u ${unitName(name)} -f
[Unit]
Description=crawlfleet schedule ${escapePercent(name)}
Wants=network-online.target time-sync.target
After=network-online.target time-sync.target mysql.service mariadb.service
# A database that comes up late, or a configuration with a fault, is retried until it works.
StartLimitIntervalSec=0

[Service]
Type=exec
User=${user}
WorkingDirectory=${escapePercent(workingDirectory)}
# AWS keys, FLEET_ settings and the secrets of webhooks, where they are not in the configuration; mode 600.
EnvironmentFile=-/etc/crawlfleet/${fileNameOf(name, /[^A-Za-z0-9._-]/g)}.env
ExecStart=${command.map((text) => quote(text).replaceAll('$', '$$$$')).join(' ')}
Restart=always
RestartSec=15
# SIGTERM goes to the daemon alone, which asks the run to leave and waits for it. When the daemon dies by itself, a run at work
# goes on, and the next daemon watches it again.
KillMode=process
TimeoutStopSec=${STOP_S}
OOMPolicy=continue
# For npm, which some runs fetch the Node of their instances with: it keeps its files where this service may write.
${noNpm}Environment=${quote(`PATH=${path}`)}
Environment=${quote(`npm_config_cache=${workingDirectory}/.crawlfleet/npm`)}
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths=${folders.map(quote).join(' ')}
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
`;
}

export const unitName = (name: string): string => `crawlfleet-${fileNameOf(name, /[^A-Za-z0-9_-]/g)}.service`;

/**
 * Two runs cannot meet: the run lock refuses the second. Throws `not-available` for an expression that cron does not
 * know.
 */
export function crontabLines(program: Program, expression: string, timezone: string): string {
  const { node, launcher, configFile, workingDirectory, dryRun } = program;
  const cron = expression.trim();
  const isNickname = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i.test(cron);
  if (!isNickname && (cron.split(/\s+/).length !== 5 || /[LW#?+]/i.test(cron.replaceAll(/[A-Za-z]{3}/g, ''))))
    throw new AppError('not-available', `cron does not understand schedule.cron ${cron}`, {
      hint: 'Use five fields without L, W, # and ?, or the daemon: orchestrator schedule --print-systemd',
    });
  const shell = (...words: string[]): string => words.map(shellWord).join(' ').replaceAll('%', '\\%');
  const line = (when: string, before: string, ...args: string[]): string => {
    const command = shell(node, launcher, ...args, '--config', configFile);
    const log = shell(`${workingDirectory}/.crawlfleet/cron.log`);
    return `${when} cd ${shell(workingDirectory)} && mkdir -p .crawlfleet && ${before}${command} >>${log} 2>&1`;
  };
  const { path, noNpm } = findNpm(program);
  return `# crawlfleet: add these lines with crontab -e.
# CRON_TZ is known to cronie (Amazon Linux, RHEL, Fedora, Arch). The cron of Debian and Ubuntu ignores it and reads the
# times in the zone of the machine (timedatectl): there use the daemon, or set that zone to ${timezone}.
# PATH is for npm, which some runs fetch the Node of their instances with: cron's own has /usr/bin and /bin alone.
# Both stand for all lines after them: put lines of your own before them.
${noNpm}# The targets of notify are notified when a run ends or is refused, not when cron fails to start one: see the log for exit codes other than 0.
CRON_TZ=${timezone}
PATH=${path}
${line(cron, '', 'run', '--yes', '--json', ...(dryRun ? ['--dry-run'] : []))}
# After a reboot: takes up the run that it has interrupted; ends with exit code 2 when there is none.
${line('@reboot', 'sleep 30 && ', 'resume', '--json')}
`;
}

/** A value for PATH with the folders of npm and Node before the usual ones, and what to say where there is no npm. */
function findNpm({ node, userPath = '' }: Program): { path: string; noNpm: string } {
  const folder = userPath.split(':').find((f) => isAbsolute(f) && isProgram(join(f, 'npm')));
  const usual = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const path = [...new Set([...(folder === undefined ? [] : [folder]), dirname(node), ...usual])].join(':');
  const noNpm = `# No npm is on your PATH. A run on AWS fetches the Node of its instances with npm, once for each version: print this again when you
# have it, or put the file into .crawlfleet/cache by hand ("orchestrator bundle" says which).
`;
  return { path, noNpm: folder === undefined ? noNpm : '' };
}

/** Names of which something had to be replaced get a hash, so that two of them are two files. */
function fileNameOf(name: string, forbidden: RegExp): string {
  const safe = name.replaceAll(forbidden, '-');
  return safe === name ? name : `${safe}-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

const PLAIN = /^[\w./:@%+=,-]+$/;

/** systemd reads % as a specifier everywhere; between quotes a backslash and a quote are escaped. */
const quote = (text: string): string =>
  PLAIN.test(text) ? escapePercent(text) : `"${escapePercent(text).replaceAll(/[\\"]/g, '\\$&')}"`;
const escapePercent = (text: string): string => text.replaceAll('%', '%%');
