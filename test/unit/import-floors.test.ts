/**
 * Imports point one way: domain <- ports and wire <- logic <- edges <- wiring. The three programs speak HTTP and never
 * import each other, every library has its place, and only wiring reads the environment.
 */
import { describe, expect, it } from 'vitest';
import { featureFolders, importsIn, readSource, sourceFiles, withoutComments } from '../support/import-graph.ts';

/** Where each library may be imported. An unlisted library may be imported nowhere. */
const LIBRARIES: Record<string, string[]> = {
  '@aws-sdk': [
    'shared/adapters/',
    'orchestrator/core/cloud/',
    'orchestrator/features/exec/',
    'orchestrator/features/image/',
    'sandbox/stand-in/',
  ],
  'better-sqlite3': ['orchestrator/core/db/'],
  knex: [
    'orchestrator/core/db/',
    ...['discovery', 'history', 'recrawl'].map((feature) => `orchestrator/features/${feature}/`),
  ],
  mysql2: ['orchestrator/core/db/'],
  express: [
    'orchestrator/core/server/',
    'orchestrator/features/serve/',
    'orchestrator/cli/commands/run.ts',
    'crawl-api/server/',
    'sandbox/server/',
  ],
  helmet: ['orchestrator/features/serve/'],
  'prom-client': ['orchestrator/core/read/'],
  preact: ['orchestrator/features/serve/page/'],
  uplot: ['orchestrator/features/serve/page/'],
  'log-update': ['orchestrator/cli/'],
  nodemailer: ['orchestrator/features/notify/'],
  'hyparquet-writer': ['orchestrator/features/export/'],
  // program.ts names its modules in the text of the bundle.
  undici: [
    'orchestrator/core/cloud/',
    'crawl-api/fetch/',
    'crawl-api/callbacks/',
    'shared/adapters/http/',
    'userdata/program.ts',
  ],
  playwright: ['crawl-api/fetch/browser/', 'orchestrator/core/prepare/browser-boot.ts'],
  'ipaddr.js': ['shared/adapters/http/'],
  'tough-cookie': ['shared/adapters/http/'],
  chardet: ['crawl-api/fetch/'],
  '@exodus': ['crawl-api/fetch/'],
  'css-what': ['shared/adapters/'],
  re2js: ['shared/adapters/steps/', 'crawl-api/politeness/site-rules.ts'],
  'css-select': ['crawl-api/extract/'],
  domhandler: ['crawl-api/extract/'],
  graphql: ['orchestrator/core/config/'],
  'json-p3': ['shared/adapters/steps/'],
  luxon: ['shared/adapters/steps/'],
  htmlparser2: ['crawl-api/extract/', 'sandbox/', 'orchestrator/features/discovery/'],
  entities: ['crawl-api/extract/'],
  esbuild: ['userdata/', 'orchestrator/features/serve/bundle-page.ts'],
  tar: ['userdata/', 'sandbox/host/'],
  tldts: ['shared/domain/host-key.ts'],
  commander: ['orchestrator/main.ts', 'orchestrator/cli/program/'],
  croner: ['orchestrator/core/config/'],
  'fastest-levenshtein': ['orchestrator/core/config/'],
  yaml: ['orchestrator/core/config/', 'orchestrator/features/init/propose-shop.ts'],
  pino: ['orchestrator/', 'crawl-api/', 'sandbox/'],
  zod: ['shared/wire/', 'orchestrator/', 'crawl-api/', 'sandbox/', 'userdata/'],
};

/** The control loop: it knows neither AWS nor a database, only ports. */
const LOOP = [
  ...['model', 'decide', 'act', 'observe', 'callbacks', 'verify', 'gc'].map((room) => `orchestrator/core/${room}/`),
  'orchestrator/core/loop.ts',
  'orchestrator/core/main-server.ts',
  'orchestrator/core/new-run.ts',
];

