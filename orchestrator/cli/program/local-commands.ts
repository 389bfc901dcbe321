/** Commands to test things before a run: a page, a run on a virtual clock, an AWS endpoint on this machine. */
import type { ExtractFlags } from '../../core/trial/trial-input.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration } from './feature.ts';
import { flag, optionalConfigFlag } from './flags.ts';
import { readCount, readPort } from './readers.ts';

export const LOCAL_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'extract',
    help: [
      'docs/mapping.md',
      'extract --url https://shop.example/item/P1',
      'extract --id P1',
      'extract --mapping mapping.yaml --file page.html --field price',
    ],
    description: 'read one page with a mapping and show what each field gives, step by step',
    options: [
      flag('-m, --mapping <file>', 'mapping file (default: the one of the configuration)'),
      flag('--url <url>', 'get this page, and further pages of the product, from this machine'),
      flag('--id <id>', 'get the page of this product, as the configuration requests it, and further ones'),
      flag('--pages <n>', 'with --url or --id: how many pages of the product to read (default: 3)', readCount),
      flag('--file <file>', 'read a saved page'),
      flag('--url-of <url>', 'with --file: the address the page was saved from'),
      flag('--field <name>', 'show this field only'),
      flag('--render <how>', 'how to get the page').choices(['http', 'browser']),
      flag('--user-agent <text>', 'who you say you are, with a link'),
      optionalConfigFlag('take mapping and site settings from here'),
    ],
    async load() {
      const { extractCommand } = await import('../commands/extract.ts');
      return (given: ExtractFlags, output: Output) =>
        extractCommand({ ...given, chromiumPath: process.env.CRAWLFLEET_CHROMIUM }, output);
    },
  },
  {
    name: 'sandbox',
    help: ['docs/sandbox.md', 'sandbox', 'sandbox --port 0'],
    description: 'an AWS endpoint (EC2, ELBv2, S3) on this machine, until Ctrl-C',
    options: [
      flag('-p, --port <port>', 'port of the endpoint; 0 for any free one', readPort).default(4566),
      flag('--data <folder>', 'where it keeps its state').default('.crawlfleet/sandbox/standalone'),
    ],
    load: async () => (await import('../commands/sandbox.ts')).sandboxCommand,
  },
];
