/**
 * Writes the documents that are made from code: configuration.md and fleet.schema.json from the configuration's schema,
 * mapping.schema.json from the forms of a mapping, errors.md and exit-codes.md from their tables, states.md from the
 * state tables, the Grafana dashboard from its typed form. With --check it writes nothing and fails when a file on disk
 * differs.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { mappingJsonSchema } from '../orchestrator/core/config/json-schema.ts';
import { loadFeatures } from '../orchestrator/cli/program/feature.ts';
import { schemaWith } from '../orchestrator/core/config/section.ts';
import { FEATURES } from '../orchestrator/features.ts';
import { ERROR_KINDS } from '../shared/domain/errors.ts';
import { dashboard } from '../examples/grafana/dashboard.ts';
import { exitCodesPage } from './generate-exit-codes.ts';
import { statesPage } from './generate-states.ts';

interface JsonSchema {
  $ref?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  type?: string;
  anyOf?: JsonSchema[];
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  required?: string[];
}

const sections = (await loadFeatures(FEATURES)).flatMap((feature) => feature.sections ?? []);
const schema = z.toJSONSchema(schemaWith(sections), { io: 'input', unrepresentable: 'any' }) as JsonSchema;

referToMappingSchema(schema);

/** Editors then check a mapping written in place, too. */
function referToMappingSchema({ properties }: JsonSchema): void {
  const mapping = properties?.site?.properties?.mapping;
  if (!mapping?.anyOf) throw new Error('site.mapping is no union any more');
  mapping.anyOf = [...mapping.anyOf.filter((one) => one.type === 'string'), { $ref: 'mapping.schema.json' }];
}

function configurationPage(): string {
  const lines = [
    '# Configuration',
    '',
    'Made from `orchestrator/core/config/schema.ts` and the sections of features by `npm run docs`; do not edit it by hand.',
    '',
    'The configuration is one YAML file, `fleet.yaml` unless `--config` (or `FLEET_CONFIG`) names another. `orchestrator init` writes a',
    'commented one to start from, and an editor can check yours against [fleet.schema.json](fleet.schema.json).',
    '',
    'A flag overrides an environment variable, a variable overrides the file, and the file overrides the default. Two flags set a key: `--deadline`',
    '(`run.deadline`) and `--max-cost` (`run.max_cost`). Unknown keys and unknown `FLEET_` variables are refused. All faults are listed at',
    'once, with their lines, and the command exits with 4.',
    '',
    'Write durations as `200ms`, `10s`, `4h` or `1h30m`, sizes as `500KB` or `5MB`, rates as `5/s` or `30/m`, and shares as `5%` or `0.05`.',
    'What is there twice can be written once: anchors, aliases and merge keys (`<<: *base`) work here and in a mapping file.',
    '',
    '## Variables',
    '',
    '`${NAME}` in a value is replaced by an environment variable or, if that is not set, by a variable of the `.env` file beside the configuration.',
    '`${file:PATH}` is replaced by the text of a file, without its last line break. Write `$${` for a literal `${`. Variables are replaced after the',
    'file is parsed, so a value cannot change its structure, and the result is always text: set a number by its `FLEET_` variable. A mapping cannot',
    'contain variables. Messages quote the name of a variable, never its value.',
    '',
    'A `FLEET_` variable sets one key:',
    '',
    '- A text, such as a password, is taken as it is: quotes, `#` and `${` have no meaning in it.',
    '- Anything else is YAML: `FLEET_SITE_BAN=\'{ statuses: [403] }\'`.',
    '- An empty variable is unset, so the file counts; the plan and `doctor` note it. For a key that may be null, the text `null` clears what the file',
    '  says: `FLEET_RUN_MAX_COST=null` is no cap.',
    '',
    'This file and those that it names (`.env`, the mapping, `${file:PATH}`, the lists of `discover`), and the list of `--ids`, are in UTF-8. A byte order',
    'mark at the beginning of one, or of one of its lines, is no part of a value.',
  ];
  for (const [section, described] of Object.entries(schema.properties ?? {})) {
    const variable = `FLEET_${section}`.toUpperCase();
    lines.push('', `## ${section}`, '', described.description ?? '');
    // A list shows the keys of its elements, and is one variable.
    const rows = described.items
      ? keyRows(described.items, `${section}[]`, () => variable)
      : keyRows(objectOf(described), section, (key) => `${variable}_${key.toUpperCase()}`);
    if (rows.length > 0) lines.push('', '| Key | Environment | Default | Meaning |', '|---|---|---|---|', ...rows);
    else lines.push('', `Environment: \`${variable}\`.`);
  }
  return `${lines.join('\n')}\n\n${MAPPING_PAGE}`;
}

