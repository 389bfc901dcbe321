/**
 * The script a machine runs at its first boot (Amazon Linux 2023, Ubuntu, Debian). In this order: arm the power-off
 * timer, so that no later failure can leave the machine running; fetch the bundle, check its hash and unpack it; set up
 * a browser if pages need one; start the program as a service under its own user. A failed boot prints the reason on
 * the console and powers the machine off.
 */
import { AppError } from '../shared/domain/errors.ts';
import { encodeSettingsLine, type UserData } from '../shared/wire/settings.ts';
import type { SiteSettings } from '../shared/wire/site-settings.ts';
import { browserSetup, browserUnitLines } from './browser-setup.ts';
import { fetchBundle, EXEC_START, quote } from './fetch-bundle.ts';
import { partitionOf } from '../shared/domain/partition.ts';
import { INSTANCE_ENVIRONMENT } from '../shared/domain/instance-process.ts';

/** The system user that the crawl API runs as. */
const USER = 'crawlfleet';
/** EC2's limit, before base64. */
export const MAX_USER_DATA_BYTES = 16_384;

/** What the script is made of; of the site, the boot needs to know whether pages need a browser. */
interface BootSettings extends UserData {
  site: Pick<SiteSettings, 'render'>;
}

/** The script for these settings. Throws `config-invalid` when it exceeds EC2's limit. */
export function renderUserData(settings: UserData, site: BootSettings['site']): string {
  const script = [
    '#!/bin/bash',
    '# crawlfleet instance; made by the main server',
    encodeSettingsLine(settings),
    render({ ...settings, site }),
  ].join('\n');
  const bytes = Buffer.byteLength(script);
  if (bytes > MAX_USER_DATA_BYTES)
    throw new AppError('config-invalid', `the user data is ${bytes} bytes long; EC2 accepts ${MAX_USER_DATA_BYTES}`, {
      hint: 'Shorten server.url or the name of the bucket: the user data contains them, and nothing else of yours.',
    });
  return script;
}

function render(settings: BootSettings): string {
  const { run, slot, epoch } = settings;
  return `${SAFETY_NET}
${powerOffTimer(settings)}
say ${quote(`run ${run}, slot ${slot}, epoch ${epoch}`)}
if [ "$(date +%s)" -ge "$power_off_at" ]; then give_up 'the run is over'; fi

${fetchBundle(settings)}${browserSetup(settings)}
${serviceUnit(settings)}${settings.commands ? startAgent(settings.s3.region) : ''}
trap - ERR EXIT
say 'started'
`;
}

/** `say`, `give_up`, and traps: ERR reports the line, EXIT fires where bash ends without ERR. */
const SAFETY_NET = `set -Eeuo pipefail

say() { echo "crawlfleet: $*" | tee /dev/console || true; }
give_up() {
  trap - ERR EXIT
  say "boot failed: $*; powering off"
  sync || true
  systemctl poweroff --no-block || systemctl poweroff --force --force
  exit 1
}
trap 'give_up "line $LINENO"' ERR
trap 'give_up "the script ended early"' EXIT
`;

/**
 * Lines for bash, run as root before anything that can fail. The timer is a unit in a file, because transient timers
 * vanish at a stop and start. It has two triggers, and the first one to fire counts:
 *
 * - The wall-clock time. It is persistent: a machine that was stopped and is started after that time powers off at
 *   once.
 * - The length of the whole run since this boot, which a wrong clock cannot delay.
 */
function powerOffTimer({ startedAt, powerOffAt }: Pick<UserData, 'startedAt' | 'powerOffAt'>): string {
  const atSeconds = Math.ceil(Date.parse(powerOffAt) / 1_000);
  const longestSeconds = Math.max(60, Math.ceil((Date.parse(powerOffAt) - Date.parse(startedAt)) / 1_000));
  return `power_off_at=${atSeconds}
cat > /etc/systemd/system/crawlfleet-power-off.service <<'UNIT'
[Unit]
Description=Powers the crawlfleet machine off
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/usr/bin/systemctl poweroff --no-block
UNIT
cat > /etc/systemd/system/crawlfleet-power-off.timer <<UNIT
[Unit]
Description=Latest end of this crawlfleet machine
[Timer]
OnCalendar=$(date -u -d "@$power_off_at" '+%Y-%m-%d %H:%M:%S UTC')
Persistent=true
OnBootSec=${longestSeconds}s
AccuracySec=1s
[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable --now crawlfleet-power-off.timer
`;
}

const ENVIRONMENT = Object.entries(INSTANCE_ENVIRONMENT)
  .map(([name, value]) => `${name}=${value}`)
  .join(' ');

/**
 * Lines for bash, run as root: write the unit and start it. Exit code 0 of the program means that the machine is no
 * longer needed; on any other code the program is restarted, without limit.
 */
function serviceUnit(settings: BootSettings): string {
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

/**
 * Lines for bash, run as root after the program has been started: start the SSM agent, which Amazon Linux and Ubuntu
 * have, or install it from AWS's own bucket. The crawl does not need it, so its failure is only printed.
 */
function startAgent(region: string): string {
  const host = `s3.${region}.${partitionOf(region).dnsSuffix}`;
  return `start_agent() {
  local unit package=/opt/crawlfleet/amazon-ssm-agent.deb
  for unit in amazon-ssm-agent snap.amazon-ssm-agent.amazon-ssm-agent; do
    if systemctl cat "$unit.service" > /dev/null 2>&1; then
      systemctl enable --now "$unit.service"
      return
    fi
  done
  curl --silent --show-error --fail --proto '=https' --retry 3 --max-time 120 --output "$package" \\
    "https://${host}/amazon-ssm-${region}/latest/debian_$(dpkg --print-architecture)/amazon-ssm-agent.deb" || return 1
  dpkg --install "$package" > /dev/null || return 1
  rm -f "$package"
  systemctl enable --now amazon-ssm-agent.service
}
start_agent || say 'the SSM agent does not run: orchestrator exec cannot reach this machine'
`;
}

/** Restrictions without run-time cost. Not MemoryDenyWriteExecute: Node compiles at run time. */
function hardening({ site }: BootSettings): string[] {
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
