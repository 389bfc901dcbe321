/** How long the first steps of a boot retry: real bash runs them, with failing programs and a clock that jumps. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { installBrowser } from '../../../userdata/browser-setup.ts';
import { fetchBundle } from '../../../userdata/fetch-bundle.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** Real time that the programs may take on a busy machine; less than any pause would add. */
const REAL_SECONDS = 5;

const BUNDLE = { url: 'https://b.s3.amazonaws.com/x?a=1&b=2', sha256: 'c'.repeat(64) };

/**
 * The output of the lines under the shell options of the user data. `calls` counts attempts; each sleep advances bash's
 * clock.
 */
function play(stubs: string, lines: string) {
  using folder = tempDir();
  const script = `set -Eeuo pipefail
calls() { echo x >> ${folder.file('calls')}; [ "$(wc -l < ${folder.file('calls')})" -gt "$1" ]; }
give_up() { trap - ERR; echo "gave up after $SECONDS s: $*"; exit 1; }
trap 'give_up "line $LINENO"' ERR
sleep() { SECONDS=$((SECONDS + $1)); }
${stubs}
${lines}
`;
  writeFileSync(folder.file('script.sh'), script);
  writeFileSync(folder.file('calls'), '');
  const { stdout, stderr } = spawnSync('bash', [folder.file('script.sh')], { encoding: 'utf8' });
  const seconds = Number(/after (\d+) s/.exec(stdout)?.[1] ?? Number.NaN);
  return { said: stdout.trim(), errors: stderr, seconds };
}

describe('the bundle', () => {
  const body = (text: string): string =>
    `head() { if [ "$1" = -c ]; then echo '${text}'; else command head "$@"; fi; }`;
  const none = 'install() { :; }; sha256sum() { cat > /dev/null; echo "fetched after $SECONDS s"; exit 0; }';
  const fetched = (curl: string, text = ''): ReturnType<typeof play> =>
    play(`${none}\n${body(text)}\ncurl() { ${curl}; }`, fetchBundle({ bundle: BUNDLE }));

  it.each([400, 403, 404])('is given up immediately when S3 answers %i, with the message of S3', (status) => {
    const { said, errors, seconds } = fetched(`printf ${status}`, '<Error><Code>AccessDenied</Code></Error>');
    expect(said).toContain(`: the bundle cannot be fetched: HTTP ${status} AccessDenied`);
    expect(seconds).toBeLessThan(REAL_SECONDS);
    expect(errors).toBe('');
  });

  it.each([
    ['HTTP 503', 'printf 503'],
    ['curl: (7) Failed to connect', "echo 'curl: (7) Failed to connect' >&2; printf 000; return 7"],
  ])('is given up early enough for the console to show %s', (why, curl) => {
    const { said, seconds } = fetched(curl);
    expect(said).toContain(`the bundle cannot be fetched: ${why}`);
    expect(seconds).toBeGreaterThan(45);
    expect(seconds).toBeLessThanOrEqual(100);
  });

  it('is fetched when a later attempt succeeds', () => {
    const curl = "if calls 3; then printf 200; else echo 'curl: (18) partial file' >&2; printf 200; return 18; fi";
    const { said, seconds } = fetched(curl);
    expect(said).toMatch(/^fetched after/);
    expect(seconds).toBeGreaterThanOrEqual(7);
    expect(seconds).toBeLessThan(7 + REAL_SECONDS);
  });

  it('is not retried when curl is missing', () => {
    const { said, seconds } = fetched('command curl-that-is-absent "$@"');
    expect(said).toContain('gave up after');
    expect(seconds).toBeLessThan(REAL_SECONDS);
  });
});

describe("Chromium's packages", () => {
  const install = (stubs: string): ReturnType<typeof play> =>
    play(
      `dpkg() { :; }\n${stubs}`,
      `${installBrowser(360)}\ninstall_browser || give_up 'not installed'\necho installed`,
    );

  it('are given up within the total time limit, even if each call hangs', () => {
    // Simulates a mirror that never answers: each call uses its whole timeout.
    const { said, seconds } = install('timeout() { SECONDS=$((SECONDS + $1)); return 124; }');
    expect(said).toContain('not installed');
    expect(seconds).toBeLessThan(420 + REAL_SECONDS);
  });

  it('are tried three times', () => {
    expect(install('timeout() { shift; [ "$1" = dpkg ] || calls 2; }').said).toBe('installed');
    expect(install('timeout() { shift; [ "$1" = dpkg ] || calls 99; }').said).toContain('not installed');
  });
});
