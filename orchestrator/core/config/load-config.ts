/** The configuration: flag > environment (FLEET_…) > file > default. Lists all faults at once, with their lines. */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { columnsOf, type Mapping } from '../../../shared/domain/mapping.ts';
import { type Section, schemaWith, type SectionValues } from './section.ts';
import { type ConfigValues, MAX_IN_REGION } from './schema.ts';
import { environmentValues, sectionShape, settingsBy, withoutDefault, withoutEmpty } from './environment.ts';
import { denyLinesOf, findFollowFaults } from './follow-section.ts';
import { findRequestFaults } from './request-section.ts';
import { siteSection } from './site-section.ts';
import { type MappingFault, plainIssue, unknownKey } from './faults.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { DiscoverSettings } from '../model/discovery.ts';
import { describeUnreadable, type MappingFile, readMappingFile, readMapping } from './read-mapping.ts';
import { readTextFile } from './text-file.ts';
import { findUserHeaderFaults } from './user-headers.ts';
import { fillVariables, readDotEnv, unescaped } from './variables.ts';
import { readYaml, type YamlSource } from './yaml-source.ts';
import { compilePattern, findPatternFault } from '../../../shared/adapters/steps/regex.ts';
import { hasOwnUrls, templatesOf } from '../../../shared/domain/domains.ts';
import { findUrlFault } from '../../../shared/domain/own-url.ts';
import { findIdFault } from '../../../shared/domain/product.ts';
import type { DataFeature } from '../db/data-feature.ts';

export interface Config extends SectionValues {
  values: ConfigValues;
  mapping: Mapping;
  /** Absolute path of the file; relative paths in it are relative to its folder. */
  file: string;
  /** The lines of `site.follow.deny`. Omitted: none. */
  denyLines?: readonly string[];
  /** Paths of the mapping that find nothing on any page, one line each. Omitted: none. */
  misspelt?: readonly string[];
  /** What the user should know of where the values come from, one line each. Omitted: nothing. */
  notes?: readonly string[];
  /** The features of the program that has read it. */
  features: readonly DataFeature[];
  /** What `orchestrator discover` finds URLs by; omitted for other commands. */
  discovery?: DiscoverSettings;
  /** The most requests of the instance, for a series of `orchestrator probe`. */
  maxRequests?: number;
}

/** The environment variables that settings are read from. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A value given on the command line, such as `--deadline 4h`. */
export interface FlagValue {
  path: readonly string[];
  flag: string;
  value: string | number;
}

interface LoadConfigOptions {
  configPath: string;
  environment: Environment;
  flags?: readonly FlagValue[];
  /** Those whose sections the file may have. */
  features: readonly (DataFeature & { sections?: readonly Section<unknown>[] })[];
}

type Origin = { kind: 'file' } | { kind: 'flag' | 'environment'; name: string };

