import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Field, Mapping } from '../../../shared/domain/mapping.ts';
import { type InstanceSettings, parseUserData } from '../../../shared/wire/settings.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';
import { MAX_USER_DATA_BYTES, renderUserData } from '../../../userdata/user-data.ts';

function mappingOf(fields: Field[]): Mapping {
  return { pages: [{ name: 'product', urlPatterns: [], urlParsers: [], rows: null, fields }] };
}

function settings(changes: Partial<InstanceSettings> = {}): InstanceSettings {
  return {
    version: 1,
    run: 'run-20260101-ab12',
    slot: 4,
    epoch: 1,
    token: 'a'.repeat(64),
    runPublicKey: exportPublicKey(createKeyPair().publicKey),
    callbackUrl: 'http://10.0.0.5:8700',
    apiPort: 8080,
    localPort: 8081,
    bundle: { url: "https://b.s3.amazonaws.com/bundles/x.tar.gz?X-Amz-Signature=a&b='c d'", sha256: 'c'.repeat(64) },
    s3: { region: 'ap-northeast-1', bucket: 'b', endpoint: null },
    startedAt: '2026-01-01T00:00:00.000Z',
    deadline: '2026-01-01T04:00:00.000Z',
    powerOffAt: '2026-01-01T04:10:00.000Z',
    heartbeatMs: 15_000,
    partMs: 120_000,
    site: {
      productUrl: 'https://shop.example/item/{id}',
      intervalMs: 10_000,
      timeoutMs: 30_000,
      maxPageBytes: 5_000_000,
      userAgent: 'examplebot/1.0',
      allowPrivate: false,
      render: 'http',
      robots: 'respect',
      ban: { statuses: [403], redirects: ['/verify'], patterns: ['captcha'], coolDownMs: 1_800_000 },
      canaries: [{ id: 'P1', fields: { title: 'Kettle' } }],
    },
    mapping: mappingOf([{ name: 'title', steps: [{ type: 'css', selector: 'h1' }, { type: 'trim' }], required: true }]),
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
    expect(() => execFileSync('bash', ['-n'], { input: renderUserData(settings()) })).not.toThrow();
  });

  it('contains the settings so that the instance reads the same ones', () => {
    const given = settings();
    expect(parseUserData(renderUserData(given))).toEqual(given);
  });

  it('arms the power-off timer with the absolute time before anything that can fail', () => {
    const script = renderUserData(settings());
    const timer = script.indexOf('systemctl enable --now crawlfleet-power-off.timer');
    expect(script).toContain(`power_off_at=${Date.parse('2026-01-01T04:10:00.000Z') / 1_000}`);
    expect(timer).toBeGreaterThan(0);
    for (const later of ['command -v node', 'curl --silent', 'tar --extract', 'useradd', 'crawlfleet.service <<'])
      expect(script.indexOf(later)).toBeGreaterThan(timer);
  });

  it('also limits the machine to the length of the run from its boot, in case its clock is wrong', () => {
    // 00:00 to 04:10.
    expect(renderUserData(settings())).toContain('\nOnBootSec=15000s\n');
  });

  it.each([
    ['a command that fails', 'false', 'boot failed: line'],
    ['a variable that is not set', 'echo "$not_set"', 'boot failed: the script ended early'],
    ['a command that fails in a pipe', 'false | cat', 'boot failed: line'],
    ['a command that fails in a function', 'deep() { false; }; deep', 'boot failed: line'],
    ['an exit', 'exit 0', 'boot failed: the script ended early'],
  ])('reports %s and powers off, wherever it occurs', (_what, line, says) => {
    const script = renderUserData(settings());
    const before = script.slice(0, script.indexOf('power_off_at='));
    const played = `tee() { cat; }; sync() { :; }; systemctl() { echo "systemctl $*"; }\n${line}\necho went on\n`;
    const { status, stdout } = spawnSync('bash', ['-s'], { input: before + played, encoding: 'utf8' });
    expect(stdout.trim().split('\n')).toEqual([expect.stringContaining(says), 'systemctl poweroff --no-block']);
    expect(status).toBe(1);
  });

  it('verifies the hash before it unpacks or starts anything', () => {
    const script = renderUserData(settings());
    const check = script.indexOf(
      `echo '${'c'.repeat(64)}  /opt/crawlfleet/bundle.tar.gz' | sha256sum --check --status`,
    );
    expect(check).toBeGreaterThan(0);
    for (const later of ['tar --extract', '"$node_bin" --version', 'ExecStart=$node_bin'])
      expect(script.indexOf(later)).toBeGreaterThan(check);
  });

  it('gives the program no unneeded privileges', () => {
    const unit = renderUserData(settings());
    for (const line of ['NoNewPrivileges=yes', 'CapabilityBoundingSet=', 'ProtectSystem=strict', 'PrivateDevices=yes'])
      expect(unit).toContain(`\n${line}\n`);
    expect(unit).not.toContain('Chromium');
  });

  it('installs a browser between the timer and the service, only where pages are rendered', () => {
    const given = settings();
    const script = renderUserData({ ...given, site: { ...given.site, render: 'auto' } });
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
      const script = renderUserData(settings({ commands: true }));
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
      expect(renderUserData(settings({ commands: true, s3: { ...s3, region } }))).toContain(
        `https://${host}/amazon-ssm-`,
      );
    });

    it('goes on without the agent when it cannot be installed', () => {
      expect(play('none', 22).slice(1)).toEqual([
        'say the SSM agent does not run: orchestrator exec cannot reach this machine',
        'say started',
      ]);
    });

    it('is nothing without it', () => {
      expect(renderUserData(settings())).not.toContain('ssm');
    });
  });

  it('passes a URL with quotes, ampersands and spaces to curl as one word', () => {
    const script = renderUserData(settings());
    const call = /fault=(\$\(curl [\s\S]*?2>&1\)) \|\| code=/.exec(script)![1]!;
    const words = execFileSync('bash', ['-c', `curl() { printf '%s\\n' "$@"; }; printf '%s' "${call}"`]);
    expect(words.toString().trim().split('\n').at(-1)).toBe(settings().bundle.url);
  });

  it('executes nothing in the run name', () => {
    const script = renderUserData(settings({ run: "x'; touch /tmp/pwned; '" }));
    const line = script.split('\n').find((l) => l.startsWith("say 'run"))!;
    const said = execFileSync('bash', ['-c', `say() { printf '%s' "$*"; }; ${line}`]).toString();
    expect(said).toBe("run x'; touch /tmp/pwned; ', slot 4, epoch 1");
  });

  it('refuses user data that is too large for EC2, and names what to shorten', () => {
    const fields = Array.from({ length: 40 }, (_, i) => ({
      name: `f${i}`,
      steps: [{ type: 'css' as const, selector: `.${noise(600, i + 1)}` }],
      required: false,
    }));
    const render = (): string => renderUserData(settings({ mapping: mappingOf(fields) }));
    expect(render).toThrow(AppError);
    expect(render).toThrow(String(MAX_USER_DATA_BYTES));
    try {
      render();
    } catch (error) {
      expect((error as AppError).code).toBe('config-invalid');
      expect((error as AppError).hint).toContain('mapping');
    }
  });

  it('takes less than 8.5 KB for an ordinary site, and less than 13 KB with a browser', () => {
    const given = settings();
    const sizeOf = (render: 'http' | 'browser'): number =>
      Buffer.byteLength(renderUserData({ ...given, bundle: REAL_BUNDLE, site: { ...given.site, render } }));
    expect(sizeOf('http')).toBeGreaterThan(4_000);
    expect(sizeOf('http')).toBeLessThan(8_500);
    expect(sizeOf('browser')).toBeLessThan(13_000);
  });

  it.each(['http', 'browser'] as const)('has room for a mapping of sixty ordinary fields (%s)', (render) => {
    const fields = Array.from({ length: 60 }, (_, i) => ({
      name: `field_${i}`,
      steps: [
        { type: 'css' as const, selector: `div.product-detail > table.spec-table tr:nth-child(${i}) td.value` },
        { type: 'trim' as const },
      ],
      required: false,
    }));
    const given = settings({ mapping: mappingOf(fields), bundle: REAL_BUNDLE });
    const script = renderUserData({ ...given, site: { ...given.site, render } });
    expect(Buffer.byteLength(script)).toBeLessThan(0.9 * MAX_USER_DATA_BYTES);
  });
});

/** As long as AWS makes it with a role's credentials: the session token is most of it. */
const REAL_BUNDLE = {
  url: `https://a-bucket-with-a-long-name.s3.ap-northeast-1.amazonaws.com/bundles/${noise(64, 1)}.tar.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD&X-Amz-Credential=${noise(60, 2)}&X-Amz-Date=20260101T000000Z&X-Amz-Expires=15000&X-Amz-Security-Token=${noise(1_100, 3)}&X-Amz-Signature=${noise(64, 4)}&X-Amz-SignedHeaders=host&x-id=GetObject`,
  sha256: 'c'.repeat(64),
};
