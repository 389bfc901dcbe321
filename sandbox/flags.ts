/** The sandbox's command line. */
import { parseArgs } from 'node:util';
import { AppError, describeError } from '../shared/domain/errors.ts';

export interface SandboxFlags {
  port: number;
  dataDir: string;
  region: string;
  allowedBundles: Set<string>;
  /** Null: make one. */
  controlToken: string | null;
  endsAtMs: number | null;
}

export const USAGE = `usage: sandbox --data DIR [--port N] [--region R] [--allow-bundle SHA256]... [--control-token T] [--ends-at ISO]`;

/** Throws AppError `usage`. */
export function readFlags(args: readonly string[]): SandboxFlags {
  const values = parse(args);
  const port = Number(values.port ?? '0');
  if (!/^\d{1,5}$/.test(values.port ?? '0') || port > 65_535)
    throw usage(`--port must be 0 to 65535, not '${values.port}'`);
  if (!values.data) throw usage('--data DIR is missing: the folder for buckets, instances and the log');
  const region = values.region ?? 'ap-northeast-1';
  if (!/^[a-z]{2}(-[a-z]+)+-\d$/.test(region)) throw usage(`--region '${region}' is no region, such as ap-northeast-1`);
  const bundles = values['allow-bundle'] ?? [];
  const bad = bundles.find((hash) => !/^[0-9a-f]{64}$/.test(hash));
  if (bad !== undefined) throw usage(`--allow-bundle takes a SHA-256 of 64 small hex digits, not '${bad}'`);
  const endsAtMs = values['ends-at'] === undefined ? null : Date.parse(values['ends-at']);
  if (endsAtMs !== null && Number.isNaN(endsAtMs))
    throw usage(`--ends-at takes an ISO time, not '${values['ends-at']}'`);
  return {
    port,
    dataDir: values.data,
    region,
    allowedBundles: new Set(bundles),
    controlToken: values['control-token'] ?? null,
    endsAtMs,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: 'string' },
        data: { type: 'string' },
        region: { type: 'string' },
        'allow-bundle': { type: 'string', multiple: true },
        'control-token': { type: 'string' },
        'ends-at': { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw usage(describeError(error));
  }
}

const usage = (message: string): AppError => new AppError('usage', message, { hint: USAGE });
