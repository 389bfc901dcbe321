/** Events that a test can trigger for one instance: caused by AWS or the machine, not by a call. */
import { z } from 'zod';
import { AwsError } from '../aws-error.ts';
import type { Fleet } from '../ec2/fleet.ts';
import type { Instance } from '../ec2/instance.ts';
import type { MachineHost } from '../ec2/machine-host.ts';
import { MACHINE_EVENTS } from '../ec2/machine-host.ts';

const commandSchema = z.strictObject({
  do: z.enum([...MACHINE_EVENTS, 'stop', 'start', 'retire', 'terminate', 'protect', 'unprotect']),
});

/** Throws AwsError with 404 for an unknown instance, and with 409 when the instance is in the wrong state. */
export function commandInstance(
  id: string,
  body: unknown,
  { fleet, host }: { fleet: Fleet; host: MachineHost },
): { id: string; state: string } {
  const command = commandSchema.parse(body).do;
  const instance = fleet.find(id);
  if (!instance) throw new AwsError('InvalidInstanceID.NotFound', `There is no instance ${id}`, 404);
  carryOut(command, instance, fleet, host);
  return { id, state: instance.state };
}

function carryOut(
  command: z.infer<typeof commandSchema>['do'],
  instance: Instance,
  fleet: Fleet,
  host: MachineHost,
): void {
  switch (command) {
    case 'stop':
      fleet.stop(instance);
      return;
    case 'start':
      fleet.start(instance);
      return;
    case 'retire':
      fleet.retire(instance);
      return;
    case 'terminate':
      fleet.terminate(instance, 'Server.InternalError');
      return;
    case 'protect':
    case 'unprotect':
      instance.isProtected = command === 'protect';
      return;
    default:
      if (!host.befall(instance.id, command))
        throw new AwsError('IncorrectState', `No program is running on ${instance.id}: nothing to ${command}`, 409);
  }
}
