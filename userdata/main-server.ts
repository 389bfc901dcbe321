/**
 * The script that a main server on EC2 runs at its first boot (Amazon Linux 2023): it installs the package and the
 * configuration from the bucket, and starts the schedule as a service. Everything that a later boot needs is in units:
 * the database's address is read from Secrets Manager at each start, and an SQLite file is backed up into the bucket.
 */

export interface MainServerSettings {
  region: string;
  bucket: string;
  /** Port of the callback listener. */
  callbackPort: number;
  /** Name of the secret with the database's address; null: the database is an SQLite file beside fleet.yaml. */
  secret: string | null;
}

/** Folders of the bucket. */
export const MAIN_SERVER_PREFIX = 'main-server/';
export const BACKUP_PREFIX = 'backups/';

const PROGRAM = '/opt/crawlfleet';
/** The working folder: configuration, logs, and an SQLite file. */
const HOME = '/srv/crawlfleet';
const USER = 'crawlfleet';
/** Where the unit of `orchestrator schedule --print-systemd` looks for settings and secrets. */
const ENVIRONMENT = '/etc/crawlfleet';
/** `schedule.name`: it names the unit and its file of settings. */
const SCHEDULE = 'main';
/** The database, where it is a file. */
const DATABASE_FILE = `${HOME}/fleet.db`;
const UNIT = `crawlfleet-${SCHEDULE}.service`;

/** The script, for bash as root. */
export function mainServerUserData(settings: MainServerSettings): string {
  const { region, bucket } = settings;
  return `#!/bin/bash
# crawlfleet main server; printed by orchestrator setup
set -Eeuo pipefail
export AWS_REGION=${region} AWS_DEFAULT_REGION=${region} AWS_PAGER=""
say() { echo "crawlfleet: $*" | tee /dev/console || true; }
trap 'say "setting up the main server failed in line $LINENO: see /var/log/cloud-init-output.log"' ERR

dnf install -y nodejs24 nodejs24-npm > /dev/null
id ${USER} > /dev/null 2>&1 || useradd --system --home-dir ${HOME} --shell /usr/sbin/nologin ${USER}
install -d -m 700 -o ${USER} -g ${USER} ${HOME}
install -d -m 755 ${PROGRAM}
install -d -m 700 ${ENVIRONMENT} ${PROGRAM}/files

aws s3 cp --only-show-errors --recursive "s3://${bucket}/${MAIN_SERVER_PREFIX}" ${PROGRAM}/files
cd ${PROGRAM}
HOME=/root npm install --no-audit --no-fund --no-save ./files/crawlfleet-*.tgz > /dev/null
cp -r ${PROGRAM}/files/. ${HOME}/
rm -f ${HOME}/crawlfleet-*.tgz
chown -R ${USER}:${USER} ${HOME}
ln -sf ${PROGRAM}/node_modules/.bin/crawlfleet /usr/local/bin/crawlfleet

${writeFile(`${ENVIRONMENT}/start`, '700', startScript(settings))}
${settings.secret === null ? backups(settings) : ''}
${ENVIRONMENT}/start
as_user() (
  cd ${HOME}
  set -a
  # shellcheck source=/dev/null
  . ${ENVIRONMENT}/${SCHEDULE}.env
  exec setpriv --reuid=${USER} --regid=${USER} --init-groups -- "$@"
)
as_user crawlfleet schedule --print-systemd > /etc/systemd/system/${UNIT}
install -d /etc/systemd/system/${UNIT}.d
${writeFile(`/etc/systemd/system/${UNIT}.d/start.conf`, '644', `[Service]\nExecStartPre=+${ENVIRONMENT}/start\n`)}
systemctl daemon-reload
systemctl enable --now ${UNIT}
say 'the schedule is running'
`;
}

/**
 * The script before each start of the schedule: it writes what may have changed since the last one into the unit's file
 * of settings.
 */
