/** The proof of the pace: `verify` over the request logs of a large run. */
import { fileURLToPath } from 'node:url';
import { tempDir } from '../../test/support/temp-dir.ts';
import { type Bench, measureProgram } from '../frame.ts';

const SIZE = { requests: 3_000_000, instances: 8, hosts: 50_000 };
const MAX_MS = 60_000;
const MAX_RSS_MB = 300;
const CASE = fileURLToPath(new URL('requests-case.ts', import.meta.url));

export const bench: Bench = {
  title: 'The request logs of 3,000,000 requests to 50,000 hosts',
  async run() {
    const folder = tempDir('crawlfleet-bench-requests-');
    try {
      const args = [...Object.values(SIZE).map(String), folder.path];
      const write = await measureProgram(CASE, ['write', ...args]);
      const verify = await measureProgram(CASE, ['verify', ...args]);
      const unpack = await measureProgram(CASE, ['unpack', ...args]);
      const { verifyMs } = JSON.parse(verify.stdout) as { verifyMs: number };
      const { unpackMs, textBytes, packedBytes } = JSON.parse(unpack.stdout) as Record<string, number>;
      const figures = {
        verifyMs,
        unpackMs: unpackMs!,
        maxRssMb: verify.maxRssBytes / 1e6,
        textBytesPerRequest: textBytes! / SIZE.requests,
        packedBytesPerRequest: packedBytes! / SIZE.requests,
        writeCpuUsPerRequest: (write.cpuMs * 1_000) / SIZE.requests,
      };
      return {
        about:
          'The logs of 8 instances in a run with many hosts, each of which has two owners one after the other; an object for each 1,000 requests, in files of this machine. `verify` reads them, compares hashes and checks every gap, and every owner with the next. `unpack` is what reading and ' +
          'unpacking the objects takes by itself.',
        rows: [{ name: '3,000,000 requests', figures }],
        ratios: [
          { name: `verify / ${MAX_MS / 1_000} s`, value: verifyMs / MAX_MS, target: 'at most 1' },
          {
            name: `memory of the process / ${MAX_RSS_MB} MB`,
            value: figures.maxRssMb / MAX_RSS_MB,
            target: 'at most 1',
          },
          { name: 'verify / unpacking the objects', value: verifyMs / unpackMs! },
        ],
      };
    } finally {
      folder.remove();
    }
  },
};
