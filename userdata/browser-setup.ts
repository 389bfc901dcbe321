/**
 * The setup of a machine that renders pages: Chromium, a separate user for it, and a firewall that lets this user reach
 * only the crawl API's filtering proxy. docs/decisions/0015-browser-image.md has the reasons.
 */
import type { UserData } from '../shared/wire/settings.ts';
import type { SiteSettings } from '../shared/wire/site-settings.ts';

/** Chromium and its child processes run as this user, the crawl API as `crawlfleet`. */
const BROWSER_USER = 'crawlfleet-browser';
/** Its home; the only folder on the disk that it may write to. */
const BROWSER_HOME = '/var/lib/crawlfleet-browser';
/** The program that the crawl API starts instead of Chromium. */
const BROWSER_WRAPPER = '/opt/crawlfleet/chromium';
const FIREWALL_RULES = '/opt/crawlfleet/browser.nft';

/**
 * Debian's package names. The headless shell renders the same as Chromium with half the CPU time, and its download is a
 * fifth smaller. Fonts for Latin, Chinese, Japanese, Korean and emoji, so that pages have their usual layout.
 */
const BROWSER_PACKAGES = [
  'chromium-headless-shell',
  'fonts-liberation',
  'fonts-noto-cjk',
  'fonts-noto-color-emoji',
  'nftables',
] as const;

/** Seconds per apt call, and attempts: mirrors are slow and fail now and then. */
const APT_TIMEOUT_S = 240;
const INSTALL_ATTEMPTS = 3;
/** Seconds for all attempts: an error must be on the console within the ten minutes that the hello may take. */
const BOOT_INSTALL_S = 360;

/** The proxy's ports: it listens on a port assigned by Linux (net.ipv4.ip_local_port_range). */
const PROXY_PORTS = '32768-60999';
const METADATA_URL = 'http://169.254.169.254/latest/meta-data/';

/** Sets `browser` to a Chromium that starts, or to ''. Ubuntu's package only prints that it needs a snap. */
export const FIND_BROWSER = `find_browser() {
  browser=''
  local path
  for path in /usr/lib/chromium/chromium-headless-shell /usr/bin/chromium /usr/bin/chromium-browser \\
    /usr/bin/google-chrome-stable /opt/google/chrome/chrome /usr/local/bin/chromium; do
    if [ -x "$path" ] && timeout 30 "$path" --version 2> /dev/null < /dev/null | grep -q '[0-9]\\.[0-9]'; then
      browser=$path
      return 0
    fi
  done
}`;

/** Installs Debian's packages, with retries, within a total time in seconds; false when that failed. */
export const installBrowser = (seconds: number): string => `install_browser() {
  export DEBIAN_FRONTEND=noninteractive
  local end=$((SECONDS + ${seconds})) attempt
  for attempt in $(seq ${INSTALL_ATTEMPTS}); do
    if apt_until "$end" update && apt_until "$end" install -y --no-install-recommends ${BROWSER_PACKAGES.join(' ')}; then
      return 0
    fi
    timeout 60 dpkg --configure -a || true
    if [ "$((SECONDS + attempt * 5))" -ge "$end" ]; then return 1; fi
    sleep "$((attempt * 5))"
  done
  return 1
}
apt_until() {
  local left=$(($1 - SECONDS))
  if [ "$left" -gt ${APT_TIMEOUT_S} ]; then left=${APT_TIMEOUT_S}; fi
  # A timeout of 0 would mean no limit.
  if [ "$left" -le 0 ]; then return 1; fi
  shift
  timeout "$left" apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"
}`;

/**
 * Lines for bash under `set -Eeuo pipefail`, run as root before the service starts. They use `say` and `give_up` of the
 * surrounding script. Empty for a crawl without a browser.
 */
