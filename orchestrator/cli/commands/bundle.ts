/** `orchestrator bundle`: builds what instances fetch at boot, to inspect, keep or upload it. */
import { bundleKey } from '../../../shared/domain/keys.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Bundle } from '../../../userdata/bundle.ts';
import { NODE_VERSION } from '../../../userdata/node-release.ts';
import { type Architecture, architectureOf } from '../../core/plan/instance-types.ts';
import { openBucket } from '../../core/cloud-access/cloud-access.ts';
import { type Config, type Environment, loadConfig } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import { PLATFORM_OF, bundleFor, putBundle } from '../../core/cloud-access/launch-template.ts';
import { createOutput, type Output } from '../output.ts';
import { fileOf, writeBytes } from '../output-file.ts';
import { isLocal, regionOf } from '../../core/config/target.ts';

export interface BundleCommandOptions extends ConfigSource {
  /** The architecture to bundle for; omitted: every one in aws.instance_types. */
  architecture?: Architecture;
  upload?: boolean;
  out?: string;
}

interface MadeBundle extends Pick<Bundle, 'sha256' | 'sizeBytes' | 'contents'> {
  architecture: Architecture;
  platform: string;
  nodeVersion: string;
  key: string;
  /** The file it was written to; null without --out, and for stdout. */
  path: string | null;
  upload: { bucket: string; result: 'created' | 'exists' } | null;
}

export async function bundleCommand(options: BundleCommandOptions, terminal: Output): Promise<ExitCode> {
  const file = fileOf(options.out);
  const isToStdout = options.out !== undefined && file === undefined;
  if (isToStdout && (terminal.json || process.stdout.isTTY))
    throw new AppError('usage', 'a bundle is no text: name a file with --out FILE, or send stdout to a file or a pipe');
  // On stdout there is nothing but the bundle.
  const said = isToStdout ? createOutput(true) : terminal;
  const output = { ...terminal, line: (text?: string) => said.line(text) };
  const config = loadConfig(options);
  const architectures = architecturesOf(config, options);
  const bucket = options.upload ? bucketOf(config, options.environment) : null;
  const made: MadeBundle[] = [];
  for (const architecture of architectures) {
    const bundle = await bundleFor({
      render: config.values.site.render,
      onAws: true,
      instanceType: config.values.aws.instance_types.find((type) => architectureOf(type) === architecture) ?? '',
      configFile: config.file,
      output,
    });
    if (options.out !== undefined) await writeBytes(file, bundle.open());
    const upload = bucket && { bucket: bucket.bucket, result: await put(bundle, bucket) };
    const { sha256, sizeBytes, contents } = bundle;
    const key = bundleKey(sha256);
    const platform = PLATFORM_OF[architecture];
    const path = file ?? null;
    const one = { architecture, platform, nodeVersion: NODE_VERSION, sha256, sizeBytes, contents, key, path, upload };
    made.push(one);
    output.line(describe(one));
  }
  output.document({ bundles: made });
  return EXIT.complete;
}

function architecturesOf(config: Config, { architecture, out }: BundleCommandOptions): Architecture[] {
  const all = [...new Set(config.values.aws.instance_types.map(architectureOf))];
  if (architecture !== undefined && !all.includes(architecture))
    throw new AppError('usage', `none of aws.instance_types in ${config.file} has the architecture ${architecture}`);
  const chosen = architecture === undefined ? all : [architecture];
  if (out !== undefined && chosen.length > 1)
    throw new AppError('usage', `--out takes one bundle, and aws.instance_types has ${chosen.join(' and ')}`, {
      hint: `Add --architecture ${chosen[0]}`,
    });
  return chosen;
}

type Bucket = Parameters<typeof openBucket>[0];

function bucketOf(config: Config, environment: Environment): Bucket {
  const { aws } = config.values;
  const region = regionOf(config, environment);
  const missing = [...(region === null ? ['aws.region'] : []), ...(aws.bucket === null ? ['aws.bucket'] : [])];
  if (region === null || aws.bucket === null)
    throw new AppError('config-invalid', `--upload needs ${missing.join(' and ')} in ${config.file}`);
  const place = { region, endpoint: aws.endpoint, bucket: aws.bucket };
  return aws.sse === null ? place : { ...place, sse: aws.sse };
}

async function put(bundle: Bundle, aws: Bucket): Promise<'created' | 'exists'> {
  using objects = openBucket(aws, isLocal(aws.endpoint));
  return await putBundle(objects, bundle, aws);
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;

function describe({ architecture, nodeVersion, sha256, sizeBytes, contents, key, path, upload }: MadeBundle): string {
  const files = contents.map(({ name, sizeBytes: size }) => `${name} (${megabytes(size)})`).join(', ');
  return [
    `Bundle for ${architecture}: ${megabytes(sizeBytes)}, with Node ${nodeVersion}`,
    `  SHA-256   ${sha256}`,
    `  contents  ${files}`,
    ...(path === null ? [] : [`  written   ${path}`]),
    ...(upload === null
      ? []
      : [`  bucket    ${upload.bucket}/${key}: ${upload.result === 'created' ? 'uploaded' : 'already there'}`]),
  ].join('\n');
}
