import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import { parseUserData, type UserData } from '../../../shared/wire/settings.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';
import { MAX_USER_DATA_BYTES, renderUserData } from '../../../userdata/user-data.ts';

type Render = Parameters<typeof renderUserData>[1]['render'];
const scriptOf = (given: UserData, render: Render = 'http'): string => renderUserData(given, { render });

function settings(changes: Partial<UserData> = {}): UserData {
  return {
    version: 2,
    run: 'run-20260101-ab12',
    slot: 4,
    epoch: 1,
    token: 'a'.repeat(64),
    runPublicKey: exportPublicKey(createKeyPair().publicKey),
    callbackUrl: 'http://10.0.0.5:8700',
    apiPort: 8080,
    localPort: 8081,
    bundle: { url: "https://b.s3.amazonaws.com/bundles/x.tar.gz?X-Amz-Signature=a&b='c d'", sha256: 'c'.repeat(64) },
    crawlSettings: { url: 'https://b.s3.amazonaws.com/runs/r/s.json.gz?X-Amz-Signature=a', sha256: 'd'.repeat(64) },
    s3: { region: 'ap-northeast-1', bucket: 'b', endpoint: null },
    startedAt: '2026-01-01T00:00:00.000Z',
    deadline: '2026-01-01T04:00:00.000Z',
    powerOffAt: '2026-01-01T04:10:00.000Z',
    heartbeatMs: 15_000,
    partMs: 120_000,
    ...changes,
  };
}

/** Text that gzip cannot shorten. */
function noise(length: number, seed: number): string {
  const next = (): number => (seed = (seed * 48_271) % 2_147_483_647);
  return Array.from({ length }, () => String.fromCharCode(97 + (next() % 26))).join('');
}