/** What a folder may import besides itself: our own folders and whole `node:` modules. The first match counts. */
const FLOORS: [folder: string, allowed: string[]][] = [
  ['shared/domain/', []],
  ['shared/ports/', ['shared/domain/']],
  ['shared/wire/', ['shared/domain/', 'node:crypto', 'node:zlib']],
  ['shared/', ['shared/', 'node:']],
  ['orchestrator/core/plan/', ['shared/']],
  [
    'orchestrator/core/simulation/',
    [
      'shared/',
      ...LOOP,
      'orchestrator/core/plan/',
      'orchestrator/core/read/timeline.ts',
      'orchestrator/core/cloud/compute.ts',
      'orchestrator/core/cloud/load-balancer.ts',
      'orchestrator/core/cloud/offers.ts',
      'orchestrator/core/cloud/watched-store.ts',
      // The form of chunk ids.
      'orchestrator/core/db/chunk-rows.ts',
      'node:crypto',
      'node:zlib',
    ],
  ],
  ...LOOP.map((folder): [string, string[]] => [
    folder,
    [
      'shared/',
      ...LOOP,
      'orchestrator/core/plan/',
      'userdata/',
      'orchestrator/core/cloud/compute.ts',
      'orchestrator/core/cloud/load-balancer.ts',
      'orchestrator/core/cloud/offers.ts',
      'node:crypto',
      'node:zlib',
    ],
  ]),
  ['orchestrator/core/', ['userdata/', 'shared/', 'package.json', 'node:']],
  ['orchestrator/cli/', ['orchestrator/core/', 'userdata/', 'shared/', 'node:']],
  // No feature knows another one.
  ...featureFolders().map((feature): [string, string[]] => [
    `orchestrator/features/${feature}/`,
    ['orchestrator/core/', 'orchestrator/cli/', 'userdata/', 'shared/', 'node:'],
  ]),
  ['orchestrator/', ['orchestrator/', 'userdata/', 'shared/', 'package.json', 'node:']],
  ['crawl-api/politeness/', ['shared/']],
  ['crawl-api/extract/', ['shared/']],
  ['crawl-api/', ['crawl-api/', 'shared/', 'node:']],
  ['userdata/', ['shared/', 'node:']],
  ['sandbox/', ['sandbox/', 'shared/', 'node:']],
];

const PRINTS = /\bprocess\.(?:stdout|stderr|exit)\b/;
const READS_ENVIRONMENT = /\bprocess\.(?:env|argv)\b/;
const MAY_READ_ENVIRONMENT =
  /(?:^|\/)main\.ts$|^orchestrator\/(?:cli\/|core\/(?:checks\/machine|cloud-access\/cloud-access)\.ts$|features\/(?:[a-z]+\/index|serve\/build-page)\.ts$)/;

function findViolations(file: string, source: string): string[] {
  const code = withoutComments(source);
  const found = importsIn(file, source).flatMap((target) =>
    isAllowed(file, target) ? [] : [`${file} imports ${target}`],
  );
  if (READS_ENVIRONMENT.test(code) && !MAY_READ_ENVIRONMENT.test(file)) found.push(`${file} reads the environment`);
  if (PRINTS.test(code) && file.startsWith('orchestrator/core/')) found.push(`${file} prints or exits`);
  return found;
}

/** @param target a path from the root, or a module */
function isAllowed(file: string, target: string): boolean {
  const [folder, allowed] = FLOORS.find(([folder]) => file.startsWith(folder)) ?? [file, []];
  if (target.startsWith('node:')) return allowed.some((place) => place === 'node:' || place === target);
  const library = Object.keys(LIBRARIES).find((name) => target === name || target.startsWith(`${name}/`));
  if (library !== undefined) return LIBRARIES[library]!.some((place) => file.startsWith(place));
  return [folder, ...allowed].some((place) => target.startsWith(place));
}

