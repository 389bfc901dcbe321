/**
 * Writes the documents that are made from code: configuration.md and fleet.schema.json from the configuration's schema,
 * mapping.schema.json from the forms of a mapping, errors.md and exit-codes.md from their tables, states.md from the state tables, the Grafana
 * dashboard from its typed form. With --check it writes nothing and fails when a file on disk differs.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { mappingJsonSchema } from '../orchestrator/app/config/json-schema.ts';
import { configSchema } from '../orchestrator/app/config/schema.ts';
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

const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;

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
    'Made from `orchestrator/app/config/schema.ts` by `npm run docs`; do not edit it by hand.',
    '',
    'One YAML file, `fleet.yaml` unless `--config` names another. A flag wins over an environment variable, a variable over',
    'the file, the file over the default. Unknown keys and unknown `FLEET_` variables are refused; all faults are listed at',
    'once with their lines, with exit code 4. `orchestrator init` writes a commented file to start from; an editor can check',
    'yours against [fleet.schema.json](fleet.schema.json).',
    '',
    'Durations are written `200ms`, `10s`, `4h`, `1h30m`; sizes `500KB`, `5MB`; rates `5/s`, `30/m`; shares `5%` or `0.05`.',
    '',
    'Flags that set a key: `--deadline` (`run.deadline`), `--max-cost` (`run.max_cost`). `--config` can also be given as `FLEET_CONFIG`.',
    '',
    '## Variables',
    '',
    '`${NAME}` in a value stands for a variable of the environment, or of a `.env` beside the file (the environment wins), and `${file:PATH}` for the text of a file without its last line break; `$${` is `${` itself.',
    'They are filled in after the file is parsed, so no value can change its structure, and give text: numbers are set by their `FLEET_` variable. A mapping has none. Messages quote the name, not the value.',
    '',
    'A key that this version does not act on is refused when it is set to something it would ignore, or named in the plan.',
  ];
  for (const [section, described] of Object.entries(schema.properties ?? {})) {
    // A list shows the keys of its elements, and is one variable.
    const part = described.items ?? described;
    const variable = `FLEET_${section}`.toUpperCase();
    const nameOf = (key: string): string => (part === described ? `${section}.${key}` : `${section}[].${key}`);
    const variableOf = (key: string): string => (part === described ? `${variable}_${key.toUpperCase()}` : variable);
    lines.push('', `## ${section}`, '', described.description ?? '', '', '| Key | Environment | Default | Meaning |', '|---|---|---|---|');
    for (const [key, value] of Object.entries(part.properties ?? {})) {
      const required = part.required?.includes(key) && value.default === undefined;
      const fallback = required ? '**required**' : value.default === undefined || value.default === null ? '-' : code(typeof value.default === 'string' ? value.default : JSON.stringify(value.default));
      const choices = choicesOf(value);
      const meaning = [value.description ?? '', ...(choices.length > 0 ? [`One of ${choices.map((c) => code(String(c))).join(', ')}.`] : [])].join(' ').trim();
      lines.push(`| \`${nameOf(key)}\` | \`${variableOf(key)}\` | ${fallback} | ${meaning} |`);
    }
  }
  return `${lines.join('\n')}\n\n${MAPPING_PAGE}`;
}

const MAPPING_PAGE = `## Mapping

\`site.mapping\` says which values of a page become which columns of \`results.table\`: the path of a YAML or JSON file, or the
mapping in place. [mapping.md](mapping.md) shows every option with examples; an editor can check a file of its own against
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
