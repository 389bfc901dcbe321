#!/bin/bash
# The machine of browser-user.test.ts, in namespaces of its own (unshare --mount --net --pid): runs the user data's lines
# for the browser, then the probe as the service would run it. What it writes is gone with the namespace.
# usage: browser-stage.sh WORK REPOSITORY NODE CHROMIUM SYSTEMCTL SETUP UNIT_CAPABILITIES
set -Eeuo pipefail
work=$1 repository=$2 node=$3 chromium=$4 systemctl=$5 setup=$6 capabilities=$7

mount -t tmpfs tmpfs "$work"
for folder in etc opt var/lib usr/local; do
  upper="$work/${folder//\//-}"
  mkdir -p "$upper/upper" "$upper/work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$upper/upper,workdir=$upper/work" "/$folder"
done
# Other users may not be able to reach the folders of the checkout, Node and the browser.
mkdir -p /opt/stage/{repository,bin,chromium}
mount --bind "$repository" /opt/stage/repository
install -m 0755 "$node" /opt/stage/bin/node
if [ "${chromium#/usr/}" = "$chromium" ]; then
  mount --bind "$(dirname "$chromium")" /opt/stage/chromium
  printf '#!/bin/sh\nexec /opt/stage/chromium/%s "$@"\n' "$(basename "$chromium")" > /usr/local/bin/chromium
  chmod 0755 /usr/local/bin/chromium
fi
install -m 0755 "$systemctl" /opt/stage/bin/systemctl
mkdir -p /etc/systemd/system

ip link set lo up
ip address add 169.254.169.254/32 dev lo
ip address add fd00:ec2::254/128 dev lo nodad
/opt/stage/bin/node -e "globalThis.n = 0; require('node:http').createServer((_, r) => r.end(String(++globalThis.n))).listen(80, '::')" &
until curl --silent --fail --output /dev/null --max-time 2 http://169.254.169.254/; do sleep 0.05; done

PATH=/opt/stage/bin:$PATH bash "$setup" >&2

useradd --system --no-create-home --shell /usr/sbin/nologin crawlfleet
install -d -m 0700 -o crawlfleet /var/lib/crawlfleet
cd /
env -i PATH=/usr/bin:/bin CRAWLFLEET_CHROMIUM=/opt/crawlfleet/chromium \
  setpriv --reuid=crawlfleet --regid=crawlfleet --clear-groups \
  --bounding-set="-all,$capabilities" --inh-caps="-all,$capabilities" --ambient-caps="-all,$capabilities" --no-new-privs -- \
  /opt/stage/bin/node /opt/stage/repository/test/contract/userdata/browser-probe.ts /var/lib/crawlfleet
find /tmp -mindepth 1 -maxdepth 1 -user crawlfleet-browser -exec rm -rf {} +
