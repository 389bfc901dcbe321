/** What a new user sees first: help texts, and the errors for an invalid file. */
import { readConfig } from '../../support/features.ts';
import { FEATURES } from '../../../orchestrator/features.ts';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { initCommand } from '../../../orchestrator/features/init/command.ts';
import type { Output } from '../../../orchestrator/cli/output.ts';
import { createProgram, helpNotes } from '../../../orchestrator/cli/program/program.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { tempDir } from '../../support/temp-dir.ts';

const HELP_NOTES = helpNotes(FEATURES);
const commands = (): readonly Command[] => createProgram(FEATURES).commands;

describe('help', () => {
  it('has examples and a link to a page for every command, and for no other', () => {
    expect([...HELP_NOTES.keys()].sort()).toEqual(
      commands()
        .map((command) => command.name())
        .filter((name) => name !== 'help')
        .sort(),
    );
    for (const [page] of HELP_NOTES.values()) expect(existsSync(page), page).toBe(true);
  });

  it.each([...HELP_NOTES.values()].flatMap(([, ...examples]) => examples))(
    'has an example that parses: %s',
    (example) => {
      const [name = '', ...words] = example.replace(/ > .*$/, '').split(' ');
      const command = commands().find((one) => one.name() === name)!;
      const { operands, unknown } = command.parseOptions(words);
      expect(unknown).toEqual([]);
      const { registeredArguments: takes } = command;
      if (takes.at(-1)?.variadic !== true) expect(operands.length).toBeLessThanOrEqual(takes.length);
    },
  );

  it('describes every argument and every flag', () => {
    for (const command of commands()) {
      for (const argument of command.registeredArguments) expect(argument.description, command.name()).not.toBe('');
      for (const option of command.options)
        expect(option.description, `${command.name()} ${option.flags}`).not.toBe('');
    }
  });
});

const FLEET = {
  site: {
    product_url: 'https://shop.example/item/{id}',
    mapping: { fields: { title: 'h1' } } as unknown,
  } as Record<string, unknown>,
  products: { query: 'select id from products' } as Record<string, unknown>,
  database: { url: 'sqlite:./fleet.db' },
  run: {} as Record<string, unknown>,
};

function refusalOf(content: string | Uint8Array): AppError {
  using folder = tempDir();
  const path = join(folder.path, 'fleet.yaml');
  writeFileSync(path, content);
  try {
    readConfig(path, {});
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

const refusalOfFleet = (change: (fleet: typeof FLEET) => void): AppError => {
  const fleet = structuredClone(FLEET);
  change(fleet);
  return refusalOf(JSON.stringify(fleet));
};

describe('a wrong configuration', () => {
  it.each<[string, (fleet: typeof FLEET) => void, string]>([
    ['a misspelt key', ({ site }) => (site.intervall = '3s'), 'site.intervall: unknown key; did you mean interval?'],
    [
      'a misspelt nested key',
      ({ site }) => (site.ban = { statuse: [] }),
      'site.ban.statuse: unknown key; did you mean statuses?',
    ],
    ['a number below its bound', ({ run }) => (run.min_instances = 0), 'run.min_instances: must be at least 1'],
    ['a text for a number', ({ run }) => (run.max_cost = 'abc'), 'run.max_cost: must be a number'],
    ['an unknown choice', ({ site }) => (site.render = 'brwser'), 'site.render: must be one of http, browser, auto'],
    ['a value that is not a list', ({ site }) => (site.canaries = 3), 'site.canaries: must be a list'],
    ['a missing key', ({ products }) => delete products.query, 'products.query: missing'],
    ['a deadline of years', ({ run }) => (run.deadline = '999999h'), 'run.deadline: must be at most 720h'],
    [
      'a variable that is not set',
      ({ database }) => (database.url = '${DATABASE_URL}'),
      'the variable DATABASE_URL is not set, neither in the environment nor in .env',
    ],
  ])('explains what is wrong with %s', (_, change, expected) => {
    const { message, hint } = refusalOfFleet(change);
    expect(message).toContain(expected);
    expect(message).toContain('fleet.yaml has a fault:');
    expect(hint).toContain('docs/configuration.md');
  });

  it('reports a field with an unknown key once, and names the page about mappings', () => {
    const { message, hint } = refusalOfFleet(
      ({ site }) => (site.mapping = { fields: { title: { css: 'h1', requird: true } } }),
    );
    expect(message.split('\n')).toEqual([
      expect.stringMatching(/^the mapping of .*fleet\.yaml has a fault:$/),
      expect.stringContaining('site.mapping.fields.title.requird: unknown key; did you mean required?'),
    ]);
    expect(hint).toBe('Described in the mapping: docs/mapping.md');
  });

  it('refuses a binary file with a one-line error', () => {
    const { message } = refusalOf(Uint8Array.from({ length: 5_000 }, (_, i) => i % 256));
    expect(message).toMatch(/fleet\.yaml is not a text file in UTF-8/);
    expect(message.length).toBeLessThan(300);
  });

  it('lists at most 50 faults', () => {
    const { message } = refusalOfFleet(({ run }) => {
      for (let i = 0; i < 200; i++) run[`nonsense_number_${i}`] = i;
    });
    expect(message.split('\n')).toHaveLength(52);
    expect(message).toMatch(/and 150 more$/);
  });
});

describe('init', () => {
  const output: Output = { json: false, line: () => {}, document: () => {} };

  it('refuses a path that is a file, and a path where no folder can be created', async () => {
    using folder = tempDir();
    const file = join(folder.path, 'file');
    writeFileSync(file, '');
    for (const place of [file, join(file, 'below'), '/proc/crawlfleet/below']) {
      const refusal = initCommand({ folder: place, urls: [], yes: false }, output);
      await expect(refusal).rejects.toThrow(AppError);
      await expect(refusal).rejects.toThrow(/cannot write into/);
    }
  });
});
