/** The input of `orchestrator extract`, from its flags and, if one is named or needed, the configuration. */
import type { Features } from '../feature.ts';
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { compilePattern } from '../../../shared/adapters/steps/regex.ts';
import { templatesOf } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { type PageRequest, PageRequests } from '../../../shared/adapters/requests/page-requests.ts';
import { findIdFault, productUrl } from '../../../shared/domain/product.ts';
import { bodyNamesProduct } from '../../../shared/adapters/requests/request-body.ts';

import { denyOf } from '../config/follow-section.ts';
import { type Config, type Environment, loadConfig, refuseMisspelt } from '../config/load-config.ts';
import { describeUnreadable, type MappingFile, readMappingFile } from '../config/read-mapping.ts';
import { readSiteSecrets } from '../config/user-headers.ts';
import { secretsIn, type SiteSettings } from '../../../shared/wire/site-settings.ts';
import { defaultSite, siteSettingsOf } from '../config/site-section.ts';

type TextFlag = 'configPath' | 'mapping' | 'url' | 'id' | 'file' | 'urlOf' | 'field' | 'userAgent';

export interface ExtractFlags extends Record<TextFlag, string | undefined> {
  render: 'http' | 'browser' | undefined;
  /** Maximum pages of the product to read; by default READ_PAGES. */
  pages: number | undefined;
  /** The browser to use; by default one is searched for. */
  chromiumPath: string | undefined;
  environment: Environment;
  features: Features;
}

/** Stands in for the address of a file; `.invalid` can never be a site. */
const UNKNOWN_PAGE = 'https://page.invalid/';
/** The same for the products of a site; a trial reads one page and needs none. */
const UNKNOWN_PRODUCT = `${UNKNOWN_PAGE}{id}`;

/** Pages of a product that are read unless told otherwise: enough to see whether the links are right. */
const READ_PAGES = 3;

/** Throws `usage` for flags that do not go together, and errors of reading the files. */
export function readTrialInput(flags: ExtractFlags) {
  checkPage(flags);
  const needsConfig = flags.configPath !== undefined || flags.mapping === undefined || flags.id !== undefined;
  const config = needsConfig ? readConfig(flags) : null;
  const mapping = flags.mapping === undefined ? config!.mapping : readMappingOf(flags.mapping);
  checkPatterns(mapping, flags);
  checkField(mapping, flags.field);
  const site = config === null ? null : siteSettingsOf(config.values.site);
  const settings = site ?? defaultSite(UNKNOWN_PRODUCT);
  const { file, ...request } = readPage(flags, { site: settings, mapping });
  const render = flags.render ?? (flags.file === undefined && site?.render === 'browser' ? 'browser' : 'http');
  if (flags.file !== undefined && render === 'browser')
    throw usage(
      '--render browser needs --url: a file is read as it is',
      'Save the page as the browser shows it, or name its --url.',
    );
  if (request.post !== undefined && render === 'browser')
    throw usage('this page is requested by POST, and a browser opens pages by GET', 'Leave out --render browser.');
  return {
    trial: {
      mapping,
      ...request,
      ...(flags.id === undefined ? {} : { id: flags.id }),
      file,
      site: {
        ...settings,
        ...(flags.userAgent === undefined ? {} : { userAgent: flags.userAgent }),
        render,
      },
      // A file is read without a request.
      ...(config !== null && site !== null && file === null ? secretsOf(config, site, flags.environment) : {}),
      chromiumPath: flags.chromiumPath ?? null,
    },
    /** What a trial of further pages needs beside robots.txt; null: none are read. */
    further: readsFurther(mapping, flags)
      ? { deny: config ? denyOf(config) : [], pages: flags.pages ?? READ_PAGES }
      : null,
    pageName: flags.file ?? (request.post ? `POST ${request.url} ${request.post.body}` : request.url),
    mappingName: flags.mapping ?? config!.file,
  };
}

/** A saved page stands alone; so does a page whose mapping finds no links. */
function readsFurther(mapping: Mapping, { file, pages }: ExtractFlags): boolean {
  if (file !== undefined && pages !== undefined)
    throw usage('--pages goes with --url or --id: a saved page has no further ones', 'Leave it out.');
  return file === undefined && pages !== 1 && mapping.pages.some(({ urlParsers }) => urlParsers.length > 0);
}

function secretsOf(
  { file }: Config,
  site: SiteSettings,
  environment: Environment,
): { secrets?: ReturnType<typeof readSiteSecrets> } {
  if (secretsIn(site).length === 0) return {};
  return { secrets: readSiteSecrets(site, { environment, folder: dirname(file) }) };
}

