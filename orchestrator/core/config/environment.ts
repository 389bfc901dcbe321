/** Settings from the environment: a variable `FLEET_…` gives one key. */
import { parse as parseYamlValue } from 'yaml';
import { z } from 'zod';
import { withoutMark } from './text-file.ts';

interface Setting {
  path: string[];
  schema: z.ZodType;
}

/** The settings by variable. */
type Settings = ReadonlyMap<string, Setting>;

/**
 * The variables of a configuration: FLEET_RUN_MAX_COST → run.max_cost; a section that is a list is one: FLEET_NOTIFY.
 */
export function settingsBy(schemas: readonly z.ZodObject[]): Settings {
  const settings = new Map<string, Setting>();
  for (const [section, schema] of schemas.flatMap(({ shape }) => Object.entries(shape as Record<string, z.ZodType>))) {
    const keys = Object.entries(sectionShape(schema));
    if (keys.length === 0) settings.set(`FLEET_${section}`.toUpperCase(), { path: [section], schema });
    for (const [key, one] of keys)
      settings.set(`FLEET_${section}_${key}`.toUpperCase(), { path: [section, key], schema: one });
  }
  return settings;
}

/** Keys of a section; none of a section that is one value. */
export function sectionShape(schema: z.ZodType): Record<string, z.ZodType> {
  const inner = withoutDefault(schema);
  return inner instanceof z.ZodObject ? inner.shape : {};
}

/** The schema itself, without its default and null. */
export function withoutDefault(schema: z.ZodType): unknown {
  let inner: unknown = schema;
  while (inner instanceof z.ZodPrefault || inner instanceof z.ZodDefault || inner instanceof z.ZodNullable)
    inner = inner.def.innerType;
  return inner;
}

type Variables = Readonly<Record<string, string | undefined>>;

const isEmpty = (text: string | undefined): boolean => text !== undefined && withoutMark(text).trim() === '';

/**
 * The variables without the empty ones that would set a key, and the names of those: Docker Compose and the like hand
 * over as empty what is not set.
 */
export function withoutEmpty(environment: Variables, settings: Settings): { set: Variables; empty: string[] } {
  const empty = Object.keys(environment).filter((name) => settings.has(name) && isEmpty(environment[name]));
  return { set: Object.fromEntries(Object.entries(environment).filter(([name]) => !empty.includes(name))), empty };
}

/** The settings that variables give, by variable; adds to `faults` those that name none. */
export function environmentValues(
  environment: Variables,
  settings: Settings,
  faults: string[],
): { name: string; path: string[]; value: unknown }[] {
  const values: { name: string; path: string[]; value: unknown }[] = [];
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith('FLEET_') || text === undefined) continue;
    const setting = settings.get(name);
    // A misspelt variable would silently run the crawl with another value.
    if (!setting) faults.push(`environment ${name}: no such setting`);
    else values.push({ name, path: setting.path, value: readText(withoutMark(text), setting.schema) });
  }
  return values;
}

/**
 * `null` for a key that may be null; the text itself for a key that takes text, unless it takes lists or objects too
 * and is given one; else YAML.
 */
function readText(text: string, schema: z.ZodType): unknown {
  if (text === 'null' && schema.safeParse(null).success) return null;
  const forms = formsOf(schema);
  if (forms.every((form) => form === 'text')) return text;
  const value = parseYaml(text);
  // What YAML takes for null, such as ~ or a comment, must not clear a limit.
  if (value === null || (forms.includes('text') && typeof value !== 'object')) return text;
  return value;
}

/** A number that is also taken as text, such as 5 for 5/s, is text: its reader is the same. */
function formsOf(schema: z.ZodType): ('text' | 'other')[] {
  const inner = withoutDefault(schema);
  if (inner instanceof z.ZodPipe) return formsOf(inner.in as z.ZodType);
  if (inner instanceof z.ZodUnion) {
    const forms = (inner.options as z.ZodType[]).flatMap((option) =>
      option instanceof z.ZodNumber ? [] : formsOf(option),
    );
    return forms.includes('text') ? forms : ['other'];
  }
  return TEXT_TYPES.includes((inner as z.ZodType).def.type) ? ['text'] : ['other'];
}

const TEXT_TYPES: readonly string[] = ['string', 'enum', 'literal'];

function parseYaml(text: string): unknown {
  try {
    return parseYamlValue(text);
  } catch {
    return text;
  }
}
