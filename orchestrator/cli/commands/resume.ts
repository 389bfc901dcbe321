/** `orchestrator resume`: takes up a run whose main server died or left. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { CarriedOut } from '../../app/run/carry-out.ts';
import type { ResumeOptions } from '../../app/run/resume.ts';
import { resume } from '../../app/run/resume.ts';
import { inTerminal } from '../in-terminal.ts';
import type { Output } from '../output.ts';

export async function resumeCommand(options: ResumeOptions, output: Output): Promise<ExitCode> {
  return (await resumeInTerminal(options, output)).exitCode;
}

export const resumeInTerminal = (options: ResumeOptions, output: Output): Promise<CarriedOut> =>
  inTerminal(output, (caller) => resume(options, caller));
