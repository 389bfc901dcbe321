/** Settings from the environment: a variable `FLEET_…` gives one key. */
import { parse as parseYamlValue } from 'yaml';
import { z } from 'zod';
import { configSchema } from './schema.ts';

/** Path by variable: FLEET_RUN_MAX_COST → run.max_cost; a section that is a list is one: FLEET_NOTIFY. */
function environmentNames(): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const [section, schema] of Object.entries(configSchema.shape)) {
    const keys = Object.keys(sectionShape(schema));
    if (keys.length === 0) names.set(`FLEET_${section}`.toUpperCase(), [section]);
    for (const key of keys) names.set(`FLEET_${section}_${key}`.toUpperCase(), [section, key]);
  }
  return names;
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

/** The settings that variables give, by variable; adds to `faults` those that name none. */
export function environmentValues(
  environment: Readonly<Record<string, string | undefined>>,
  faults: string[],
): { name: string; path: string[]; value: unknown }[] {
  const names = environmentNames();
  const values: { name: string; path: string[]; value: unknown }[] = [];
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith('FLEET_') || text === undefined) continue;
    const path = names.get(name);
    // A misspelt variable would silently run the crawl with another value.
    if (!path) faults.push(`environment ${name}: no such setting`);
    else values.push({ name, path, value: readEnvironmentText(text) });
  }
  return values;
}

/** Lists and numbers are parsed as YAML; everything else stays text. */
function readEnvironmentText(text: string): unknown {
  try {
    return parseYamlValue(text);
  } catch {
    return text;
  }
}