describe('import floors', () => {
  const files = sourceFiles();

  it('finds the source files', () => {
    expect(files.length).toBeGreaterThan(60);
  });

  it('hold in every file', () => {
    expect(files.flatMap((file) => findViolations(file, readSource(file)))).toEqual([]);
  });

  it.each([
    ['domain that uses node:', 'shared/domain/x.ts', `import { createHash } from 'node:crypto';`],
    ['domain that uses a library', 'shared/domain/x.ts', `import { z } from 'zod';`],
    ['domain that imports a port', 'shared/domain/x.ts', `import type { Clock } from '../ports/clock.ts';`],
    ['a port that knows an adapter', 'shared/ports/x.ts', `import { a } from '../adapters/random.ts';`],
    ['wire that reads files', 'shared/wire/x.ts', `import { readFileSync } from 'node:fs';`],
    [
      'shared that knows a program',
      'shared/adapters/x.ts',
      `import { a } from '../../orchestrator/core/plan/plan.ts';`,
    ],
    ['orchestrator that imports crawl-api', 'orchestrator/core/x.ts', `export * from '../../crawl-api/instance.ts';`],
    [
      'a use case that knows the command line',
      'orchestrator/core/run/x.ts',
      `import { a } from '../../cli/output.ts';`,
    ],
    ['a use case that prints', 'orchestrator/core/run/x.ts', `process.stdout.write('x');`],
    ['crawl-api that imports the sandbox', 'crawl-api/main.ts', `await import('../sandbox/xml.ts');`],
    [
      'the sandbox that imports orchestrator',
      'sandbox/main.ts',
      `import type { A } from "../orchestrator/core/plan/plan.ts";`,
    ],
    ['a plan that knows the database', 'orchestrator/core/plan/x.ts', `import { a } from '../db/stores.ts';`],
    [
      'the core that knows how it is asked for explanations',
      'orchestrator/core/run/x.ts',
      `import { a } from '../../features/explain/command.ts';`,
    ],
    ['a command that knows a feature', 'orchestrator/cli/x.ts', `import { a } from '../features/serve/command.ts';`],
    ['a feature that knows another', 'orchestrator/features/serve/x.ts', `import { a } from '../schedule/daemon.ts';`],
    ['the loop that calls EC2', 'orchestrator/core/act/x.ts', `import { a } from '../cloud/ec2-compute.ts';`],
    ['an SDK outside its folder', 'orchestrator/cli/x.ts', `const { S3Client } = await import('@aws-sdk/client-s3');`],
    ['knex outside the database folder', 'orchestrator/core/x.ts', `import knex from 'knex';`],
    ['a driver imported by a path in its package', 'orchestrator/cli/x.ts', `import mysql from 'mysql2/promise';`],
    ['express outside a server folder', 'crawl-api/queue/x.ts', `import express from 'express';`],
    ['an unlisted library', 'orchestrator/cli/x.ts', `import _ from 'lodash';`],
    ['an import over several lines', 'shared/domain/x.ts', `import {\n  a,\n  b,\n} from\n  'node:fs';`],
    ['a side-effect import', 'shared/domain/x.ts', `import 'node:fs';`],
    ['require', 'shared/domain/x.ts', `const fs = require('node:fs');`],
    ['logic that reads the environment', 'orchestrator/core/x.ts', `const region = process.env.AWS_REGION;`],
    ['logic that reads the arguments', 'crawl-api/queue/x.ts', `const [, , file] = process.argv;`],
  ])('catch %s', (_, file, source) => {
    expect(findViolations(file, source)).toHaveLength(1);
  });

  it.each([
    ['a comment about the environment', 'orchestrator/core/x.ts', `// process.env is read in main.ts only`],
    ['wiring that reads the environment', 'sandbox/main.ts', `const home = process.env.HOME;`],
    ['lower floors', 'orchestrator/core/plan/x.ts', `import { a } from '../../../shared/domain/errors.ts';`],
    ['its own folder', 'shared/domain/x.ts', `import { a } from './errors.ts';`],
  ])('let %s pass', (_, file, source) => {
    expect(findViolations(file, source)).toEqual([]);
  });
});
