/**
 * A program that accepts offers as the crawl API does and remembers them, for tests of the path between the main server
 * and an instance. `GET /held` lists its chunks; `POST /answer?status=409` sets its answer.
 */
import { createHash } from 'node:crypto';
import { HEADER } from '../../../shared/wire/signature.ts';
import { packArchive } from '../../../userdata/archive.ts';
import { TEST_BUNDLE_PORT } from '../../support/sandbox/test-bundle.ts';

const TAKER_PROGRAM = `
import { createServer } from 'node:http';
const imds = process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT;
const token = await (await fetch(imds + '/latest/api/token', { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } })).text();
const read = async (path) => (await fetch(imds + '/latest/' + path, { headers: { 'x-aws-ec2-metadata-token': token } })).text();
const id = await read('meta-data/instance-id');
const held = [];
let status = 202;
let well = true;
createServer(async (request, response) => {
  const url = new URL(request.url, 'http://x');
  response.setHeader('${HEADER.instance}', id);
  let body = '';
  for await (const chunk of request) body += chunk;
  const answer = (code, content) => { response.statusCode = code; response.end(JSON.stringify(content)); };
  if (url.pathname === '/healthz') return answer(well ? 200 : 503, { well });
  if (url.pathname === '/held') return answer(200, held);
  if (url.pathname === '/answer') { status = Number(url.searchParams.get('status')); return answer(200, {}); }
  if (url.pathname === '/well') { well = url.searchParams.get('is') === 'true'; return answer(200, {}); }
  if (request.method === 'POST') {
    const offer = JSON.parse(body);
    if (status === 409) return answer(409, { refused: 'share', room: 0 });
    if (status !== 202) return answer(status, { error: 'not now' });
    if (!held.includes(offer.chunk)) held.push(offer.chunk);
    return answer(202, { chunk: offer.chunk, run: 'run', slot: 0, epoch: 1, instanceId: id, held: held.length });
  }
  answer(404, {});
}).listen(${TEST_BUNDLE_PORT}, await read('meta-data/local-ipv4'));
process.on('SIGTERM', () => process.exit(0));
`;

export const TAKER = packArchive(Buffer.from(TAKER_PROGRAM));
export const TAKER_SHA256 = createHash('sha256').update(TAKER).digest('hex');
