import { FEATURES } from '../../../orchestrator/features.ts';
import { describe, expect, it } from 'vitest';
import { completionsFor } from '../../../orchestrator/cli/program/completion.ts';
import { createProgram } from '../../../orchestrator/cli/program/program.ts';

describe('completion', () => {
  it.each([
    [['st'], ['status', 'stop']],
    [
      ['run', '--d'],
      ['--deadline', '--dry-run'],
    ],
    [
      ['export', '--format', ''],
      ['csv', 'jsonl', 'parquet'],
    ],
    [['export', '--format', 'p'], ['parquet']],
    [['logs', '--level', 'w'], ['warn']],
    // Files, and runs, are for the shell and the user.
    [['run', '--config', ''], []],
    [['status', ''], []],
    [['nonsense', '--'], []],
  ])('of %j offers %j', (words, offered) => {
    expect(completionsFor(createProgram(FEATURES), words)).toEqual(offered);
  });

  it('offers every command, and no hidden flag', () => {
    const program = createProgram(FEATURES);
    expect(completionsFor(program, [''])).toEqual(program.commands.map((command) => command.name()).toSorted());
    expect(completionsFor(program, ['run', '--'])).not.toContain('--due');
  });
});
