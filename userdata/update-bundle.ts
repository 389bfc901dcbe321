/** How a running machine changes its program: shell scripts for `orchestrator exec --update`, run as root. */
import { PROGRAM_NAME, RUNTIME_NAME } from './archive.ts';
import { HOME, quote } from './fetch-bundle.ts';

/** Where the files are; the sandbox gives its machines folders of their own. */
const PLACE = `set -eu
home="\${CRAWLFLEET_HOME:-${HOME}}"`;

/** The runtime first: it runs either program. */
const FILES = `${RUNTIME_NAME} ${PROGRAM_NAME}`;

/**
 * Ends the program like a crash, and systemd starts it again, from its journal. Not by `restart`: a unit that is
 * stopped in good order powers the machine off (SuccessAction in user-data.ts).
 */
const KILL = 'systemctl kill --signal=SIGKILL crawlfleet.service';

/**
 * Fetches the bundle, checks its hash, and puts its files in place of the old ones, each by one rename; the old ones
 * stay in `previous`. Then the program is started again. Until its hash is checked nothing is changed.
 */
export const updateScript = ({ url, sha256 }: { url: string; sha256: string }): string => `${PLACE}
next="$home/next"
rm -rf "$next" "$home/previous"
mkdir -m 0755 "$next"
curl --silent --show-error --fail --location --proto '=http,https' --connect-timeout 10 --max-time 120 --retry 3 \\
  --output "$next/bundle.tar.gz" ${quote(url)}
echo "${sha256}  $next/bundle.tar.gz" | sha256sum --check --status || { echo 'the bundle has the wrong hash' >&2; exit 1; }
tar --extract --gzip --file "$next/bundle.tar.gz" --directory "$next" --no-same-owner
rm "$next/bundle.tar.gz"
chmod 0644 "$next/${PROGRAM_NAME}"
if [ -e "$next/${RUNTIME_NAME}" ]; then "$next/${RUNTIME_NAME}" --version > /dev/null; fi
mkdir -m 0755 "$home/previous"
for name in ${FILES}; do
  if [ ! -e "$next/$name" ]; then continue; fi
  if [ -e "$home/$name" ]; then ln "$home/$name" "$home/previous/$name"; fi
  mv -f "$next/$name" "$home/$name"
done
rm -rf "$next"
sync
${KILL}`;

/**
 * Puts back what the last update replaced, if anything. A program between two starts cannot be killed, and need not.
 */
export const ROLL_BACK_SCRIPT = `${PLACE}
if [ ! -d "$home/previous" ]; then exit 0; fi
for name in ${FILES}; do
  if [ -e "$home/previous/$name" ]; then mv -f "$home/previous/$name" "$home/$name"; fi
done
sync
${KILL} || true`;
