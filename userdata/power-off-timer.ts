/**
 * The dead-man switch of a machine: whatever happens to the boot, the program or the main server, it powers itself off.
 * The instance's shutdown behaviour is terminate, so this ends the instance and its cost.
 */
import type { InstanceSettings } from '../shared/wire/settings.ts';

/**
 * Lines for bash, run as root before anything that can fail. The timer is a unit in a file, because transient timers vanish
 * at a stop and start. It has two triggers, and the first one to fire counts:
 *
 * - The wall-clock time. It is persistent: a machine that was stopped and is started after that time powers off at
 *   once.
 * - The length of the whole run since this boot, which a wrong clock cannot delay.
 */
export function powerOffTimer({ startedAt, powerOffAt }: Pick<InstanceSettings, 'startedAt' | 'powerOffAt'>): string {
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
