/** The unit file that runs the daemon on a main server: started at boot, again after a crash, with few rights. */
import { createHash } from 'node:crypto';
import type { Programs } from './programs.ts';
import { NO_NPM } from './programs.ts';

export interface UnitOptions {
  node: string;
  launcher: string;
  configFile: string;
  /** Where the processes write: `.crawlfleet` beside the configuration, and the folder of an SQLite database. */
  folders: readonly string[];
  workingDirectory: string;
  user: string;
  name: string;
  dryRun: boolean;
  programs: Programs;
}

/**
 * For a file name: what may not stand in one is replaced. Names of which something was replaced get a hash, so that two of them
 * are two files.
 */
function fileNameOf(name: string, forbidden: RegExp): string {
  const safe = name.replaceAll(forbidden, '-');
  return safe === name ? name : `${safe}-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

/** Longer than the daemon gives a run to leave. */
const STOP_S = 150;

export function systemdUnit(options: UnitOptions): string {
  const { node, launcher, configFile, folders, workingDirectory, user, name, dryRun, programs } = options;
  const command = [node, launcher, 'schedule', '--config', configFile, ...(dryRun ? ['--dry-run'] : [])];
  return `# ${unitName(name)}
# Install it:   sudo cp ${unitName(name)} /etc/systemd/system/ && sudo systemctl daemon-reload
#               sudo systemctl enable --now ${unitName(name)}
# Look at it:   systemctl status ${unitName(name)}; journalctl -u ${unitName(name)} -f
[Unit]
Description=crawlfleet schedule ${escapePercent(name)}
Wants=network-online.target time-sync.target
After=network-online.target time-sync.target mysql.service mariadb.service
# A database that comes up late, or a configuration with a fault, is tried again for ever.
StartLimitIntervalSec=0

[Service]
Type=exec
User=${user}
WorkingDirectory=${escapePercent(workingDirectory)}
# AWS keys, FLEET_ settings and the webhook's secret, where they are not in the configuration; mode 600.
EnvironmentFile=-/etc/crawlfleet/${fileNameOf(name, /[^A-Za-z0-9._-]/g)}.env
ExecStart=${command.map(quoteArgument).join(' ')}
Restart=always
RestartSec=15
# SIGTERM goes to the daemon alone, which asks the run to leave and waits for it. When the daemon dies by itself, a run at work
# goes on, and the next daemon watches it again.
KillMode=process
TimeoutStopSec=${STOP_S}
OOMPolicy=continue
# For npm, which some runs fetch the Node of their instances with: it keeps its files where this service may write.
${programs.npm === null ? `${NO_NPM}\n` : ''}Environment=${quote(`PATH=${programs.path}`)}
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

export function unitName(name: string): string {
  return `crawlfleet-${fileNameOf(name, /[^A-Za-z0-9_-]/g)}.service`;
}

/** systemd reads % as a specifier everywhere. */
const escapePercent = (text: string): string => text.replaceAll('%', '%%');

/** Between quotes a backslash and a quote are escaped. */
function quote(text: string): string {
  const escaped = escapePercent(text).replaceAll(/[\\"]/g, '\\$&');
  return /^[\w./:@%+=,-]+$/.test(text) ? escaped : `"${escaped}"`;
}

/** Only in commands $ names a variable. */
const quoteArgument = (text: string): string => quote(text).replaceAll('$', '$$$$');
