/** Routes under /_crawlfleet/: queries and commands of the sandbox beyond AWS. Each needs the control token. */
import { textBefore } from '../../shared/domain/text-before.ts';
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Clock } from '../../shared/ports/clock.ts';
import { type ConditionBoard, conditionsSchema } from '../conditions.ts';
import type { Regions } from '../region.ts';
import { MACHINE_EVENTS } from '../ec2/machine.ts';
import { AwsError } from '../aws-error.ts';
import { type FaultBook, faultRuleSchema } from '../faults.ts';
import type { EndTimer } from '../end-timer.ts';
import { type Answer, plainAnswer } from './answer.ts';
import { readBody } from '../http-body.ts';

export const CONTROL_PREFIX = '/_crawlfleet/';
const MAX_BODY_BYTES = 1_000_000;

export interface Control {
  token: string;
  regions: Regions;
  faults: FaultBook;
  conditions: ConditionBoard;
  clock: Clock;
  /** Lets instances run this bundle from now on, also in a sandbox that takes the place of this one. */
  allowBundle: (sha256: string) => Promise<void>;
  /** Starts ending the sandbox; returns at once. */
  shutdown: (why: string) => void;
  /** When it will end automatically. */
  timer: EndTimer;
}

export async function answerControl(request: IncomingMessage, control: Control): Promise<Answer> {
  if (!hasToken(request, control.token))
    return json(401, { error: 'The control token is missing or wrong: send "Authorization: Bearer TOKEN".' });
  try {
    const path = textBefore(request.url ?? '', '?').slice(CONTROL_PREFIX.length);
    const answer = await route(`${request.method} ${path}`, request, control);
    return answer ?? json(404, { error: `There is no control route ${request.method} ${CONTROL_PREFIX}${path}` });
  } catch (error) {
    if (error instanceof z.ZodError) return json(400, { error: z.prettifyError(error) });
    if (error instanceof SyntaxError) return json(400, { error: `The body is not JSON: ${error.message}` });
    if (error instanceof AwsError) return json(error.status, { error: error.message });
    throw error;
  }
}

async function route(what: string, request: IncomingMessage, control: Control): Promise<Answer | null> {
  switch (what) {
    case 'GET status':
      return json(200, { pid: process.pid, endsAt: endsAt(control), instances: listInstances(control) });
    case 'POST shutdown':
      return {
        ...json(202, { state: 'ending' }),
        afterwards: () => control.shutdown('requested through the control route'),
      };
    case 'POST ends-at': {
      const { at } = z.strictObject({ at: z.iso.datetime() }).parse(await readJson(request));
      control.timer.set(Date.parse(at));
      return json(200, { endsAt: endsAt(control) });
    }
    case 'GET faults':
      return json(200, control.faults.rules);
    case 'POST faults':
      control.faults.add(faultRulesSchema.parse(await readJson(request)));
      return json(200, control.faults.rules);
    case 'DELETE faults':
      control.faults.clear();
      return json(200, []);
    case 'GET conditions':
      return json(200, control.conditions.now);
    case 'PATCH conditions':
      control.conditions.change(conditionsSchema.parse(await readJson(request)), control.clock.now());
      control.regions.strike();
      return json(200, control.conditions.now);
    case 'DELETE conditions':
      control.conditions.reset();
      return json(200, control.conditions.now);
    case 'POST bundles': {
      const { sha256 } = z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }).parse(await readJson(request));
      await control.allowBundle(sha256);
      return json(200, { sha256 });
    }
    case 'GET billing':
      return json(
        200,
        control.regions.all.flatMap(({ fleet }) => fleet.billing.lines(control.clock.now())),
      );
    default: {
      const id = /^POST instances\/([^/]+)$/.exec(what)?.[1];
      return id === undefined ? null : json(200, commandInstance(id, await readJson(request), control));
    }
  }
}

function endsAt({ timer }: Control): string | null {
  return timer.atMs === null ? null : new Date(timer.atMs).toISOString();
}

function listInstances({ regions }: Control): unknown[] {
  return regions.all.flatMap(({ name: region, fleet }) =>
    fleet.all().map(({ id, state, address, machine }) => {
      return { id, region, state, address, pid: machine?.pid ?? null, folder: machine?.folder ?? null };
    }),
  );
}

const readJson = async (request: IncomingMessage): Promise<unknown> =>
  JSON.parse((await readBody(request, MAX_BODY_BYTES)).toString());

const hasToken = ({ headers }: IncomingMessage, token: string): boolean =>
  isSame(headers.authorization ?? '', `Bearer ${token}`);

/** True when the access key of a signed call is the control token. The signature itself is not checked. */
export const isSignedWith = ({ headers }: IncomingMessage, token: string): boolean =>
  isSame(/\bCredential=([^/,\s]+)\//.exec(headers.authorization ?? '')?.[1] ?? '', token);

function isSame(text: string, secret: string): boolean {
  const [given, expected] = [Buffer.from(text), Buffer.from(secret)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

const json = (status: number, content: unknown): Answer =>
  plainAnswer(status, 'application/json', JSON.stringify(content));

const faultRulesSchema = z.array(faultRuleSchema).max(1_000);

const commandSchema = z.strictObject({
  do: z.enum([...MACHINE_EVENTS, 'stop', 'start', 'retire', 'terminate', 'protect', 'unprotect']),
});

/** Throws AwsError with 404 for an unknown instance, and with 409 when the instance is in the wrong state. */
function commandInstance(id: string, body: unknown, { regions }: Control): { id: string; state: string } {
  const command = commandSchema.parse(body).do;
  const { fleet } = regions.all.find((region) => region.fleet.find(id) !== null) ?? {};
  const instance = fleet?.find(id);
  if (!fleet || !instance) throw new AwsError('InvalidInstanceID.NotFound', `There is no instance ${id}`, 404);
  if (command === 'stop') fleet.stop(instance);
  else if (command === 'start') fleet.start(instance);
  else if (command === 'retire') fleet.retire(instance);
  else if (command === 'terminate') fleet.terminate(instance, 'Server.InternalError');
  else if (command === 'protect' || command === 'unprotect') instance.isProtected = command === 'protect';
  else if (!instance.machine?.inject(command))
    throw new AwsError('IncorrectState', `No program is running on ${id}: nothing to ${command}`, 409);
  return { id, state: instance.state };
}
