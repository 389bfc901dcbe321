/**
 * CommandRunner by Run Command of AWS Systems Manager.
 * https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_SendCommand.html
 */
import type { CommandInvocation, GetCommandInvocationResult, SSM } from '@aws-sdk/client-ssm';
import { type BackoffLimits, backoffMs } from '../../../shared/domain/backoff.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Random } from '../../../shared/ports/random.ts';
import { type AwsFailureKind, classifyAwsError, toAppError } from '../../core/cloud/aws-errors.ts';
import type { CommandRequest, CommandResult, CommandRunner, CommandStatus } from './command-runner.ts';
import { allOf, type AwsOptions, type LazyClient, lazySsm } from '../../core/cloud/sdk-clients.ts';

const DOCUMENT = 'AWS-RunShellScript';
/** Instance ids that SendCommand takes, and that one page of a listing has. */
const AT_ONCE = 50;
/** What GetCommandInvocation returns of the two outputs, in characters. */
const KEPT = { stdout: 24_000, stderr: 8_000 };
/** SSM's minimum for the time in which an agent has to fetch the command. */
const DELIVERY_S = 30;
const POLL: BackoffLimits = { firstMs: 250, maxMs: 2_000 };
/** What the service may take on top of delivery and time limit until it shows the end. */
const SLACK_MS = 15_000;
/** How long a cancelled command may take to end. */
const CANCEL_MS = 10_000;

/** What a retry may mend. */
const PASSING: ReadonlySet<AwsFailureKind> = new Set(['throttled', 'failed']);
const READ_RETRIES = 6;

type Shown = Pick<CommandInvocation, 'InstanceId' | 'Status' | 'StatusDetails'>;

export interface SsmParts extends AwsOptions {
  clock: Clock;
  random: Random;
}

export class SsmCommandRunner implements CommandRunner {
  readonly #parts: SsmParts;
  readonly #client: LazyClient<SSM>;

  constructor(parts: SsmParts) {
    this.#parts = parts;
    this.#client = lazySsm(parts);
  }

  /** Drops the connections. */
  [Symbol.dispose](): void {
    this.#client.close();
  }

