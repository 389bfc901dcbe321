/** The shop of the fleet bench, a process of its own: what a busy bench does must not distort its times. */
import { startBenchShop } from '../bench-shop.ts';
import { RECORD_PAGE, TIMES_PATH } from './record-page.ts';

/** When each page was requested, in ms since 1970 with fractions, by address. */
const times: Record<string, number[]> = {};

const shop = await startBenchShop(RECORD_PAGE, ({ url, socket }, response) => {
  if (url === TIMES_PATH) response.end(JSON.stringify(times));
  else if (url === '/robots.txt') response.writeHead(404).end();
  else {
    (times[socket.remoteAddress!] ??= []).push(performance.timeOrigin + performance.now());
    return false;
  }
  return true;
});
console.log(shop.url);
process.stdin.resume().once('end', () => shop.stop());
