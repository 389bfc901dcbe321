/**
 * Run Command of Systems Manager, for AWS-RunShellScript on instances whose user data has started the agent.
 * https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_SendCommand.html
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import type { Fleet } from '../ec2/fleet.ts';
import type { ShellEnd, ShellRun } from '../ec2/machine.ts';
import type { JsonAction } from '../quotas/actions.ts';

/** Every target of this service. They run any command, so each needs the control token as its access key. */
export const SSM_TARGET = 'AmazonSSM.';

const DOCUMENT = 'AWS-RunShellScript';
/** A sandbox of many days must not keep every output. */
const KEPT_COMMANDS = 200;

interface Invocation {
  shell: ShellRun;
  /** How the command ended; null while it runs. */
  end: ShellEnd | null;
}

interface Command {
  id: string;
  sentAtMs: number;
  byInstance: Map<string, Invocation>;
}

const ids = z.array(z.string().max(100)).max(50);
const sendSchema = z.object({
  DocumentName: z.string(),
  InstanceIds: ids.min(1),
  TimeoutSeconds: z.int().min(30).max(2_592_000).default(3_600),
  Parameters: z.object({
    commands: z.array(z.string()).min(1),
    executionTimeout: z.tuple([z.string().regex(/^\d{1,6}$/)]).default(['3600']),
  }),
});
const whichSchema = z.object({ CommandId: z.string(), InstanceId: z.string() });
const listSchema = z.object({ CommandId: z.string().exactOptional(), InstanceId: z.string().exactOptional() });
const cancelSchema = z.object({ CommandId: z.string(), InstanceIds: ids.default([]) });
const describeSchema = z.object({
  Filters: z.array(z.object({ Key: z.literal('InstanceIds'), Values: z.array(z.string()).max(100) })).default([]),
});

export function createSsmActions(fleet: Fleet, clock: Clock): Map<string, JsonAction> {
  const commands = new Map<string, Command>();
  const machineOf = (instanceId: string) => {
    const instance = fleet.find(instanceId);
    return instance?.state === 'running' && instance.machine?.hasAgent === true ? instance.machine : null;
  };

  const sendCommand: JsonAction = (input) => {
    const { DocumentName, InstanceIds, Parameters } = read(sendSchema, input);
    if (DocumentName !== DOCUMENT)
      throw new AwsError('InvalidDocument', `The sandbox has the document ${DOCUMENT} only.`);
    const machines = InstanceIds.map((id) => [id, machineOf(id)] as const);
    const without = machines.filter(([, machine]) => machine === null).map(([id]) => id);
    if (without.length > 0)
      throw new AwsError('InvalidInstanceId', `Instances [[${without.join(', ')}]] not in a valid state for account`);
    const [seconds] = Parameters.executionTimeout;
    const command: Command = { id: randomUUID(), sentAtMs: clock.now(), byInstance: new Map() };
    for (const [id, machine] of machines) {
      const shell = machine!.execute(Parameters.commands.join('\n'), Number(seconds) * 1_000);
      const invocation: Invocation = { shell, end: null };
      void shell.done.then((end) => (invocation.end = end));
      command.byInstance.set(id, invocation);
    }
    commands.set(command.id, command);
    if (commands.size > KEPT_COMMANDS) commands.delete(commands.keys().next().value!);
    return { Command: { CommandId: command.id, DocumentName, InstanceIds, Status: 'Pending' } };
  };

  const getCommandInvocation: JsonAction = (input) => {
    const { CommandId, InstanceId } = read(whichSchema, input);
    const invocation = commands.get(CommandId)?.byInstance.get(InstanceId);
    if (!invocation) throw new AwsError('InvocationDoesNotExist', 'There is no such command on this instance.');
    const { end } = invocation;
    return {
      CommandId,
      InstanceId,
      DocumentName: DOCUMENT,
      ...statusOf(invocation),
      ResponseCode: end?.how === 'ended' ? end.exitCode : -1,
      StandardOutputContent: end?.stdout ?? '',
      StandardErrorContent: end?.stderr ?? '',
    };
  };

  const listCommandInvocations: JsonAction = (input) => {
    const { CommandId, InstanceId } = read(listSchema, input);
    const wanted = CommandId === undefined ? [...commands.values()] : [commandOf(commands, CommandId)];
    const CommandInvocations = wanted.flatMap(({ id, sentAtMs, byInstance }) =>
      [...byInstance]
        .filter(([instanceId]) => InstanceId === undefined || instanceId === InstanceId)
        .map(([instanceId, invocation]) => ({
          CommandId: id,
          InstanceId: instanceId,
          DocumentName: DOCUMENT,
          RequestedDateTime: sentAtMs / 1_000,
          ...statusOf(invocation),
        })),
    );
    return { CommandInvocations };
  };

  const cancelCommand: JsonAction = (input) => {
    const { CommandId, InstanceIds } = read(cancelSchema, input);
    for (const [id, { shell }] of commandOf(commands, CommandId).byInstance)
      if (InstanceIds.length === 0 || InstanceIds.includes(id)) shell.cancel();
    return {};
  };

  const describeInstanceInformation: JsonAction = (input) => {
    const wanted = read(describeSchema, input).Filters.map(({ Values }) => Values);
    const shown = fleet
      .all()
      .filter(({ id }) => machineOf(id) !== null && wanted.every((values) => values.includes(id)));
    return {
      InstanceInformationList: shown.map(({ id, address }) => ({
        InstanceId: id,
        PingStatus: 'Online',
        PlatformType: 'Linux',
        ResourceType: 'EC2Instance',
        IPAddress: address,
      })),
    };
  };

  const actions = {
    SendCommand: sendCommand,
    GetCommandInvocation: getCommandInvocation,
    ListCommandInvocations: listCommandInvocations,
    CancelCommand: cancelCommand,
    DescribeInstanceInformation: describeInstanceInformation,
  };
  return new Map(Object.entries(actions).map(([name, action]) => [SSM_TARGET + name, action]));
}

function commandOf(commands: ReadonlyMap<string, Command>, id: string): Command {
  const command = commands.get(id);
  if (!command) throw new AwsError('InvalidCommandId', 'There is no such command.');
  return command;
}

function statusOf({ end }: Invocation): { Status: string; StatusDetails: string } {
  if (end === null) return { Status: 'InProgress', StatusDetails: 'InProgress' };
  if (end.how === 'timed-out') return { Status: 'TimedOut', StatusDetails: 'ExecutionTimedOut' };
  const Status = end.how === 'cancelled' ? 'Cancelled' : end.exitCode === 0 ? 'Success' : 'Failed';
  return { Status, StatusDetails: Status };
}

function read<T extends z.ZodType>(schema: T, input: unknown): z.infer<T> {
  const { data, error } = schema.safeParse(input);
  if (error) throw new AwsError('ValidationException', z.prettifyError(error));
  return data;
}
