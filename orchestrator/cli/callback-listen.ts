/** Where a run that is taken up listens for its instances, and who is in the way when it cannot. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { AppError } from '../../shared/domain/errors.ts';
import type { RunSettings } from '../control/model/run-settings.ts';
import { findPortHolder } from '../server/port-holder.ts';

/**
 * The address that the instances of the run were told: they are calling it now, whatever the configuration says by now, which may
 * be that of another crawl. `configured` stands only where the run's own cannot: on a machine that has not got that address, and
 * behind something that leads the calls on (then `server.url` has another port, and leads to where the configuration says).
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

/** A port of a run that is taken up cannot be exchanged for another: says who has it and how to get it. Other errors come back as they are. */
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
