/** Where a resumed run listens for its instances, and which process is in the way when it cannot. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { AppError } from '../../../shared/domain/errors.ts';
import type { RunSettings } from '../../control/model/run-settings.ts';
import { findPortHolder } from '../../server/port-holder.ts';

/**
 * The callback address the run's instances were launched with: they call it now, whatever the configuration says by
 * now, which may belong to another crawl. `configured` is used only where the run's own address cannot work: on a
 * machine that lacks that address, and behind a proxy that forwards the calls (then `server.url` has another port, and
 * leads to the configured address).
 */
export async function callbackListenOf(configured: string | null, server: RunSettings['server']): Promise<string> {
  const own = server.callbackListen;
  if (configured === null || configured.endsWith(':0') || configured === own) return own;
  const url = new URL(server.callbackUrl);
  const calledPort = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const colon = own.lastIndexOf(':');
  if (calledPort !== Number(own.slice(colon + 1))) return configured;
  return (await isAddressHere(own.slice(0, colon).replace(/^\[|\]$/g, ''))) ? own : configured;
}

async function isAddressHere(host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(0, host);
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/**
 * A resumed run cannot change its port: names the process that holds it and how to free it. Returns other errors
 * unchanged.
 */
export function explainTakenPort(error: unknown, runId: string, listen: string): unknown {
  if (!(error instanceof AppError) || error.code !== 'port-taken') return error;
  const holder = findPortHolder(Number(listen.slice(listen.lastIndexOf(':') + 1)));
  const end = holder
    ? `If that is an earlier main server of this run which hangs, end it with: kill -9 ${holder.pid}`
    : 'It may be an earlier main server of this run which hangs: find it with ss -ltnp, end it with kill -9';
  return new AppError('port-taken', error.message, {
    hint: `The instances of run ${runId} call this very port. ${end}; then: orchestrator resume ${runId}`,
    cause: error,
  });
}
