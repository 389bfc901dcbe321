/** `orchestrator sandbox`: an AWS endpoint (EC2, ELBv2, S3) on this machine, in the foreground, until Ctrl-C. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { buildBundle } from '../../../userdata/bundle.ts';
import type { Output } from '../output.ts';
import { writeText } from '../terminal.ts';
import { sandboxArguments } from '../../core/cloud-access/sandbox-process.ts';

/** Prints the sandbox's own ready line (one JSON document) on stdout; resolves when it has ended. */
export async function sandboxCommand(options: { port: number; data: string }, output: Output): Promise<ExitCode> {
  const bundles = await Promise.all([buildBundle(), buildBundle({ browser: true })]);
  const dataDir = resolve(options.data);
  const sandbox = { dataDir, port: options.port, bundles: bundles.map((b) => b.sha256), endsAtMs: null };
  const child = spawn(process.execPath, sandboxArguments(sandbox), { stdio: ['ignore', 'inherit', 'inherit'] });
  if (!output.json)
    writeText(process.stderr, `The sandbox keeps its state in ${dataDir}; Ctrl-C ends it and everything it runs.`);
  // Whether the terminal's Ctrl-C also reaches the sandbox depends on how we started; a second one is harmless.
  const forward = (): void => void child.kill('SIGTERM');
  process.on('SIGTERM', forward);
  process.on('SIGINT', forward);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.off('SIGTERM', forward);
  process.off('SIGINT', forward);
  // It has printed what is wrong; a taken port is a configuration error, not an internal one.
  return code === EXIT.complete || code === EXIT.config ? code : EXIT.internal;
}
