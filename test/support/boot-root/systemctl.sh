#!/bin/bash
# Replaces systemctl in a root without systemd: logs each call, and starts an enabled service as its unit file describes.
set -eu
echo "$*" >> /var/log/systemctl.log
[ "$1 ${2-}" = 'enable --now' ] || exit 0
unit=/etc/systemd/system/$3
if [ ! -f "$unit" ]; then
  echo "Failed to enable unit: Unit file $3 does not exist." >&2
  exit 1
fi
case $3 in *.service) ;; *) exit 0 ;; esac

value() { sed -n "/^\[Service\]/,/^\[Install\]/s/^$1=//p" "$unit" | tail -n 1; }
user=$(value User)
state=/var/lib/$(value StateDirectory)
install -d -m "$(value StateDirectoryMode)" -o "$user" -g "$user" "$state"
read -ra command <<< "$(value ExecStart)"
read -ra environment <<< "$(value Environment)"
cd /
setsid env -i PATH=/usr/local/bin:/usr/bin:/bin "STATE_DIRECTORY=$state" "${environment[@]}" \
  setpriv --reuid="$user" --regid="$user" --init-groups --no-new-privs -- "${command[@]}" \
  >> /dev/console 2>&1 < /dev/null &