function startScript({ region, callbackPort, secret }: MainServerSettings): string {
  const readSecret = `secret=$(aws secretsmanager get-secret-value --region ${region} --secret-id '${secret}' --query SecretString --output text)
# A URL, or what RDS keeps there.
database=$(printf '%s' "$secret" | node -e '
const text = fs.readFileSync(0, "utf8").trim();
const { username, password, host, port = 3306, dbname } = text.startsWith("{") ? JSON.parse(text) : {};
if (text.startsWith("{") && !(host && dbname)) throw new Error("the secret has no host or no dbname");
const user = [username, password].map(encodeURIComponent).join(":");
const url = text.startsWith("{") ? ["mysql://", user, "@", host, ":", port, "/", dbname].join("") : text;
console.log(url.replaceAll("\\x27", "%27"));
')
`;
  return `#!/bin/bash
set -euo pipefail
token=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
address=$(curl -sSf -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/meta-data/local-ipv4)
${secret === null ? 'database=sqlite:./fleet.db\n' : readSecret}umask 077
{
  echo "AWS_REGION=${region}"
  echo "FLEET_SCHEDULE_NAME=${SCHEDULE}"
  echo "FLEET_SERVER_LISTEN=0.0.0.0:${callbackPort}"
  echo "FLEET_SERVER_URL=http://$address:${callbackPort}"
  echo "FLEET_DATABASE_URL='$database'"
} > ${ENVIRONMENT}/${SCHEDULE}.env.new
mv ${ENVIRONMENT}/${SCHEDULE}.env.new ${ENVIRONMENT}/${SCHEDULE}.env
`;
}

/** A copy each day, consistent while the schedule writes, and the newest one back on a new machine. */
function backups({ bucket, region }: MainServerSettings): string {
  const file = DATABASE_FILE;
  const place = `s3://${bucket}/${BACKUP_PREFIX}`;
  const script = `#!/bin/bash
# As the user of the schedule: the files that SQLite makes beside the database belong to it.
set -euo pipefail
[ -f '${file}' ] || exit 0
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$copy"
node --disable-warning=ExperimentalWarning -e '
const { backup, DatabaseSync } = process.getBuiltinModule("node:sqlite");
backup(new DatabaseSync("${file}", { timeout: 60_000 }), "fleet.db").then(() => process.exit(0));
'
gzip fleet.db
aws s3 cp --region ${region} --only-show-errors fleet.db.gz "${place}fleet-$(date -u +%Y%m%dT%H%M%SZ).db.gz"
`;
  return `${writeFile(`${PROGRAM}/back-up`, '755', script)}
${writeFile('/etc/systemd/system/crawlfleet-back-up.service', '644', `[Unit]\nDescription=Copies the database of crawlfleet into the bucket\n[Service]\nType=oneshot\nUser=${USER}\nExecStart=${PROGRAM}/back-up\n`)}
${writeFile('/etc/systemd/system/crawlfleet-back-up.timer', '644', '[Unit]\nDescription=Daily copy of the database of crawlfleet\n[Timer]\nOnCalendar=*-*-* 12:00:00 UTC\nPersistent=true\n[Install]\nWantedBy=timers.target\n')}
newest=$(aws s3 ls "${place}" 2> /dev/null | awk '{ print $4 }' | sort | tail -n 1 || true)
if [ -n "$newest" ]; then
  aws s3 cp --only-show-errors "${place}$newest" - | gunzip > '${file}'
  say "the database is restored from $newest"
fi
if [ -f '${file}' ]; then
  chmod 600 '${file}'
  chown ${USER}:${USER} '${file}'
fi
systemctl daemon-reload
systemctl enable --now crawlfleet-back-up.timer
`;
}

/** Lines for bash; the text may contain anything but a line of the mark. */
const writeFile = (path: string, mode: string, text: string): string =>
  `install -m ${mode} /dev/stdin '${path}' <<'CRAWLFLEET_FILE'\n${text.trimEnd()}\nCRAWLFLEET_FILE`;