/** The environment wins over a `.env` beside the file. */
export function loadConfig(options: LoadConfigOptions): Config {
  const { configPath: path, environment: given, flags = [] } = options;
  const sections = options.features.flatMap((feature) => feature.sections ?? []);
  const schema = schemaWith(sections);
  const variableSettings = settingsBy([schema, ...sections.flatMap(({ options: { old } }) => old?.schema ?? [])]);
  const file = resolve(path);
  const own = withoutEmpty(given, variableSettings);
  const beside = withoutEmpty(readDotEnv(dirname(file)), variableSettings);
  const environment = { ...beside.set, ...own.set };
  const notes = notesOf([...own.empty, ...beside.empty].filter((name) => environment[name] === undefined));
  const source = readYaml(readText(file, path));
  if (source.faults.length > 0) throw configError(path, source.faults);
  if (source.value !== null && (typeof source.value !== 'object' || Array.isArray(source.value))) {
    throw configError(path, ['line 1: must be a mapping with site, products and database']);
  }

  const tree = (source.value ?? {}) as Record<string, unknown>;
  const origins = new Map<string, Origin>();
  const faults: string[] = [];
  const settings = environmentValues(environment, variableSettings, faults);
  const isText = ({ value }: { value: unknown }): boolean => typeof value === 'string';
  for (const { path: keys, value } of settings.filter((setting) => !isText(setting))) put(tree, keys, value);
  const variables = fillVariables(tree, { environment, folder: dirname(file) });
  // A text is taken whole: in a password `${` is no variable.
  for (const { path: keys, value } of settings.filter(isText)) put(tree, keys, value);
  for (const { name, path: keys } of settings) origins.set(keys.join('.'), { kind: 'environment', name });
  for (const { flag, path: keys, value } of flags) {
    put(tree, keys, value);
    origins.set(keys.join('.'), { kind: 'flag', name: flag });
  }

  faults.push(...variables.faults.map((f) => `${place(f.path, source, origins)}: ${f.message}`));
  const old = sections.map((section) => section.options.old?.take(tree) ?? null);
  for (const one of old) if (one !== null) notes.push(`${place(one.path, source, origins)} ${one.note}`);
  const parsed = schema.safeParse(tree, { error: plainIssue });
  faults.push(
    ...[...(parsed.error?.issues ?? []), ...old.flatMap((one) => one?.issues ?? [])]
      .filter(({ path }) => !variables.faults.some((f) => f.path.join('.') === path.join('.')))
      .flatMap((issue) => describeIssue(issue, { schema, source, origins }))
      .map(variables.hide),
  );
  const ownFaults = faults.length;
  const { mapping, misspelt } = loadMapping(tree, file, source, faults);
  if (!parsed.success || faults.length > 0) {
    const mappingFaults = faults.length - ownFaults;
    faults.push(...findUrlFaults(tree.site, mapping).map((f) => `${place(f.path, source, origins)}: ${f.message}`));
    throw configError(path, faults, mappingFaults, notes);
  }
  faults.push(...findContradictions(parsed.data, source));
  const read = new Map<string, unknown>(Object.entries(parsed.data));
  const placed = [
    ...sections.flatMap(({ key, options }) => options.findFaults?.(read.get(key), parsed.data) ?? []),
    ...findResultNameFaults(parsed.data),
  ];
  faults.push(...placed.map((f) => `${place(f.path, source, origins)}: ${f.message}`));
  const sentFaults = findUserHeaderFaults(parsed.data.site, (text) => variables.sent.get(text) ?? unescaped(text));
  const siteFaults = [...findSiteFaults(parsed.data.site, mapping), ...sentFaults];
  faults.push(...siteFaults.map((f) => `${place(f.path, source, origins)}: ${f.message}`));
  if (faults.length > 0) throw configError(path, faults, 0, notes);
  const { database, site } = parsed.data;
  const denyLines = denyLinesOf(site.follow.deny, file, 'site.follow.deny');
  return {
    values: { ...parsed.data, database: { url: resolveSqlite(database.url, dirname(file)) } },
    sections: new Map(sections.map(({ key }, i) => [key, old[i] ? old[i].addTo(read.get(key)) : read.get(key)])),
    features: options.features,
    mapping,
    file,
    ...(denyLines.length > 0 ? { denyLines } : {}),
    ...(misspelt.length > 0 ? { misspelt } : {}),
    ...(notes.length > 0 ? { notes } : {}),
  };
}

/** @param empty variables that set nothing */
function notesOf(empty: readonly string[]): string[] {
  if (empty.length === 0) return [];
  const [names, are] = [empty.join(', '), empty.length === 1 ? 'is' : 'are'];
  return [`${names} ${are} empty, which counts as unset; the text null clears a setting that may be null`];
}

/** Throws `config-invalid` for paths that find nothing on any page. A run only warns of them: no night is lost. */
export function refuseMisspelt({ file, misspelt = [] }: Config): void {
  if (misspelt.length > 0) throw configError(file, misspelt, misspelt.length);
}

/** A relative SQLite path is relative to the folder of the configuration, like every path in it. */
function resolveSqlite(url: string, folder: string): string {
  const path = /^sqlite:(?!\/\/|:memory:)(.+)$/.exec(url)?.[1];
  return path === undefined ? url : `sqlite:${resolve(folder, path)}`;
}

function readText(file: string, path: string): string {
  try {
    return readTextFile(file);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('config-missing', `cannot read the configuration ${path}: ${describeError(error)}`, {
      hint: 'Name it with --config, or write one with: orchestrator init',
    });
  }
}

function put(tree: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let node = tree;
  for (const key of path.slice(0, -1)) {
    const child = node[key];
    if (typeof child === 'object' && child !== null) node = child as Record<string, unknown>;
    else node = node[key] = {} as Record<string, unknown>;
  }
  node[path.at(-1)!] = value;
}

interface IssueContext {
  schema: z.ZodObject;
  source: YamlSource;
  origins: Map<string, Origin>;
}