/** An optional section is the union of an object and null. */
const objectOf = (one: JsonSchema): JsonSchema => one.anyOf?.find((part) => part.properties) ?? one;

/** A row for each documented key of an object, and below it those of the objects in it, which share its variable. */
function keyRows(part: JsonSchema, prefix: string, variableOf: (key: string) => string): string[] {
  return Object.entries(part.properties ?? {}).flatMap(([key, value]) => {
    if (value.description === undefined) return [];
    const name = `${prefix}.${key}`;
    const required = part.required?.includes(key) && value.default === undefined;
    const fallback = required ? '**required**' : value.default === undefined || value.default === null ? '-' : code(typeof value.default === 'string' ? value.default : JSON.stringify(value.default));
    const choices = choicesOf(value);
    const meaning = [value.description, ...(choices.length > 0 ? [`One of ${choices.map((c) => code(String(c))).join(', ')}.`] : [])].join(' ').trim();
    return [`| \`${name}\` | \`${variableOf(key)}\` | ${fallback} | ${meaning} |`, ...keyRows(objectOf(value), name, () => variableOf(key))];
  });
}

const MAPPING_PAGE = `## Mapping

\`site.mapping\` maps the values of a page to the columns of \`results.table\`. It is the path of a YAML or JSON file, or the
mapping itself. [mapping.md](mapping.md) shows every option with examples. An editor can check a separate file against
[mapping.schema.json](mapping.schema.json).

\`\`\`yaml
fields:
  title: "h1"                                      # CSS selector: the trimmed text of the first match
  price: { css: ".price", attr: data-value, integer: true, required: true }
  brand: { json_ld: "brand.name" }                 # dotted path in the page's JSON-LD
  tags:  { css: "ul.tags li", all: true }          # every match, as a JSON array
\`\`\`
`;

function choicesOf(value: JsonSchema): unknown[] {
  return (value.enum ?? []).length > 0 ? value.enum! : [];
}

const code = (text: string): string => `\`${text}\``;

function errorsPage(): string {
  const rows = Object.entries(ERROR_KINDS).map(([name, kind]) => `| \`${name}\` | ${kind.exit} | ${kind.doc} |`);
  return [
    '# Errors',
    '',
    'Made from `shared/domain/errors.ts` by `npm run docs`; do not edit it by hand. Every error that reaches you has one of',
    'these codes (`error.code` with `--json`), says what happened and where, and names what to do.',
    '',
    '| Code | Exit | When |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

const files: Record<string, string> = {
  'configuration.md': configurationPage(),
  'fleet.schema.json': `${JSON.stringify(schema, null, 2)}\n`,
  'mapping.schema.json': `${JSON.stringify(mappingJsonSchema(), null, 2)}\n`,
  'errors.md': errorsPage(),
  'exit-codes.md': exitCodesPage(),
  'states.md': statesPage(),
  '../examples/grafana/crawlfleet.json': `${JSON.stringify(dashboard, null, 2)}\n`,
};

const check = process.argv.includes('--check');
let stale = 0;
for (const [name, text] of Object.entries(files)) {
  const path = fileURLToPath(new URL(name, import.meta.url));
  if ((existsSync(path) ? readFileSync(path, 'utf8') : null) === text) continue;
  if (check) {
    stale++;
    process.stderr.write(`docs/${name} is not in step with the code; run: npm run docs\n`);
  } else {
    writeFileSync(path, text);
    process.stdout.write(`wrote docs/${name}\n`);
  }
}
process.exitCode = stale > 0 ? 1 : 0;
