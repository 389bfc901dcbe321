/**
 * What a machine that renders pages has beside the crawl API: Chromium, a user of its own for it, and a firewall that
 * leaves this user nothing but the crawl API's filtering proxy. Why so is in docs/decisions/browser-image.md.
 */
import type { InstanceSettings } from '../shared/wire/settings.ts';

/** Chromium and all it starts run as this user, the crawl API as `crawlfleet`. */
export const BROWSER_USER = 'crawlfleet-browser';
/** Its home; the only place on the disk that it may write to. */
export const BROWSER_HOME = '/var/lib/crawlfleet-browser';
/** What the crawl API starts instead of Chromium. */
export const BROWSER_WRAPPER = '/opt/crawlfleet/chromium';
const FIREWALL_RULES = '/opt/crawlfleet/browser.nft';

/**
 * By Debian's names. The headless shell renders the same as Chromium with half the processor time and is a fifth smaller to
 * fetch; fonts for Latin, Chinese, Japanese, Korean and emoji, so that pages are laid out as for their readers.
 */
export const BROWSER_PACKAGES = [
  'chromium-headless-shell',
  'fonts-liberation',
  'fonts-noto-cjk',
  'fonts-noto-color-emoji',
  'nftables',
] as const;

/** Seconds for one call of apt, and attempts: mirrors answer slowly and fail now and then. */
const APT_TIMEOUT_S = 240;
const INSTALL_ATTEMPTS = 3;
/**
 * Seconds for all attempts. The main server waits ten minutes for the hello of such a machine, its boot and its bundle included:
 * what went wrong must be on the console before.
 */
const BOOT_INSTALL_S = 360;

/** Where the proxy listens: it takes the port that Linux gives it (net.ipv4.ip_local_port_range). */
const PROXY_PORTS = '32768-60999';
const METADATA_URL = 'http://169.254.169.254/latest/meta-data/';

/** Sets `browser` to the path of a Chromium that starts, or to nothing. Ubuntu's only says that a snap is wanted. */
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

/** Installs Debian's packages, with further attempts, in so many seconds for all of them; false when that failed. */
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
  # A limit of 0 seconds would be none.
  if [ "$left" -le 0 ]; then return 1; fi
  shift
  timeout "$left" apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"
}`;

/**
 * Lines for bash under `set -Eeuo pipefail`, run as root before the service starts. They use `say` and `give_up` of the
 * script they stand in. Nothing for a crawl without a browser.
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

# One browser runs at a time: each start clears away what the one before has left. Its own profile folder replaces the one
# the crawl API names, which another user cannot write to.
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

# The browser reaches the filtering proxy on loopback and nothing else: neither the metadata service nor the crawl API's own
# ports, whatever a page has made of it.
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
# 7 = refused. Any other answer means that the rule does not hold.
reached=0
$as_browser curl --silent --output /dev/null --max-time 5 --noproxy '*' ${METADATA_URL} || reached=$?
if [ "$reached" != 7 ]; then give_up "the browser is not kept from the metadata service (curl: $reached)"; fi
`;
}

/** What of the settings matters here. */
export interface BrowserSettings extends Pick<InstanceSettings, 'apiPort' | 'localPort'> {
  site: Pick<InstanceSettings['site'], 'render'>;
}

/**
 * Lines for the [Service] section of the crawl API's unit. It starts Chromium as another user and ends it, which takes three
 * capabilities. They would also let it become root, a root without any other capability: what such a root could still do
 * goes through sockets in /run, which is therefore empty but for name resolution, and through device files, which are not there.
 */
export function browserUnitLines({ site }: BrowserSettings): string[] {
  if (site.render === 'http') return [];
  return [
    `Environment=CRAWLFLEET_CHROMIUM=${BROWSER_WRAPPER}`,
    'AmbientCapabilities=CAP_SETUID CAP_SETGID CAP_KILL',
    'CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_KILL',
    // The kernel may kill a renderer that a page has filled: a page fails then, not the service.
    'OOMPolicy=continue',
    `ReadWritePaths=${BROWSER_HOME}`,
    'PrivateDevices=yes',
    'TemporaryFileSystem=/run:ro',
    'BindReadOnlyPaths=-/run/systemd/resolve -/run/resolvconf -/run/NetworkManager',
  ];
}
