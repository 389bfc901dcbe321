/** Fetches an instance's program as the instance would: from its own address, with retries, checked by its hash. */
import { createHash } from 'node:crypto';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { backoffMs } from '../../shared/domain/backoff.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';

/** A bundle is below a megabyte, or 50 with Node; this only keeps a wrong URL from filling the memory. */
const MAX_BYTES = 128_000_000;
/**
 * The retries, as in the user data: after any error except a rejected URL (400-404), doubling the pause each time, but
 * with a tenth of the pauses.
 */
const RETRIES = 6;
const PAUSES = { firstMs: 100, maxMs: 3_200 };

export interface BundleRequest {
  url: string;
  sha256: string;
  /** Source address of the request. */
  localAddress: string;
  signal: AbortSignal;
  clock: Clock;
  /** Called for each failed attempt that will be retried. */
  onRetry: (problem: string) => void;
}

/** The archive's bytes; throws when they cannot be fetched, and without a retry when the hash does not match. */
export async function fetchBundle(request: BundleRequest): Promise<Buffer> {
  const body = await downloadPatiently(request);
  const sha256 = createHash('sha256').update(body).digest('hex');
  if (sha256 !== request.sha256)
    throw new Error(`the bundle has SHA-256 ${sha256}, the user data says ${request.sha256}`);
  return body;
}

async function downloadPatiently(request: BundleRequest): Promise<Buffer> {
  const { clock, signal, onRetry } = request;
  for (let retry = 0; ; retry++) {
    try {
      return await download(request);
    } catch (error) {
      if (retry === RETRIES || signal.aborted || error instanceof WrongUrl) throw error;
      onRetry(describeError(error));
      await clock.sleep(backoffMs(retry, PAUSES), signal);
    }
  }
}

class WrongUrl extends Error {}

const faultOf = (status: number, message: string): Error =>
  status >= 400 && status <= 404 ? new WrongUrl(message) : new Error(message);

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
            faultOf(
              response.statusCode ?? 0,
              `the bundle's URL answers ${response.statusCode}: ${Buffer.concat(chunks).toString('utf8', 0, 500)}`,
            ),
          );
      });
    });
    request.on('timeout', () => request.destroy(new Error('the bundle did not come within 30 s')));
    request.on('error', reject);
  });
}