  async run(request: CommandRequest, signal: AbortSignal): Promise<CommandResult[]> {
    const { instanceIds } = request;
    const registered = await this.#registered(instanceIds);
    const batches: string[][] = [];
    const reachable = instanceIds.filter((id) => registered.has(id));
    for (let at = 0; at < reachable.length; at += AT_ONCE) batches.push(reachable.slice(at, at + AT_ONCE));
    const results = await Promise.all(batches.map((ids) => this.#runBatch(ids, request, signal)));
    const known = new Map(results.flat().map((result) => [result.instanceId, result]));
    return instanceIds.map((id) => known.get(id) ?? resultWithout(id, 'unreachable'));
  }

  /** The ids with an agent; all of them at an endpoint that does not know. */
  async #registered(instanceIds: readonly string[]): Promise<Set<string>> {
    const ssm = await this.#client.get();
    const found = new Set<string>();
    try {
      for (let at = 0; at < instanceIds.length; at += AT_ONCE) {
        const Filters = [{ Key: 'InstanceIds', Values: instanceIds.slice(at, at + AT_ONCE) }];
        const pages = ssm.paginateDescribeInstanceInformation({ Filters });
        const listed = await allOf(pages, 'DescribeInstanceInformation', (page) => page.InstanceInformationList);
        for (const { InstanceId } of listed) if (InstanceId !== undefined) found.add(InstanceId);
      }
      return found;
    } catch (error) {
      if (classifyAwsError(error).kind === 'capability-missing') return new Set(instanceIds);
      throw this.#explained(error, 'DescribeInstanceInformation');
    }
  }

  /** One id that has ended meanwhile makes SSM refuse the whole call: then each is sent on its own. */
  async #runBatch(
    instanceIds: readonly string[],
    request: CommandRequest,
    signal: AbortSignal,
  ): Promise<CommandResult[]> {
    if (signal.aborted) return instanceIds.map((id) => resultWithout(id, 'cancelled'));
    let commandId: string;
    try {
      commandId = await this.#send(instanceIds, request);
    } catch (error) {
      if (classifyAwsError(error).code !== 'InvalidInstanceId') throw this.#explained(error, 'SendCommand');
      if (instanceIds.length === 1) return instanceIds.map((id) => resultWithout(id, 'unreachable'));
      return (await Promise.all(instanceIds.map((id) => this.#runBatch([id], request, signal)))).flat();
    }
    const limitMs = DELIVERY_S * 1_000 + request.timeoutMs + SLACK_MS;
    let ended = await this.#awaitEnd(commandId, instanceIds, { limitMs, signal });
    if (signal.aborted && ended.length < instanceIds.length) {
      const ssm = await this.#client.get();
      // What still runs after this is reported as unknown, so a refusal needs no message of its own.
      await ssm.cancelCommand({ CommandId: commandId }).catch(() => undefined);
      ended = await this.#awaitEnd(commandId, instanceIds, { limitMs: CANCEL_MS });
    }
    const results = await Promise.all(ended.map((invocation) => this.#result(commandId, invocation)));
    const known = new Map(results.map((result) => [result.instanceId, result]));
    return instanceIds.map((id) => known.get(id) ?? resultWithout(id, 'unknown'));
  }

  async #send(instanceIds: readonly string[], { command, timeoutMs }: CommandRequest): Promise<string> {
    const ssm = await this.#client.get();
    const { Command } = await ssm.sendCommand({
      DocumentName: DOCUMENT,
      InstanceIds: [...instanceIds],
      TimeoutSeconds: DELIVERY_S,
      Parameters: { commands: command.split('\n'), executionTimeout: [String(Math.ceil(timeoutMs / 1_000))] },
    });
    if (Command?.CommandId === undefined) throw new AppError('aws-failed', 'SendCommand answered without CommandId');
    return Command.CommandId;
  }

  /** The invocations that have ended, once all have, the time is up, or the signal aborts. */
  async #awaitEnd(
    commandId: string,
    instanceIds: readonly string[],
    { limitMs, signal }: { limitMs: number; signal?: AbortSignal },
  ): Promise<Shown[]> {
    const { clock, random } = this.#parts;
    const untilMs = clock.monotonic() + limitMs;
    for (let polls = 0; ; polls++) {
      const ended = (await this.#shown(commandId, instanceIds)).filter((one) => statusOf(one) !== null);
      if (ended.length >= instanceIds.length || signal?.aborted || clock.monotonic() >= untilMs) return ended;
      await clock.sleep(backoffMs(polls, POLL, random.next()), signal);
    }
  }

  /**
   * The invocations that the service shows; none while it does not answer: the command runs whether we see it or not.
   */
  async #shown(CommandId: string, instanceIds: readonly string[]): Promise<Shown[]> {
    const ssm = await this.#client.get();
    try {
      return (await ssm.listCommandInvocations({ CommandId, MaxResults: AT_ONCE })).CommandInvocations ?? [];
    } catch (error) {
      const { kind } = classifyAwsError(error);
      if (PASSING.has(kind) || kind === 'not-found') return [];
      if (kind !== 'capability-missing') throw this.#explained(error, 'ListCommandInvocations');
      return Promise.all(instanceIds.map((InstanceId) => this.#invocation({ CommandId, InstanceId })));
    }
  }

  async #invocation(which: { CommandId: string; InstanceId: string }): Promise<GetCommandInvocationResult> {
    const { clock, random } = this.#parts;
    const ssm = await this.#client.get();
    for (let failures = 0; ; failures++) {
      try {
        return await ssm.getCommandInvocation(which);
      } catch (error) {
        if (failures === READ_RETRIES || !PASSING.has(classifyAwsError(error).kind))
          throw this.#explained(error, 'GetCommandInvocation');
        await clock.sleep(backoffMs(failures, POLL, random.next()));
      }
    }
  }

  async #result(CommandId: string, shown: Shown): Promise<CommandResult> {
    const InstanceId = shown.InstanceId!;
    const status = statusOf(shown)!;
    if (status === 'unreachable') return resultWithout(InstanceId, status);
    const reply = await this.#invocation({ CommandId, InstanceId });
    const [stdout, stderr] = [reply.StandardOutputContent ?? '', reply.StandardErrorContent ?? ''];
    return {
      instanceId: InstanceId,
      status,
      exitCode: status === 'ended' ? (reply.ResponseCode ?? null) : null,
      stdout,
      stderr,
      truncated: stdout.length >= KEPT.stdout || stderr.length >= KEPT.stderr,
    };
  }

  #explained(error: unknown, call: string): AppError {
    const known = toAppError(error, call, this.#parts.endpoint);
    if (known.code !== 'aws-denied') return known;
    return new AppError(known.code, known.message, {
      hint: 'The main server needs the policy that `orchestrator setup --commands` prints; see docs/aws.md.',
      cause: error,
    });
  }
}

const resultWithout = (instanceId: string, status: CommandStatus): CommandResult => ({
  instanceId,
  status,
  exitCode: null,
  stdout: '',
  stderr: '',
  truncated: false,
});

/** The status of an invocation that has ended; null while it has not. */
function statusOf({ Status, StatusDetails = '' }: Shown): CommandStatus | null {
  // The API writes `DeliveryTimedOut`, the console `Delivery Timed Out`.
  const details = StatusDetails.replaceAll(' ', '');
  switch (Status) {
    case 'Success':
      return 'ended';
    case 'Failed':
      return ['Undeliverable', 'Terminated', 'AccessDenied'].includes(details) ? 'unreachable' : 'ended';
    case 'TimedOut':
      return details === 'DeliveryTimedOut' ? 'unreachable' : 'timed-out';
    case 'Cancelled':
      return 'cancelled';
    default:
      return null;
  }
}