export function browserSetup({ site, apiPort, localPort }: BrowserSettings): string {
  if (site.render === 'http') return '';
  return `
${FIND_BROWSER}
${installBrowser(BOOT_INSTALL_S)}
find_browser
if [ -z "$browser" ] || ! command -v nft > /dev/null; then
  if ! grep -q '^ID=debian$' /etc/os-release; then
    give_up 'this image lacks Chromium or nft, and only Debian has both as packages: leave aws.image empty, or make an image with orchestrator image'
  fi
  say 'installing Chromium; an image made with orchestrator image would have it'
  install_browser || give_up 'Chromium could not be installed'
  find_browser
  if [ -z "$browser" ]; then give_up 'the Chromium that was installed does not start'; fi
fi

id ${BROWSER_USER} > /dev/null 2>&1 ||
  useradd --system --user-group --no-create-home --home-dir ${BROWSER_HOME} --shell /usr/sbin/nologin ${BROWSER_USER}
install -d -m 0755 /opt/crawlfleet
install -d -m 0700 -o ${BROWSER_USER} -g ${BROWSER_USER} ${BROWSER_HOME}

# One browser runs at a time: each start removes leftovers of the previous one. It uses its own profile folder in place of
# the one that the crawl API names, which another user cannot write to.
cat > ${BROWSER_WRAPPER} <<WRAPPER
#!/bin/sh
exec env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME=${BROWSER_HOME} \\\\
  setpriv --reuid=${BROWSER_USER} --regid=${BROWSER_USER} --clear-groups --inh-caps=-all --ambient-caps=-all \\\\
  --no-new-privs -- /bin/sh -c '
    umask 077
    rm -rf "\\$HOME"/* "\\$HOME"/.[!.]*
    find /tmp -mindepth 1 -maxdepth 1 -user ${BROWSER_USER} -exec rm -rf {} + 2> /dev/null
    cd "\\$HOME" || exit 1
    exec $browser "\\$@" "--user-data-dir=\\$HOME/profile"' sh "\\$@"
WRAPPER
chmod 0755 ${BROWSER_WRAPPER}

# The browser can reach only the filtering proxy on loopback: neither the metadata service nor the crawl API's own ports,
# even if a page has compromised it.
cat > ${FIREWALL_RULES} <<'RULES'
table inet crawlfleet {
}
delete table inet crawlfleet
table inet crawlfleet {
  chain output {
    type filter hook output priority filter; policy accept;
    meta skuid "${BROWSER_USER}" jump browser
  }
  chain browser {
    tcp dport { ${apiPort}, ${localPort} } reject
    oifname "lo" ip daddr 127.0.0.1 tcp dport ${PROXY_PORTS} accept
    reject
  }
}
RULES
cat > /etc/systemd/system/crawlfleet-firewall.service <<UNIT
[Unit]
Description=Keeps the browser of crawlfleet from everything but its proxy
After=nftables.service
Before=crawlfleet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$(command -v nft) -f ${FIREWALL_RULES}
[Install]
RequiredBy=crawlfleet.service
UNIT
systemctl daemon-reload
systemctl enable --now crawlfleet-firewall.service
as_browser='setpriv --reuid=${BROWSER_USER} --regid=${BROWSER_USER} --clear-groups --'
# 7 = refused. Any other result means that the rule does not work.
reached=0
$as_browser curl --silent --output /dev/null --max-time 5 --noproxy '*' ${METADATA_URL} || reached=$?
if [ "$reached" != 7 ]; then give_up "the browser can reach the metadata service (curl: $reached)"; fi
`;
}

/** The settings used here. */
export interface BrowserSettings extends Pick<UserData, 'apiPort' | 'localPort'> {
  site: Pick<SiteSettings, 'render'>;
}

/**
 * Lines for the [Service] section of the crawl API's unit. It starts and ends Chromium as another user, which needs
 * three capabilities. They would also let it become root without any other capability. Such a root could only use
 * sockets in /run, which is therefore empty except for name resolution, and device files, which do not exist there.
 */
export function browserUnitLines({ site }: BrowserSettings): string[] {
  if (site.render === 'http') return [];
  return [
    `Environment=CRAWLFLEET_CHROMIUM=${BROWSER_WRAPPER}`,
    'AmbientCapabilities=CAP_SETUID CAP_SETGID CAP_KILL',
    'CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_KILL',
    // When a page exhausts a renderer's memory the kernel may kill it: then the page fails, not the service.
    'OOMPolicy=continue',
    `ReadWritePaths=${BROWSER_HOME}`,
    'PrivateDevices=yes',
    'TemporaryFileSystem=/run:ro',
    'BindReadOnlyPaths=-/run/systemd/resolve -/run/resolvconf -/run/NetworkManager',
  ];
}