function describeIssue(issue: z.core.$ZodIssue, at: IssueContext): string[] {
  const { schema, source, origins } = at;
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, issue.path);
    return issue.keys.map((key) => `${place([...issue.path, key], source, origins)}: ${unknownKey(key, known)}`);
  }
  if (issue.code === 'invalid_union') {
    // A value that has the form of one option, with faults inside it.
    const inside = issue.errors.find((option) => option.length > 0 && option.every(({ path }) => path.length > 0));
    if (inside !== undefined)
      return inside.flatMap((one) => describeIssue({ ...one, path: [...issue.path, ...one.path] }, at));
  }
  return [`${place(issue.path, source, origins)}: ${issue.message}`];
}

function keysAt(whole: z.ZodObject, path: readonly PropertyKey[]): string[] {
  let schema: z.ZodType = whole;
  for (const step of path) {
    const list = withoutDefault(schema);
    const child = list instanceof z.ZodArray ? (list.element as z.ZodType) : sectionShape(schema)[String(step)];
    if (!child) return [];
    schema = child;
  }
  return Object.keys(sectionShape(schema));
}

function place(path: readonly PropertyKey[], source: YamlSource, origins: Map<string, Origin>): string {
  const name = path.map(String).join('.');
  const origin = origins.get(name);
  if (origin?.kind === 'flag') return `flag ${origin.name}`;
  if (origin?.kind === 'environment') return `environment ${origin.name}`;
  return `line ${source.lineOf(path)}: ${name || 'file'}`;
}

function loadMapping(
  tree: Record<string, unknown>,
  file: string,
  source: YamlSource,
  faults: string[],
): Omit<MappingFile, 'faults'> {
  const value = (tree.site as Record<string, unknown> | undefined)?.mapping;
  if (value === undefined || value === null) return { mapping: { pages: [] }, misspelt: [] };
  const line = ({ path, message }: MappingFault): string =>
    `${place(['site', 'mapping', ...path], source, new Map())}: ${message}`;
  if (typeof value !== 'string') {
    const read = readMapping(value);
    faults.push(...read.faults.map(line));
    return { mapping: read.mapping, misspelt: read.misspelt.map(line) };
  }
  try {
    const read = readMappingFile(resolve(dirname(file), value), value);
    faults.push(...read.faults);
    return read;
  } catch (error) {
    faults.push(line({ path: [], message: describeUnreadable(value, error) }));
    return { mapping: { pages: [] }, misspelt: [] };
  }
}

/** Faults that no single value shows. */
function findContradictions({ run, aws }: ConfigValues, source: YamlSource): string[] {
  const fault = (key: 'min_instances' | 'max_instances', message: string): string =>
    `line ${source.lineOf(['run', key])}: run.${key}: ${message}`;
  const most = MAX_IN_REGION * (aws.regions?.length ?? 1);
  return [
    ...(run.min_instances > run.max_instances ? [fault('min_instances', 'is more than run.max_instances')] : []),
    ...(run.max_instances > most
      ? [fault('max_instances', `must be at most ${most}, ${MAX_IN_REGION} in each region (aws.regions)`)]
      : []),
  ];
}

/** Longest name of a table in MySQL. */
const MAX_NAME_CHARS = 64;

/** The fault of a table's name for which the name of the table beside it, with `beside`, is too long. */
export function findNameFaults(path: MappingFault['path'], table: string, beside: string): MappingFault[] {
  if (table.slice(table.lastIndexOf('.') + 1).length + beside.length <= MAX_NAME_CHARS) return [];
  const message = `is too long: beside it goes ${table}${beside}, and a name has at most ${MAX_NAME_CHARS} characters`;
  return [{ path, message }];
}

function findResultNameFaults({ results, products, site }: ConfigValues): MappingFault[] {
  const beside = site.conditional ? '_validators' : results.history ? '_history' : products.recrawl ? '_crawls' : '';
  return findNameFaults(['results', 'table'], results.table, beside);
}

/** The most faults that are printed: more would scroll the first ones off the screen. */
const MAX_FAULTS = 50;
const MAX_FAULT_CHARS = 1_000;

/** `mappingFaults`: how many of the faults are about the mapping, which has its own docs page. */
function configError(
  path: string,
  faults: readonly string[],
  mappingFaults = 0,
  notes: readonly string[] = [],
): AppError {
  const unique = [...new Set(faults)];
  const lines = unique.slice(0, MAX_FAULTS).map((fault) => `  ${plain(fault, MAX_FAULT_CHARS)}`);
  if (unique.length > MAX_FAULTS) lines.push(`  and ${unique.length - MAX_FAULTS} more`);
  lines.push(...notes.map((note) => `  note: ${note}`));
  const pages = [
    ...(mappingFaults < faults.length ? ['keys: docs/configuration.md'] : []),
    ...(mappingFaults > 0 ? ['the mapping: docs/mapping.md'] : []),
  ];
  const what = mappingFaults === faults.length && mappingFaults > 0 ? `the mapping of ${path}` : path;
  const count = unique.length === 1 ? 'a fault' : `${unique.length} faults`;
  return new AppError('config-invalid', `${what} has ${count}:\n${lines.join('\n')}`, {
    hint: `Described in ${pages.join('; ')}`,
  });
}

