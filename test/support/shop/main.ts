/**
 * The demo shop as a separate process, so that the crawl does not disturb the shop's measurements. Prints one JSON line
 * with its URL when it is ready; ends on SIGTERM or SIGINT, or, with --until-stdin-closes, when its stdin closes.
 */
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { createShopServer } from './shop-server.ts';

const { values } = parseArgs({
  options: {
    address: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    products: { type: 'string', default: '400' },
    seed: { type: 'string', default: '1' },
    linked: { type: 'string', default: 'false' },
    wiki: { type: 'string', default: '0' },
    'until-stdin-closes': { type: 'boolean', default: false },
  },
});

if (!/^127\.\d+\.\d+\.\d+$/.test(values.address)) {
  process.stderr.write(`the shop listens on 127.x.y.z only, not on ${values.address}\n`);
  process.exit(1);
}

const server = createShopServer({
  seed: Number(values.seed),
  products: Number(values.products),
  linked: values.linked === 'true',
  wiki: Number(values.wiki),
});
const end = (): void => {
  server.close();
  server.closeAllConnections();
  process.stdin.destroy();
};
process.once('SIGTERM', end);
process.once('SIGINT', end);
if (values['until-stdin-closes']) process.stdin.once('close', end).resume();

server.on('error', (error) => {
  process.stderr.write(`the shop cannot listen on ${values.address}:${values.port}: ${error.message}\n`);
  process.exitCode = 1;
  process.stdin.destroy();
});
server.listen(Number(values.port), values.address, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://${values.address}:${port}`, pid: process.pid })}\n`);
});
