import os from 'node:os';
import { expect, it } from 'vitest';
import { provideHome, userName } from '../../../orchestrator/cli/passwd-entry.ts';
import { replaceBuiltin } from '../../support/builtin.ts';

const noEntry = (): never => {
  throw new Error('A system error occurred: uv_os_homedir returned ENOENT (no such file or directory)');
};

it('a user without an entry in /etc/passwd gets a home folder, all others keep theirs', () => {
  const environment = { HOME: '/home/crawl' };
  provideHome(environment);
  expect(environment).toEqual({ HOME: '/home/crawl' });
  replaceBuiltin(os, 'homedir', noEntry);
  const bare = {};
  provideHome(bare);
  expect(bare).toEqual({ HOME: '/' });
});

it('a user without a name gets no unit', () => {
  expect(userName()).toBe(os.userInfo().username);
  replaceBuiltin(os, 'userInfo', noEntry);
  expect(userName).toThrow(/^user \d+ has no entry in \/etc\/passwd, and a unit names its user$/);
});
