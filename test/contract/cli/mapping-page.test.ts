/** docs/mapping.md shows the real output of the commands, and the files unchanged. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../../support/processes.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PAGE = readFileSync(`${ROOT}docs/mapping.md`, 'utf8');

const outputs = [...PAGE.matchAll(/^```\n\$ orchestrator ([^\n]+)\n([\s\S]*?)^```$/gm)].map(
  ([, command, text]) => [command!, text!] as const,
);
const listings = [
  ...PAGE.matchAll(/^\[([\w.-]+)\]\(\.\.\/(examples\/mappings\/[\w.-]+)\):\n\n```\w+\n([\s\S]*?)^```$/gm),
];

describe('docs/mapping.md', () => {
  it('has examples', () => {
    expect(outputs.length).toBeGreaterThanOrEqual(5);
    expect(listings.length).toBe(outputs.length);
  });

  it.each(outputs)('shows what `orchestrator %s` prints', async (command, text) => {
    const run = await runCommand(process.execPath, ['orchestrator/main.ts', ...command.split(' ')], { cwd: ROOT });
    expect(run.stderr).toBe('');
    expect(run.stdout).toBe(text);
    expect(run.exitCode).toBe(0);
  });

  it.each(listings.map(([, name, path, text]) => [name!, path!, text!] as const))(
    'lists %s unchanged',
    (_name, path, text) => {
      expect(readFileSync(`${ROOT}${path}`, 'utf8')).toBe(text);
    },
  );
});
