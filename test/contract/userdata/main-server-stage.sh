#!/bin/bash
# The machine of main-server.test.ts, in namespaces of its own (unshare -mpnf --mount-proc): runs the user data in a copy
# of the Debian root, in which small scripts play what needs Amazon Linux or a network. What it writes is gone with it,
# except for the folder `bucket` in WORK, which is S3.
# usage: main-server-stage.sh WORK ROOT REPOSITORY NODE SCRIPT AFTER
set -Eeuo pipefail
work=$1 lower=$2 repository=$3 node=$4 script=$5 after=$6

mkdir -p "$work/machine"
mount -t tmpfs tmpfs "$work/machine"
root=$work/machine/root
mkdir "$work"/machine/{upper,work,root}
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$work/machine/upper,workdir=$work/machine/work" "$root" ||
  cp -a "$lower/." "$root"
mount -t proc proc "$root/proc"
rm -f "$root/dev/null" "$root/dev/console"
touch "$root/dev/null" "$root/dev/console"
mount --bind /dev/null "$root/dev/null"
mkdir -p "$root/opt/checkout" "$root/bucket" "$root/etc/systemd/system"
mount --bind "$repository" "$root/opt/checkout"
mount --bind "$work/bucket" "$root/bucket"
cp "$work/secret" "$root/secret"
install -m 755 "$node" "$root/usr/local/bin/node"

play() { install -m 755 /dev/stdin "$root/usr/local/bin/$1"; }
play dnf <<'SH'
#!/bin/sh
echo "dnf $*" >> /calls
SH
play systemctl <<'SH'
#!/bin/sh
echo "systemctl $*" >> /calls
SH
# The package is this checkout.
play npm <<'SH'
#!/bin/bash
set -eu
[ -f "${!#}" ]
mkdir -p node_modules/.bin
ln -s /opt/checkout/bin/orchestrator.js node_modules/.bin/crawlfleet
SH
play curl <<'SH'
#!/bin/sh
case "$*" in *token) echo token ;; *"token: token"*local-ipv4) echo 10.0.0.5 ;; *) exit 22 ;; esac
SH
play aws <<'SH'
#!/bin/bash
set -eu
words=()
for word in "$@"; do case $word in --only-show-errors) ;; *) words+=("${word/s3:\/\/example-crawl//bucket}") ;; esac; done
set -- "${words[@]}"
case "$1 $2 $3" in
  's3 cp --recursive') mkdir -p "$5" && cp -r "$4." "$5" ;;
  's3 cp --region') cp "$5" "$6" ;;
  's3 cp '*) [ "$4" = - ] && cat "$3" ;;
  's3 ls '*) for file in "$3"*; do echo "2026-01-01 00:00:00 1 $(basename "$file")"; done ;;
  'secretsmanager get-secret-value --region') cat /secret ;;
  *) echo "aws $*" >&2; exit 252 ;;
esac
SH
cp "$script" "$root/user-data"
cp "$after" "$root/after"
env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin chroot "$root" /bin/bash /user-data >&2
env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin chroot "$root" /bin/bash /after
