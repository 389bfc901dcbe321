/** How a machine gets its program: one archive by a presigned URL, nothing from any registry. */
import { NODE_FLAGS } from '../shared/domain/instance-process.ts';
import type { UserData } from '../shared/wire/settings.ts';
import { PROGRAM_NAME, RUNTIME_NAME } from './archive.ts';

/** Quotes any text as one bash word. */
export const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The folder of all our files on a machine; only root writes there. */
export const HOME = '/opt/crawlfleet';

/** Required by undici. Only for bundles without Node. */
const NODE_NEEDED = '22.19';

const PROGRAM = `${HOME}/${PROGRAM_NAME}`;
const RUNTIME = `${HOME}/${RUNTIME_NAME}`;
const ARCHIVE = `${HOME}/bundle.tar.gz`;

/**
 * Seconds for all attempts; the last one starts with at least LAST_TRY_S left. The main server waits at least four
 * minutes for a hello, including boot: an error must be on the console before that.
 */
const FETCH_S = 150;
const LAST_TRY_S = 50;

/**
 * Lines for bash, run as root: install the program, and set `node_bin` to the Node that runs it. When S3 rejects the
 * URL itself (400-404) there is no retry: it has expired, or the object may not be read. All other failures are
 * retried.
 */
export function fetchBundle({ bundle }: Pick<UserData, 'bundle'>): string {
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
# The hash matches, so it contains what the main server put into it: at most these two files.
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

/** The unit's command, in terms of `node_bin`. */
export const EXEC_START = ['$node_bin', ...NODE_FLAGS, PROGRAM].join(' ');
