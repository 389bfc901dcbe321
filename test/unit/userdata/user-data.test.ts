import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import { parseUserData } from '../../../shared/wire/settings.ts';
import { createKeyPair, exportPublicKey } from '../../../shared/wire/signature.ts';
import type { InstanceSettings } from '../../../shared/wire/settings.ts';
import { MAX_USER_DATA_BYTES, renderUserData } from '../../../userdata/user-data.ts';

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
    bundle: { url: "https://b.s3.amazonaws.com/bundles/x.mjs?X-Amz-Signature=a&b='c d'", sha256: 'c'.repeat(64) },
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
    },
    mapping: {
      fields: [
        {
          name: 'title',
          select: { type: 'css', selector: 'h1' },
          process: [{ type: 'trim' }],
          all: false,
          required: true,
        },
      ],
    },
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

  it('carries the settings so that the instance reads the same ones', () => {
    const given = settings();
    expect(parseUserData(renderUserData(given))).toEqual(given);
  });

  it('arms the power-off timer with the absolute time before anything that can fail', () => {
    const script = renderUserData(settings());
    const timer = script.indexOf('systemctl enable --now crawlfleet-power-off.timer');
    expect(script).toContain(`power_off_at=${Date.parse('2026-01-01T04:10:00.000Z') / 1_000}`);
    expect(timer).toBeGreaterThan(0);
    for (const later of ['command -v node', 'curl --fail', 'useradd', 'crawlfleet.service <<'])
      expect(script.indexOf(later)).toBeGreaterThan(timer);
  });

  it('compares the hash before it starts the bundle', () => {
    const script = renderUserData(settings());
    expect(script).toContain(`echo '${'c'.repeat(64)}  /opt/crawlfleet/bundle.mjs' | sha256sum --check --status`);
    expect(script.indexOf('sha256sum')).toBeLessThan(script.indexOf('ExecStart=$node_bin'));
  });

  it('hands a URL with quotes, ampersands and spaces to curl as one word', () => {
    const script = renderUserData(settings());
    const line = script.split('\n').find((l) => l.includes('--output /opt/crawlfleet/bundle.mjs'))!;
    const words = execFileSync('bash', ['-c', `printf '%s\\n' ${line.trim()}`])
      .toString()
      .trim()
      .split('\n');
    expect(words.at(-1)).toBe(settings().bundle.url);
  });

  it('runs nothing that the run name says', () => {
    const script = renderUserData(settings({ run: "x'; touch /tmp/pwned; '" }));
    const line = script.split('\n').find((l) => l.startsWith("say 'run"))!;
    const said = execFileSync('bash', ['-c', `say() { printf '%s' "$*"; }; ${line}`]).toString();
    expect(said).toBe("run x'; touch /tmp/pwned; ', slot 4, epoch 1");
  });

  it('refuses user data that EC2 would refuse, and says what to shorten', () => {
    const fields = Array.from({ length: 40 }, (_, i) => ({
      name: `f${i}`,
      select: { type: 'css' as const, selector: `.${noise(600, i + 1)}` },
      process: [],
      all: false,
      required: false,
    }));
    const render = (): string => renderUserData(settings({ mapping: { fields } }));
    expect(render).toThrow(AppError);
    expect(render).toThrow(String(MAX_USER_DATA_BYTES));
    try {
      render();
    } catch (error) {
      expect((error as AppError).code).toBe('config-invalid');
      expect((error as AppError).hint).toContain('mapping');
    }
  });

  it('has room for a mapping of thirty ordinary fields', () => {
    const fields = Array.from({ length: 30 }, (_, i) => ({
      name: `field_${i}`,
      select: { type: 'css' as const, selector: `div.product-detail > table.spec-table tr:nth-child(${i}) td.value` },
      process: [{ type: 'trim' as const }],
      all: false,
      required: false,
    }));
    expect(Buffer.byteLength(renderUserData(settings({ mapping: { fields } })))).toBeLessThan(MAX_USER_DATA_BYTES / 2);
  });
});
