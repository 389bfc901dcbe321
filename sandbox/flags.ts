/** The sandbox's command line. */
import { parseArgs } from 'node:util';
import { AppError, describeError } from '../shared/domain/errors.ts';
import { isLoopbackHost } from './server/guard.ts';

export interface SandboxFlags {
  port: number;
  dataDir: string;
  region: string;
  allowedBundles: Set<string>;
  /** The token for control calls; null: generate one. */
  controlToken: string | null;
  endsAtMs: number | null;
  /** The run whose instances are booted here; null: EC2 is the sandbox's own. */
  standInFor: StandInFor | null;
}

/** The run, at another endpoint on this machine, whose instances are booted here. */
export interface StandInFor {
  endpoint: string;
  runId: string;
}

const USAGE = `usage: sandbox --data DIR [--port N] [--region R] [--allow-bundle SHA256]... [--control-token T] [--ends-at ISO] [--stand-in-for URL --run RUN]`;

/** Throws AppError `usage`. */
export function readFlags(args: readonly string[]): SandboxFlags {
  const values = parse(args);
  const { port = '0', region = 'ap-northeast-1', 'allow-bundle': bundles = [], 'ends-at': endsAt } = values;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw usage(`--port must be 0 to 65535, not '${port}'`);
  if (!values.data) throw usage('--data DIR is missing: the folder for buckets, instances and the log');
  if (!/^[a-z]{2}(-[a-z]+)+-\d$/.test(region))
    throw usage(`--region '${region}' is not a region such as ap-northeast-1`);
  const bad = bundles.find((hash) => !/^[0-9a-f]{64}$/.test(hash));
  if (bad !== undefined) throw usage(`--allow-bundle takes a SHA-256 of 64 small hex digits, not '${bad}'`);
  const endsAtMs = endsAt === undefined ? null : Date.parse(endsAt);
  if (endsAtMs !== null && Number.isNaN(endsAtMs)) throw usage(`--ends-at takes an ISO time, not '${endsAt}'`);
  return {
    port: Number(port),
    dataDir: values.data,
    region,
    allowedBundles: new Set(bundles),
    controlToken: values['control-token'] ?? null,
    endsAtMs,
    standInFor: readStandIn(values['stand-in-for'], values.run),
  };
}

function readStandIn(endpoint: string | undefined, runId: string | undefined): StandInFor | null {
  if (endpoint === undefined && runId === undefined) return null;
  if (endpoint === undefined || runId === undefined)
    throw usage('--stand-in-for URL and --run RUN must be given together: the instances of that run are booted here');
  if (!URL.canParse(endpoint) || !isLoopbackHost(new URL(endpoint).host))
    throw usage(`--stand-in-for takes the URL of an endpoint on this machine, not '${endpoint}'`);
  return { endpoint, runId };
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
        'stand-in-for': { type: 'string' },
        run: { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw usage(describeError(error));
  }
}

const usage = (message: string): AppError => new AppError('usage', message, { hint: USAGE });
