/**
 * The script that turns a Debian 13 machine into the image for crawls with a browser: as user data of a builder
 * (`orchestrator image`) or as a provisioner of Packer. Its last console line shows whether the machine is ready for
 * imaging.
 */
import { FIND_BROWSER, installBrowser } from './browser-setup.ts';

/** Console line, followed by Chromium's version: the machine is ready for imaging. */
const READY_MARK = 'crawlfleet-image: ready ';
const FAILED_MARK = 'crawlfleet-image: failed: ';

/** Seconds for the packages: a builder may wait longer for the mirrors than an instance of a run. */
const INSTALL_S = 720;
/** A builder powers itself off after this time, whatever happens. */
const POWER_OFF_MINUTES = 30;

/** The version in the console's ready line; null when there is no such line, or the recipe failed. */
export function readyVersion(console: string): string | null {
  const at = console.lastIndexOf(READY_MARK);
  if (at < 0 || console.includes(FAILED_MARK)) return null;
  return /^[\d.]+/.exec(console.slice(at + READY_MARK.length))?.[0] ?? null;
}

/** The recipe's reason for giving up; null when it printed none. */
export function recipeFailure(console: string): string | null {
  const at = console.lastIndexOf(FAILED_MARK);
  return at < 0 ? null : console.slice(at + FAILED_MARK.length).split(/\r?\n/, 1)[0]!;
}

/**
 * The whole script, for root on Debian 13.
 * @param powerOff the machine is a separate builder that powers itself off; false where Packer does that
 */
export function imageRecipe({ powerOff }: { powerOff: boolean }): string {
  return `#!/bin/bash
# Turns a Debian 13 machine into the image for crawlfleet's crawls with a browser.
set -Eeuo pipefail

say() { echo "$*" | tee /dev/console || true; }
give_up() {
  trap - ERR
  say "${FAILED_MARK}$*"
  ${powerOff ? 'sync\n  systemctl poweroff --no-block' : ':'}
  exit 1
}
trap 'give_up "line $LINENO"' ERR
${powerOff ? `${POWER_OFF}\n` : ''}
grep -q '^ID=debian$' /etc/os-release || give_up 'this is not Debian'
${FIND_BROWSER}
${installBrowser(INSTALL_S)}
install_browser || give_up 'the packages could not be installed'
DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq -o DPkg::Lock::Timeout=120 upgrade -y || give_up 'the updates could not be installed'
find_browser
if [ -z "$browser" ]; then give_up 'Chromium does not start'; fi
# As in a crawl: as an unprivileged user, with its sandbox.
home=$(mktemp -d)
chown nobody "$home"
shown=$(timeout 60 setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH=/usr/bin:/bin HOME="$home" \\
  "$browser" --headless --disable-gpu --dump-dom 'data:text/html,<p>it works</p>' 2> /dev/null || true)
case $shown in *'it works'*) ;; *) give_up 'Chromium shows no page' ;; esac
version=$("$browser" --version | grep -o '[0-9][0-9.]*' | head -n 1)

# Machines of a crawl live for hours: background updates would only use CPU time and hold apt's lock.
systemctl disable apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service 2> /dev/null || true

# Machines made from the image get their own identity, keys and logs.
rm -rf "$home" /root/.ssh /home/*/.ssh /root/.bash_history /home/*/.bash_history /etc/ssh/ssh_host_*
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/journal/* /var/lib/systemd/random-seed /tmp/* /var/tmp/*
find /var/log -type f -exec truncate --size=0 {} +
if command -v cloud-init > /dev/null; then cloud-init clean --logs > /dev/null; fi
truncate --size=0 /etc/machine-id
rm -f /var/lib/dbus/machine-id
say "${READY_MARK}$version"
${powerOff ? 'sync\nsystemctl poweroff --no-block' : 'sync'}
`;
}

// Transient, so that it is not in the image.
const POWER_OFF = `
# Before anything else: whatever happens later, this machine powers off. It stops, because its disk becomes the image.
systemd-run --quiet --on-active=${POWER_OFF_MINUTES}min --timer-property=AccuracySec=1s systemctl poweroff --no-block
`;

/** The same recipe for Packer (HCL), with the required plugin. */
export function packerFile(
  region: string,
  architecture: 'x86_64' | 'arm64',
  { owner, tags: own }: { owner: string; tags: Readonly<Record<string, string>> },
): string {
  // Used by the policy for removing images and by "image --prune".
  const tags = hclMap({ 'crawlfleet:image': 'browser', 'crawlfleet:owner': owner, ...own });
  // Without the owner, whose instances gc ends.
  const builder =
    Object.keys(own).length === 0 ? '' : `\n  run_tags        = ${hclMap(own)}\n  run_volume_tags = ${hclMap(own)}`;
  const [debian, type] = architecture === 'arm64' ? ['arm64', 't4g.small'] : ['amd64', 't3.small'];
  return `# packer init . && packer build .   (with the recipe beside this file, as recipe.sh)
packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.3.0"
    }
  }
}

source "amazon-ebs" "crawlfleet" {
  region        = "${region}"
  instance_type = "${type}"
  ssh_username  = "admin"
  ami_name      = "crawlfleet-browser-${debian}-{{timestamp}}"
  source_ami_filter {
    owners      = ["136693071363"]
    most_recent = true
    filters     = { name = "debian-13-${debian}-*", architecture = "${architecture}" }
  }
  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
  }
  tags          = ${tags}
  snapshot_tags = ${tags}${builder}
}

build {
  sources = ["source.amazon-ebs.crawlfleet"]
  provisioner "shell" {
    script          = "recipe.sh"
    execute_command = "sudo bash {{ .Path }}"
  }
}
`;
}

const hclMap = (values: Readonly<Record<string, string>>): string =>
  `{ ${Object.entries(values)
    .map(([key, value]) => `${JSON.stringify(key)} = ${JSON.stringify(value)}`)
    .join(', ')} }`;
