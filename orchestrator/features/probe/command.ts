/** `orchestrator probe`: the pace that a site tolerates, and how long it bans. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { type ProbeOptions, probeSite } from './probe-site.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { CONFIDENCE, type Findings } from './findings.ts';
import type { Ban, ProbeEnd, SeriesResult } from './series.ts';
import { confirmRun } from '../../cli/confirm.ts';
import type { Output } from '../../cli/output.ts';
import { inTerminal } from '../../cli/commands/run.ts';

export interface ProbeCommandOptions extends Omit<ProbeOptions, 'confirm' | 'onResult' | 'isVerbose'> {
  hasPermission: boolean;
  yes: boolean;
}

export async function probeCommand(options: ProbeCommandOptions, output: Output): Promise<ExitCode> {
  const { limits, hasPermission } = options;
  if (!hasPermission)
    throw new AppError('usage', 'a probe sends requests until the site bans an address', {
      hint: "With the permission of the site's owner, add --i-have-permission.",
    });
  if (limits.budget < limits.requests)
    throw new AppError(
      'usage',
      `--budget ${limits.budget} is not enough for one series of ${limits.requests} requests`,
      {
        hint: 'Raise --budget, or lower --requests: fewer requests prove less.',
      },
    );
  return inTerminal(output, async (caller) => {
    const { findings, exitCode, written } = await probeSite(
      {
        ...options,
        isVerbose: output.detail === 'verbose',
        confirm: () => confirmRun({ ...options, json: output.json, signal: caller.interrupts.leave }),
        onResult: (result) => caller.output.line(`${formatDuration(result.intervalMs)}: ${describeSeries(result)}`),
      },
      caller,
    );
    for (const line of renderFindings(findings)) output.line(line);
    for (const line of written) output.line(`Written into the configuration: ${line}`);
    output.document({ ...findings, confidence: CONFIDENCE, written, exitCode });
    return exitCode;
  });
}

function describeSeries({ address, requests, ban, isComplete }: SeriesResult): string {
  const from = `${requests} requests from ${address ?? 'no address'}`;
  if (ban !== null) return `${from}, banned after ${ban.afterRequests} (${ban.rule})`;
  return isComplete ? `${from}, no ban` : `${from}, cut short`;
}

export function renderFindings(findings: Findings): string[] {
  const { series, requests, end } = findings;
  const rows = series.map(({ intervalMs, address, requests: sent, ban, isComplete }) => [
    formatDuration(intervalMs),
    address,
    sent,
    ban ? `${ban.afterRequests} (${ban.rule})` : isComplete ? 'never' : 'cut short',
    ban && lengthOf(ban),
  ]);
  return [
    '',
    ...(rows.length === 0
      ? []
      : [renderTable(['interval', 'address', 'requests', 'ban after', 'ban length'], rows), '']),
    `${requests} requests in all. ${END_TEXT[end]}`,
    ...recommendations(findings),
  ];
}

const END_TEXT: Record<ProbeEnd, string> = {
  banned: 'Two series ended in a ban: the probe ended there.',
  finished: 'No interval was left to try.',
  budget: 'The budget has no room for another series.',
  interrupted: 'The probe was interrupted.',
  'cut-short': 'The last series ended early for another reason than a ban.',
};

function lengthOf({ minMs, maxMs }: Ban): string {
  if (maxMs !== null) return `${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  return minMs > 0 ? `over ${formatDuration(minMs)}` : 'not measured';
}

function recommendations({ interval, coolDown }: Findings): string[] {
  const lines: string[] = [];
  if (interval === null) lines.push('No interval is known to be tolerated: try longer ones.');
  else {
    const { ms, requests, maxBanRate, isBounded } = interval;
    const share = `${Math.round(1_000 * maxBanRate) / 10} %`;
    lines.push(
      `interval: ${formatDuration(ms)}: ${requests} requests without a ban, so at most ${share} of requests lead to one (${100 * CONFIDENCE} % confidence).`,
      `  A limit above ${requests} requests an address would not have shown${isBounded ? '' : '; shorter intervals than these were not tried'}.`,
    );
  }
  if (coolDown !== null) {
    const { ms, minMs, maxMs } = coolDown;
    lines.push(
      `cool_down: ${formatDuration(ms)}: one ban lasted between ${formatDuration(minMs)} and ${formatDuration(maxMs)}.`,
    );
  } else lines.push('cool_down: unknown: the end of no ban was seen.');
  return lines;
}
