import { describe, expect, it } from 'vitest';
import { findChromium } from '../../../shared/adapters/find-chromium.ts';

const only =
  (...files: string[]) =>
  (file: string): boolean =>
    files.includes(file);
const noPlaywright = (): string => '';

describe('the selected browser', () => {
  it.each([
    ['the configured one', { named: '/opt/mine', isExecutable: only('/opt/mine', '/usr/bin/chromium') }, '/opt/mine'],
    ['the machine’s own', { isExecutable: only('/usr/bin/chromium') }, '/usr/bin/chromium'],
    [
      'the headless shell before it',
      { isExecutable: only('/usr/bin/chromium', '/usr/lib/chromium/chromium-headless-shell') },
      '/usr/lib/chromium/chromium-headless-shell',
    ],
    [
      'an empty name counts as none',
      { named: '', isExecutable: only('/usr/bin/google-chrome') },
      '/usr/bin/google-chrome',
    ],
  ])('%s', (_, search, expected) => {
    expect(findChromium({ playwrightPath: noPlaywright, ...search })).toBe(expected);
  });

  it('is Playwright’s when there is no other', () => {
    expect(findChromium({ playwrightPath: () => '/cache/chrome', isExecutable: only('/cache/chrome') })).toBe(
      '/cache/chrome',
    );
  });

  it('is no other browser when the configured one is missing', () => {
    const search = { named: '/opt/mine', playwrightPath: noPlaywright, isExecutable: only('/usr/bin/chromium') };
    expect(() => findChromium(search)).toThrow('/opt/mine does not exist');
  });

  it('is an error that says what to install when there is none, even where Playwright has none', () => {
    const playwrightPath = (): string => {
      throw new Error('unsupported');
    };
    expect(() => findChromium({ playwrightPath, isExecutable: () => false })).toThrow(
      expect.objectContaining({ code: 'platform', hint: expect.stringContaining('apt-get install') }),
    );
  });
});
