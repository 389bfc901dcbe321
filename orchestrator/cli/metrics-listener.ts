/** `run --metrics`: Prometheus's text while the run works. A night does not end for a taken port. */
import express from 'express';
import { describeError } from '../../shared/domain/errors.ts';
import { openDatabase } from '../db/connect.ts';
import { createStores } from '../db/create-stores.ts';
import { loadConfig } from '../app/config/load-config.ts';
import { refuseWebPages } from '../server/health-app.ts';
import { listen } from '../server/listen.ts';
import { metricsText } from '../web/metrics.ts';
import type { Output } from './output.ts';

interface Place {
  configPath: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** Address and port; undefined: no metrics. */
  metrics: string | undefined;
}

/** Carries `work` out while `/metrics` is served. */
export async function withMetrics<T>(place: Place, output: Output, work: () => Promise<T>): Promise<T> {
  const { configPath, environment, metrics } = place;
  if (metrics === undefined) return work();
  const database = await openDatabase(loadConfig(configPath, environment).values.database.url);
  const stores = createStores(database);
  const app = express();
  app.use(refuseWebPages(metrics.slice(0, metrics.lastIndexOf(':'))));
  app.get('/metrics', async (_request, response) => {
    const { type, text } = await metricsText(stores);
    response.type(type).send(text);
  });
  const listener = await listen(app, metrics, '--metrics').catch((error: unknown) => {
    output.line(`! no metrics: ${describeError(error)}`);
    return null;
  });
  if (listener) output.line(`metrics: http://${listener.host}:${listener.port}/metrics`);
  try {
    return await work();
  } finally {
    await listener?.close();
    await database.close();
  }
}
