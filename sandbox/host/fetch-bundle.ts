/** Fetches an instance's program as the instance would: from its own address, with a limit, checked by its hash. */
import { createHash } from 'node:crypto';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

/** A bundle is one or two megabytes; this only keeps a wrong URL from filling the memory. */
const MAX_BYTES = 64_000_000;

export interface BundleRequest {
  url: string;
  sha256: string;
  /** Address the request comes from. */
  localAddress: string;
  signal: AbortSignal;
}

/** The program's bytes; throws when they cannot be had or are not what the hash says. */
export async function fetchBundle(request: BundleRequest): Promise<Buffer> {
  const body = await download(request);
  const sha256 = createHash('sha256').update(body).digest('hex');
  if (sha256 !== request.sha256)
    throw new Error(`the bundle has SHA-256 ${sha256}, the user data says ${request.sha256}`);
  return body;
}

function download({ url, localAddress, signal }: BundleRequest): Promise<Buffer> {
  const get = url.startsWith('https:') ? getHttps : getHttp;
  return new Promise((resolve, reject) => {
    const request = get(url, { localAddress, signal, agent: false, timeout: 30_000 }, (response) => {
      const chunks: Buffer[] = [];
      let sizeBytes = 0;
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        sizeBytes += chunk.length;
        if (sizeBytes > MAX_BYTES) request.destroy(new Error(`the bundle is larger than ${MAX_BYTES} bytes`));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks));
        else
          reject(
            new Error(
              `the bundle's URL answers ${response.statusCode}: ${Buffer.concat(chunks).toString('utf8', 0, 500)}`,
            ),
          );
      });
    });
    request.on('timeout', () => request.destroy(new Error('the bundle did not come within 30 s')));
    request.on('error', reject);
  });
}
