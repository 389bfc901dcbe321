import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completionScript } from '../../../orchestrator/cli/program/completion.ts';
import { asTyped, typedName } from '../../../orchestrator/cli/typed-name.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

describe('the name that was typed', () => {
  it.each([
    ['/usr/lib/node_modules/.bin/crawlfleet', undefined, 'crawlfleet'],
    ['/usr/bin/orchestrator', undefined, 'orchestrator'],
    ['/home/me/crawlfleet/bin/orchestrator.js', undefined, 'orchestrator'],
    ['/srv/shop/node_modules/.bin/crawlfleet', '1', 'npx crawlfleet'],
  ])('of %s (npx: %s) is %s', (file, npx, name) => {
    expect(typedName(file, npx)).toBe(name);
  });

  it('takes the place of the written one in commands, and nowhere else', () => {
    const text =
      'Look at it with: orchestrator status RUN; /opt/orchestrator run and the orchestrator; (orchestrator --help)';
    expect(asTyped(text, 'npx crawlfleet')).toBe(
      'Look at it with: npx crawlfleet status RUN; /opt/orchestrator run and the orchestrator; (npx crawlfleet --help)',
    );
    expect(asTyped(text, 'orchestrator')).toBe(text);
  });
});

describe('the script for bash', () => {
  let folder: TempDir;
  beforeEach(() => (folder = tempDir('crawlfleet completion ')));
  afterEach(() => folder.remove());

  it.each(['orchestrator', 'crawlfleet'])('asks the program under the name that was typed: %s', (name) => {
    const program = folder.file(name);
    writeFileSync(program, '#!/bin/sh\necho "$0 $*"\n');
    chmodSync(program, 0o755);
    const typed = `${completionScript('bash')}
complete -p ${name} >/dev/null || exit 1
COMP_WORDS=('${program}' run --d); COMP_CWORD=2
_orchestrator; echo "\${COMPREPLY[0]}"`;
    const { status, stdout } = spawnSync('bash', ['-c', typed], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${program} completion bash --words run --d\n` });
  });
});
