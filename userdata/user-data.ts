/**
 * The script a machine runs at its first boot (Amazon Linux 2023, Ubuntu). In this order: arm the power-off timer, so that
 * nothing that goes wrong later can leave the machine running; check what is needed; fetch the bundle and compare its hash; start it as a
 * service under a user of its own. A boot that fails powers the machine off.
 */
import { AppError } from '../shared/domain/errors.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import { encodeSettingsLine } from '../shared/wire/settings.ts';

/** EC2 takes this much, before base64. */
export const MAX_USER_DATA_BYTES = 16_384;

/** zstd, which undici asks for, came with it. */
const NODE_NEEDED = '22.15';

/** The script for these settings. Throws `config-invalid` when it is larger than EC2 takes. */
export function renderUserData(settings: InstanceSettings): string {
  const script = [
    '#!/bin/bash',
    '# crawlfleet instance; made by the main server',
    encodeSettingsLine(settings),
    render(settings),
  ].join('\n');
  const bytes = Buffer.byteLength(script);
  if (bytes > MAX_USER_DATA_BYTES)
    throw new AppError('config-invalid', `the user data is ${bytes} bytes long; EC2 takes ${MAX_USER_DATA_BYTES}`, {
      hint: 'Shorten the mapping (fewer or shorter selectors), site.product_url or site.user_agent: they travel in the user data.',
    });
  return script;
}

function render({ run, slot, epoch, bundle, powerOffAt }: InstanceSettings): string {
  const powerOffSeconds = Math.ceil(Date.parse(powerOffAt) / 1_000);
  return `set -Eeuo pipefail

say() { echo "crawlfleet: $*" | tee /dev/console || true; }
give_up() {
  say "boot failed: $*; powering off"
  sync
  systemctl poweroff --no-block
  exit 1
}
trap 'give_up "line $LINENO"' ERR

# Dead-man switch first, with the absolute time: it holds whatever becomes of the rest. The shutdown behaviour of the
# instance is terminate, so powering off ends it. The unit is a file, because transient timers vanish at a stop and start.
power_off_at=${powerOffSeconds}
cat > /etc/systemd/system/crawlfleet-power-off.service <<'UNIT'
[Unit]
Description=Powers the crawlfleet machine off
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
AccuracySec=1s
[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload
systemctl enable --now crawlfleet-power-off.timer

say ${quote(`run ${run}, slot ${slot}, epoch ${epoch}`)}
if [ "$(date +%s)" -ge "$power_off_at" ]; then give_up 'the run is over'; fi

node_bin=$(command -v node || true)
if [ -z "$node_bin" ]; then give_up 'this image has no Node; it needs Node ${NODE_NEEDED} or newer as "node"'; fi
node_version=$("$node_bin" --version)
oldest=$(printf '%s\\n' 'v${NODE_NEEDED}.0' "$node_version" | sort -V | head -n 1)
if [ "$oldest" != 'v${NODE_NEEDED}.0' ]; then give_up "this image has Node $node_version; it needs ${NODE_NEEDED} or newer"; fi

install -d -m 0755 /opt/crawlfleet
curl --fail --silent --show-error --location --proto '=http,https' --retry 8 --retry-all-errors --retry-max-time 300 \\
  --connect-timeout 10 --output /opt/crawlfleet/bundle.mjs ${quote(bundle.url)}
echo ${quote(`${bundle.sha256}  /opt/crawlfleet/bundle.mjs`)} | sha256sum --check --status || give_up 'the bundle has the wrong hash'
chmod 0644 /opt/crawlfleet/bundle.mjs

id crawlfleet > /dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin crawlfleet
# Exit code 0 of the program means that the machine is not needed any more; anything else, that it is to be started again.
cat > /etc/systemd/system/crawlfleet.service <<UNIT
[Unit]
Description=crawlfleet crawl API
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
SuccessAction=poweroff
[Service]
ExecStart=$node_bin /opt/crawlfleet/bundle.mjs
User=crawlfleet
StateDirectory=crawlfleet
StateDirectoryMode=0700
Environment=NODE_ENV=production
Restart=on-failure
RestartSec=1
MemoryMax=75%
MemorySwapMax=0
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now crawlfleet.service
say 'started'
`;
}

/** One word for bash, whatever is in the text. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
