/** How a machine comes by its program: one archive by a presigned URL, nothing from any registry. */
import { NODE_FLAGS } from '../shared/domain/instance-process.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import { PROGRAM_NAME, RUNTIME_NAME } from './archive.ts';
import { HOME, quote } from './bash.ts';

/** undici asks for it. Only for bundles without a Node of their own. */
const NODE_NEEDED = '22.19';

const PROGRAM = `${HOME}/${PROGRAM_NAME}`;
const RUNTIME = `${HOME}/${RUNTIME_NAME}`;
const ARCHIVE = `${HOME}/bundle.tar.gz`;

/**
 * Seconds for all attempts, of which the last begins with LAST_TRY_S of them left. The main server waits four minutes for a
 * hello at least, boot included: what went wrong must be on the console before.
 */
const FETCH_S = 150;
const LAST_TRY_S = 50;

/**
 * Lines for bash, run as root: leave the program, and set `node_bin` to the Node that runs it. What S3 finds wrong with the URL
 * itself (400-404) stays wrong: its time is over, or nobody may read the object. All else is tried again.
 */
export function fetchBundle({ bundle }: Pick<InstanceSettings, 'bundle'>): string {
  return `install -d -m 0755 ${HOME}
fetch_bundle() {
  local end=$((SECONDS + ${FETCH_S})) pause=1 code
  while :; do
    code=0
    fault=$(curl --silent --show-error --location --proto '=http,https' --connect-timeout 10 --max-time "$((end - SECONDS))" \\
      --output ${ARCHIVE} --write-out '%{http_code}' ${quote(bundle.url)} 2>&1) || code=$?
    if [ "$code" = 0 ]; then
      if [ "$fault" = 200 ]; then return 0; fi
      fault="HTTP $fault $(head -c 2000 ${ARCHIVE} | tr -d '\\0' | grep -o '<Code>[^<]*' | cut -c 7-)"
      case $fault in 'HTTP 40'[0-4]*) return 1 ;; esac
    else
      fault=$(printf '%s' "$fault" | grep -v '^[0-9]*$' | tail -n 1)
      if [ "$code" = 127 ]; then return 1; fi
    fi
    if [ "$((SECONDS + pause + ${LAST_TRY_S}))" -ge "$end" ]; then return 1; fi
    sleep "$pause"
    pause=$((pause * 2))
  done
}
fetch_bundle || give_up "the bundle cannot be fetched: $fault"
echo ${quote(`${bundle.sha256}  ${ARCHIVE}`)} | sha256sum --check --status || give_up 'the bundle has the wrong hash'
# Its hash is right, so it holds what the main server put into it: at most these two files.
tar --extract --gzip --file ${ARCHIVE} --directory ${HOME} --no-same-owner || give_up 'the bundle cannot be unpacked'
rm -f ${ARCHIVE}
chmod 0644 ${PROGRAM}

node_bin=${RUNTIME}
if [ -e "$node_bin" ]; then
  fault=$("$node_bin" --version 2>&1) || give_up "the bundle's Node does not start on this machine: $fault"
else
  node_bin=$(command -v node || true)
  if [ -z "$node_bin" ]; then give_up 'neither the bundle nor this image has Node; it needs ${NODE_NEEDED} or newer as "node"'; fi
  node_version=$("$node_bin" --version)
  oldest=$(printf '%s\\n' 'v${NODE_NEEDED}.0' "$node_version" | sort -V | head -n 1)
  if [ "$oldest" != 'v${NODE_NEEDED}.0' ]; then give_up "this image has Node $node_version; it needs ${NODE_NEEDED} or newer"; fi
fi
`;
}

/** What the unit starts, in terms of `node_bin`. */
export const EXEC_START = ['$node_bin', ...NODE_FLAGS, PROGRAM].join(' ');
