/** `orchestrator init`: writes fleet.yaml and mapping.yaml, with --url those of a shop; never over a file. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { shellWord } from '../../../shared/domain/shell-word.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { formOf, placeText, type ProposedField } from './propose-fields.ts';
import {
  fleetFileOf,
  mappingFileOf,
  proposeShop,
  type ShopProposal,
  valuesOf,
  writeProductTable,
} from './propose-shop.ts';
import { FLEET_TEMPLATE, MAPPING_TEMPLATE } from './templates.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { ask } from '../../cli/confirm.ts';
import type { Output } from '../../cli/output.ts';

export interface InitOptions {
  folder: string;
  /** Product pages to read; none writes the templates. */
  urls: readonly string[];
  yes: boolean;
}

export async function initCommand({ folder, urls, yes }: InitOptions, output: Output): Promise<ExitCode> {
  const target = resolve(folder);
  const [fleet, mapping, database] = ['fleet.yaml', 'mapping.yaml', 'fleet.db'].map((name) => join(target, name)) as [
    string,
    string,
    string,
  ];
  assertNew(urls.length > 0 ? [fleet, mapping, database] : [fleet, mapping]);
  const shop = urls.length > 0 ? await chooseShop(await proposeShop(urls), yes, output) : null;
  try {
    makeFolder(target);
    writeFileSync(fleet, shop ? fleetFileOf(shop) : FLEET_TEMPLATE);
    writeFileSync(mapping, shop ? mappingFileOf(shop) : MAPPING_TEMPLATE);
    if (shop) await writeProductTable(database, shop);
  } catch (error) {
    throw new AppError('folder-unwritable', `cannot write into ${target}: ${describeError(error)}`, {
      hint: 'Name a folder that you may write to: orchestrator init FOLDER',
    });
  }
  const written = [fleet, mapping, ...(shop ? [database] : [])];
  output.line(`Wrote ${written.join(' and ')}.`);
  for (const line of shop ? nextOfShop(fleet, shop) : nextOfTemplate(fleet)) output.line(line);
  output.document({ written, ...(shop ? documentOf(shop) : {}) });
  return EXIT.complete;
}

const documentOf = ({ template, own, ids, fields, render, notes }: ShopProposal) => ({
  productUrl: template,
  ...own,
  ids,
  render,
  notes,
  fields: fields.map((field) => ({
    name: field.name,
    source: formOf(field),
    values: field.values,
    doubt: field.doubt,
  })),
});

const nextOfTemplate = (fleet: string): string[] => [
  'Next: edit them, see what a product page gives with',
  `  orchestrator extract --config ${shellWord(fleet)} --url URL`,
  'and look at the plan with',
  `  orchestrator plan --config ${shellWord(fleet)} --deadline 4h --dry-run`,
];

const nextOfShop = (fleet: string, { ids }: ShopProposal): string[] => [
  `fleet.db has a table of ${ids.length === 1 ? 'one product' : `${ids.length} products`}: those of the pages. Add yours, or set database.url and products.query.`,
  'Next: a first dry run on this machine, which asks the shop for these pages only:',
  `  orchestrator run --config ${shellWord(fleet)} --deadline 5m --dry-run`,
];

function assertNew(files: readonly string[]): void {
  const existing = files.filter((file) => existsSync(file));
  if (existing.length === 0) return;
  throw new AppError(
    'usage',
    `${existing.join(' and ')} ${existing.length === 1 ? 'exists' : 'exist'} already; nothing was written`,
    { hint: 'Move it away, or name another folder: orchestrator init FOLDER' },
  );
}

/** Shows what the pages give, and asks what to leave out. */
async function chooseShop(shop: ShopProposal, yes: boolean, output: Output): Promise<ShopProposal> {
  const head = ['field', 'from', ...shop.ids.map((id) => `product ${id}`)];
  const rows = shop.fields.map((field) => [field.name, sourcesText(field), ...valuesOf(field).map(valueText)]);
  output.line(
    shop.own === null
      ? `A product page is ${shop.template}`
      : `Each product has its own URL, on ${shop.own.hosts.join(' and ')}`,
  );
  output.line();
  output.line(renderTable(head, rows));
  output.line();
  for (const note of shop.notes) output.line(`! ${note}`);
  if (yes || output.json || !process.stdin.isTTY || !process.stdout.isTTY) return shop;
  const answer = await ask('Fields to leave out (names, or Enter for none): ');
  const without = new Set(answer.split(/[\s,]+/));
  return { ...shop, fields: shop.fields.filter(({ name }) => !without.has(name)) };
}

const SHOWN = 40;

const sourcesText = ({ sources }: ProposedField): string => sources.map(placeText).join(', else ');

function valueText(value: unknown): string {
  const text = value === null ? '-' : typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text;
}

/** Folder by folder: on a file system that allows none, such as /proc, Node's own recursion never ends. */
function makeFolder(path: string): void {
  if (existsSync(path)) return void readdirSync(path);
  makeFolder(dirname(path));
  mkdirSync(path);
}
