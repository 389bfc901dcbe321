/** The name that this program was called by. What it advises uses that name, so that it can be pasted. */
import { basename } from 'node:path';

/** The names of the program in package.json. */
export const NAMES = ['orchestrator', 'crawlfleet'] as const;
const [WRITTEN] = NAMES;

/** The program itself, for messages; anything but one of its names, such as a file of a checkout, is its first name. */
export const programName = (file = process.argv[1] ?? ''): string =>
  NAMES.find((name) => name === basename(file)) ?? WRITTEN;

/** @param npx as the launcher notes it in CRAWLFLEET_NPX */
export const typedName = (file = process.argv[1] ?? '', npx = process.env.CRAWLFLEET_NPX): string =>
  npx === undefined ? programName(file) : `npx ${programName(file)}`;

/** A text that names our commands, with the name that was typed. */
export const asTyped = (text: string, name = typedName()): string =>
  name === WRITTEN ? text : text.replaceAll(/(?<![\w/.-])orchestrator (?=[a-z[-])/g, `${name} `);
