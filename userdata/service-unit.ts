/** The crawl API as a systemd service with minimal privileges. */
import { INSTANCE_ENVIRONMENT } from '../shared/domain/instance-process.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import { USER } from './bash.ts';
import { browserUnitLines } from './browser-setup.ts';
import { EXEC_START } from './fetch-bundle.ts';

const ENVIRONMENT = Object.entries(INSTANCE_ENVIRONMENT)
  .map(([name, value]) => `${name}=${value}`)
  .join(' ');

/**
 * Lines for bash, run as root: write the unit and start it. Exit code 0 of the program means that the machine is no
 * longer needed; on any other code the program is restarted, without limit.
 */
export function serviceUnit(settings: InstanceSettings): string {
  return `id ${USER} > /dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin ${USER}
cat > /etc/systemd/system/crawlfleet.service <<UNIT
[Unit]
Description=crawlfleet crawl API
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
SuccessAction=poweroff
[Service]
ExecStart=${EXEC_START}
User=${USER}
StateDirectory=crawlfleet
StateDirectoryMode=0700
Environment=${ENVIRONMENT}
Restart=on-failure
RestartSec=1
MemoryMax=75%
MemorySwapMax=0
StandardOutput=journal+console
StandardError=journal+console
${[...hardening(settings), ...browserUnitLines(settings)].join('\n')}
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now crawlfleet.service
`;
}

/** Restrictions without run-time cost. Not MemoryDenyWriteExecute: Node compiles at run time. */
function hardening({ site }: InstanceSettings): string[] {
  return [
    'NoNewPrivileges=yes',
    'CapabilityBoundingSet=',
    'ProtectSystem=strict',
    'ProtectHome=yes',
    'PrivateTmp=yes',
    'PrivateDevices=yes',
    'ProtectKernelTunables=yes',
    'ProtectKernelModules=yes',
    'ProtectKernelLogs=yes',
    'ProtectControlGroups=yes',
    'ProtectClock=yes',
    'ProtectHostname=yes',
    'RestrictSUIDSGID=yes',
    'RestrictRealtime=yes',
    'LockPersonality=yes',
    'SystemCallArchitectures=native',
    'UMask=0077',
    // A browser isolates its processes with namespaces and queries netlink for the interfaces.
    ...(site.render === 'http'
      ? ['RestrictNamespaces=yes', 'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK']
      : []),
  ];
}