const urlKeys = z.object({ product_url: siteSection.shape.product_url, request: siteSection.shape.request });

/** A URL without `{id}`, which would be the only fault found later, in a file that has others. */
function findUrlFaults(site: unknown, mapping: Mapping): MappingFault[] {
  const { data } = urlKeys.safeParse(site);
  return data === undefined ? [] : findRequestFaults({ ...data, render: 'http' }, mapping);
}

function findSiteFaults(site: ConfigValues['site'], mapping: Mapping): MappingFault[] {
  const { statuses, redirects, patterns } = site.ban;
  const isInProductUrl = (part: string): boolean =>
    templatesOf(site.product_url).some((template) => template.toLowerCase().includes(part.toLowerCase()));
  return [
    ...banFaults('statuses', statuses, (status) =>
      status >= 200 && status < 300 ? 'is the status of good pages' : null,
    ),
    ...banFaults('redirects', redirects, (part) =>
      isInProductUrl(part) ? 'is part of site.product_url, so it fits every product there' : null,
    ),
    ...banFaults('patterns', patterns, (pattern) => findPatternFault(pattern) ?? whyTooWide(pattern)),
    ...canaryFaults(site, mapping),
    ...findFollowFaults(site.product_url, site.follow),
    ...findRequestFaults(site, mapping),
    ...(site.hosts === 'any' ? anyHostFaults(site) : []),
  ];
}

/** What is about one site, and would be wrong or without effect at any other. */
function anyHostFaults(site: ConfigValues['site']): MappingFault[] {
  const none = (value: object): boolean => Object.keys(value).length === 0;
  const rules: Record<string, [boolean, string]> = {
    render: [site.render === 'http', 'must be http: an instance with a browser has one page at a time'],
    max_rate: [site.max_rate === null, 'is about the fleet and one site: here each host has its interval'],
    conditional: [!site.conditional, 'is not built for any hosts yet'],
    canaries: [site.canaries.length === 0, 'are pages of one site'],
    headers: [none(site.headers), 'would go to hosts that you do not know'],
    cookies: [none(site.cookies), 'would go to hosts that you do not know'],
    follow: [site.follow.hosts.length === 0, 'must have no hosts: each record has its own'],
  };
  return Object.entries(rules).flatMap(([key, [isFine, why]]) =>
    isFine ? [] : [{ path: ['site', key], message: `goes not with hosts: any: it ${why}` }],
  );
}

/** A rule that matches good pages would ban every address at its first one. */
const banFaults = <T>(key: string, rules: readonly T[], findFault: (rule: T) => string | null): MappingFault[] =>
  rules.flatMap((rule, i) => {
    const message = findFault(rule);
    return message === null ? [] : [{ path: ['site', 'ban', key, i], message }];
  });

const PLAIN_PAGE = '<!doctype html><html><head><title>Product</title></head><body><h1>Product</h1></body></html>';

const whyTooWide = (pattern: string): string | null =>
  ['', PLAIN_PAGE].some((page) => compilePattern(pattern).isIn(page)) ? 'fits every page' : null;

const MUST_BE_OWN = 'must be the URL of a product on one of site.hosts';

function canaryFaults({ canaries, product_url: urls }: ConfigValues['site'], mapping: Mapping): MappingFault[] {
  const names = new Set(columnsOf(mapping).map((c) => c.name));
  return canaries.flatMap(({ id, fields }, i) => {
    const path = ['site', 'canaries', i];
    const idFault = hasOwnUrls(urls) ? null : findIdFault(id);
    return [
      ...(idFault === null ? [] : [{ path: [...path, 'id'], message: `the product ID ${idFault}` }]),
      ...(idFault === null && findUrlFault(urls, id) !== null
        ? [{ path: [...path, 'id'], message: hasOwnUrls(urls) ? MUST_BE_OWN : 'leads out of site.product_url' }]
        : []),
      ...Object.keys(fields)
        .filter((name) => !names.has(name))
        .map((name) => ({ path: [...path, 'fields', name], message: 'the mapping has no field of this name' })),
    ];
  });
}