/** A product has a page; its ID also names it to the request of another one. */
function checkPage({ url, file, urlOf, id }: ExtractFlags): void {
  if ((file === undefined) === (url === undefined && id === undefined))
    throw usage(
      'name one page: --id ID, --url URL or --file page.html',
      'orchestrator extract --mapping mapping.yaml --url https://shop.example/item/1',
    );
  const idFault = id === undefined ? null : findIdFault(id);
  if (idFault !== null) throw usage(`the product ID of --id ${idFault}`, 'Give the ID as products.query yields it.');
  if (url !== undefined && urlOf !== undefined)
    throw usage('--url-of goes with --file', 'With --url the address is known.');
  const address = url ?? urlOf ?? UNKNOWN_PAGE;
  const parsed = URL.parse(address);
  if (!parsed || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:'))
    throw usage(`${address} is not an http or https URL`, 'Give the whole address, with https://.');
  if (file !== undefined && !existsSync(file)) throw usage(`there is no file ${file}`, `Looked for ${resolve(file)}.`);
}

/** The page and its request: a product as the site says it, another page as its section says it. */
function readPage(
  { url, file, urlOf, id }: ExtractFlags,
  settings: { site: SiteSettings; mapping: Mapping },
): PageRequest & { file: string | null } {
  if (file !== undefined) return { url: urlOf ?? UNKNOWN_PAGE, file: resolve(file) };
  const { productUrl: templates } = settings.site;
  const requests = new PageRequests(settings, compilePattern);
  if (url === undefined) return { ...requests.ofProduct(productUrl(templates, id!), id!), file: null };
  if (id === undefined && namesNoProduct(url, settings, requests))
    throw usage(`the request to ${url} is made for a product`, 'Say for which one: --id ID');
  return { ...requests.ofLink(url, id ?? ''), file: null };
}

/** True for the URL of all products, and for one whose section puts the ID in the body. */
function namesNoProduct(url: string, { site }: { site: SiteSettings }, requests: PageRequests): boolean {
  const isOfAll = templatesOf(site.productUrl).includes(url);
  return isOfAll
    ? bodyNamesProduct(requests.templateOf(url))
    : requests.ofLink(url, 'a').post?.body !== requests.ofLink(url, 'b').post?.body;
}

function readConfig({ configPath, mapping, environment, features }: ExtractFlags): Config {
  const path = configPath ?? 'fleet.yaml';
  if (configPath === undefined && mapping === undefined && !existsSync(path))
    throw usage(
      'name a mapping: --mapping mapping.yaml, or --config fleet.yaml',
      'orchestrator init writes both to start from.',
    );
  const config = loadConfig({ configPath: path, environment, features });
  if (mapping === undefined) refuseMisspelt(config);
  return config;
}

function readMappingOf(path: string): Mapping {
  const { mapping, faults, misspelt } = openMapping(path);
  if (faults.length + misspelt.length === 0) return mapping;
  const unique = [...new Set([...faults, ...misspelt])];
  throw new AppError(
    'config-invalid',
    `the mapping has ${unique.length === 1 ? 'a fault' : `${unique.length} faults`}:\n${unique.map((f) => `  ${f}`).join('\n')}`,
    { hint: 'docs/mapping.md shows every option.' },
  );
}

function openMapping(path: string): MappingFile {
  try {
    return readMappingFile(path, path);
  } catch (error) {
    throw new AppError('config-missing', describeUnreadable(path, error), {
      hint: 'orchestrator init writes one to start from.',
    });
  }
}

/** Refuses a file without its address where it is unknown which mapping applies. */
function checkPatterns(mapping: Mapping, { file, urlOf }: ExtractFlags): void {
  if (file === undefined || urlOf !== undefined) return;
  if (mapping.pages.every((page) => page.urlPatterns.length > 0))
    throw usage(
      'the mapping has url_patterns, so the address of the file counts',
      'Say which page it is: --url-of https://shop.example/item/1',
    );
}

function checkField(mapping: Mapping, field: string | undefined): void {
  if (field === undefined) return;
  const names = new Set(mapping.pages.flatMap((page) => page.fields.map(({ name }) => name)));
  if (!names.has(field)) throw usage(`the mapping has no field ${field}`, `It has ${[...names].join(', ')}.`);
}

const usage = (message: string, hint: string): AppError => new AppError('usage', message, { hint });