describe('renderUserData', () => {
  it('is a script that bash can parse', () => {
    expect(() => execFileSync('bash', ['-n'], { input: scriptOf(settings()) })).not.toThrow();
  });

  it('contains the settings so that the instance reads the same ones', () => {
    const given = settings();
    expect(parseUserData(scriptOf(given))).toEqual(given);
  });

  it('arms the power-off timer with the absolute time before anything that can fail', () => {
    const script = scriptOf(settings());
    const timer = script.indexOf('systemctl enable --now crawlfleet-power-off.timer');
    expect(script).toContain(`power_off_at=${Date.parse('2026-01-01T04:10:00.000Z') / 1_000}`);
    expect(timer).toBeGreaterThan(0);
    for (const later of ['command -v node', 'curl --silent', 'tar --extract', 'useradd', 'crawlfleet.service <<'])
      expect(script.indexOf(later)).toBeGreaterThan(timer);
  });

  it('also limits the machine to the length of the run from its boot, in case its clock is wrong', () => {
    // 00:00 to 04:10.
    expect(scriptOf(settings())).toContain('\nOnBootSec=15000s\n');
  });

  it.each([
    ['a command that fails', 'false', 'boot failed: line'],
    ['a variable that is not set', 'echo "$not_set"', 'boot failed: the script ended early'],
    ['a command that fails in a pipe', 'false | cat', 'boot failed: line'],
    ['a command that fails in a function', 'deep() { false; }; deep', 'boot failed: line'],
    ['an exit', 'exit 0', 'boot failed: the script ended early'],
  ])('reports %s and powers off, wherever it occurs', (_what, line, says) => {
    const script = scriptOf(settings());
    const before = script.slice(0, script.indexOf('power_off_at='));
    const played = `tee() { cat; }; sync() { :; }; systemctl() { echo "systemctl $*"; }\n${line}\necho went on\n`;
    const { status, stdout } = spawnSync('bash', ['-s'], { input: before + played, encoding: 'utf8' });
    expect(stdout.trim().split('\n')).toEqual([expect.stringContaining(says), 'systemctl poweroff --no-block']);
    expect(status).toBe(1);
  });

  it('verifies the hash before it unpacks or starts anything', () => {
    const script = scriptOf(settings());
    const check = script.indexOf(
      `echo '${'c'.repeat(64)}  /opt/crawlfleet/bundle.tar.gz' | sha256sum --check --status`,
    );
    expect(check).toBeGreaterThan(0);
    for (const later of ['tar --extract', '"$node_bin" --version', 'ExecStart=$node_bin'])
      expect(script.indexOf(later)).toBeGreaterThan(check);
  });

  it('gives the program no unneeded privileges', () => {
    const unit = scriptOf(settings());
    for (const line of ['NoNewPrivileges=yes', 'CapabilityBoundingSet=', 'ProtectSystem=strict', 'PrivateDevices=yes'])
      expect(unit).toContain(`\n${line}\n`);
    expect(unit).not.toContain('Chromium');
  });

  it('installs a browser between the timer and the service, only where pages are rendered', () => {
    const script = scriptOf(settings(), 'auto');
    const at = script.indexOf('find_browser');
    expect(at).toBeGreaterThan(script.indexOf('enable --now crawlfleet-power-off.timer'));
    expect(at).toBeLessThan(script.indexOf('enable --now crawlfleet.service'));
    // A browser creates its own namespaces.
    expect(script).not.toContain('RestrictNamespaces');
    expect(() => execFileSync('bash', ['-n'], { input: script })).not.toThrow();
  });

  describe('with aws.commands', () => {
    /** The lines after the service has been started, with `systemctl cat` succeeding for the given unit only. */
    function play(present: string, curl = 0): string[] {
      const script = scriptOf(settings({ commands: true }));
      const played = `say() { echo "say $*"; }; curl() { echo "curl \${*: -1}"; return ${curl}; }; rm() { :; }
dpkg() { if [ "$1" != --install ]; then echo arm64; fi; }
systemctl() { if [ "$1" = cat ]; then [ "$2" = '${present}' ]; else echo "systemctl $*"; fi; }
set -Eeuo pipefail
${script.slice(script.indexOf('start_agent() {'))}`;
      const { stdout, stderr, status } = spawnSync('bash', ['-s'], { input: played, encoding: 'utf8' });
      expect(status, stderr).toBe(0);
      return stdout.trim().split('\n');
    }

    it.each(['amazon-ssm-agent', 'snap.amazon-ssm-agent.amazon-ssm-agent'])('starts the image’s own %s', (unit) => {
      expect(play(`${unit}.service`)).toEqual([`systemctl enable --now ${unit}.service`, 'say started']);
    });

    it('installs the agent of the region where the image has none', () => {
      expect(play('none')).toEqual([
        'curl https://s3.ap-northeast-1.amazonaws.com/amazon-ssm-ap-northeast-1/latest/debian_arm64/amazon-ssm-agent.deb',
        'systemctl enable --now amazon-ssm-agent.service',
        'say started',
      ]);
    });

    it.each([
      ['cn-north-1', 's3.cn-north-1.amazonaws.com.cn'],
      ['eusc-de-east-1', 's3.eusc-de-east-1.amazonaws.eu'],
    ])('fetches it from the hosts of the partition in %s', (region, host) => {
      const { s3 } = settings();
      expect(scriptOf(settings({ commands: true, s3: { ...s3, region } }))).toContain(`https://${host}/amazon-ssm-`);
    });

    it('goes on without the agent when it cannot be installed', () => {
      expect(play('none', 22).slice(1)).toEqual([
        'say the SSM agent does not run: orchestrator exec cannot reach this machine',
        'say started',
      ]);
    });

    it('is nothing without it', () => {
      expect(scriptOf(settings())).not.toContain('ssm');
    });
  });

  it('passes a URL with quotes, ampersands and spaces to curl as one word', () => {
    const script = scriptOf(settings());
    const call = /fault=(\$\(curl [\s\S]*?2>&1\)) \|\| code=/.exec(script)![1]!;
    const words = execFileSync('bash', ['-c', `curl() { printf '%s\\n' "$@"; }; printf '%s' "${call}"`]);
    expect(words.toString().trim().split('\n').at(-1)).toBe(settings().bundle.url);
  });

  it('executes nothing in the run name', () => {
    const script = scriptOf(settings({ run: "x'; touch /tmp/pwned; '" }));
    const line = script.split('\n').find((l) => l.startsWith("say 'run"))!;
    const said = execFileSync('bash', ['-c', `say() { printf '%s' "$*"; }; ${line}`]).toString();
    expect(said).toBe("run x'; touch /tmp/pwned; ', slot 4, epoch 1");
  });

  it('refuses user data that is too large for EC2, and names what to shorten', () => {
    const render = (): string => scriptOf(settings({ callbackUrl: `http://10.0.0.5:8700/${noise(20_000, 1)}` }));
    expect(render).toThrow(AppError);
    expect(render).toThrow(String(MAX_USER_DATA_BYTES));
    try {
      render();
    } catch (error) {
      expect((error as AppError).code).toBe('config-invalid');
      expect((error as AppError).hint).toContain('server.url');
    }
  });

  it('takes less than 8.5 KB, and less than 13 KB with a browser, whatever the site and its mapping', () => {
    const given = settings({ bundle: objectOf('bundles', 1), crawlSettings: objectOf('runs/20260101-000000-aaaa', 5) });
    const sizeOf = (render: Render): number => Buffer.byteLength(scriptOf(given, render));
    expect(sizeOf('http')).toBeGreaterThan(4_000);
    expect(sizeOf('http')).toBeLessThan(8_500);
    expect(sizeOf('browser')).toBeLessThan(13_000);
  });
});

/** As long as AWS makes it with a role's credentials: the session token is most of it, and the same in both URLs. */
const objectOf = (folder: string, seed: number) => ({
  url: `https://a-bucket-with-a-long-name.s3.ap-northeast-1.amazonaws.com/${folder}/${noise(64, seed)}.tar.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD&X-Amz-Credential=${noise(60, 2)}&X-Amz-Date=20260101T000000Z&X-Amz-Expires=15000&X-Amz-Security-Token=${noise(1_100, 3)}&X-Amz-Signature=${noise(64, seed + 1)}&X-Amz-SignedHeaders=host&x-id=GetObject`,
  sha256: 'c'.repeat(64),
});
