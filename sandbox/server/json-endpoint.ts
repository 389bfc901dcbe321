/** One call of AWS's JSON protocol, whose action is in a header. Only Service Quotas is implemented. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';
import type { FaultBook } from '../faults.ts';
import type { Log } from '../log.ts';
import type { JsonAction } from '../quotas/actions.ts';
import type { Answer } from './answer.ts';
import { toAwsError } from './answer.ts';
import { readBody } from './http-body.ts';

const MAX_BODY_BYTES = 100_000;

export interface JsonEndpoint {
  /** By the value of X-Amz-Target. */
  jsonActions: ReadonlyMap<string, JsonAction>;
  faults: FaultBook;
  log: Log;
}

/** Answers the call; a call to an unimplemented service gets an error that its SDK understands. */
export async function answerJson(request: IncomingMessage, requestId: string, endpoint: JsonEndpoint): Promise<Answer> {
  const target = String(request.headers['x-amz-target']);
  const action = target.slice(target.lastIndexOf('.') + 1);
  try {
    const body = await readBody(request, MAX_BODY_BYTES);
    if (request.headers.authorization === undefined)
      throw new AwsError('MissingAuthenticationTokenException', 'Missing Authentication Token');
    const run = endpoint.jsonActions.get(target);
    if (!run) throw new AwsError('UnknownOperationException', `The sandbox does not have ${target}`);
    const faults = endpoint.faults.takeForCall(action);
    if (faults.lost) return { ...json(503, {}), faults };
    if (faults.error) throw new AwsError(faults.error.code, faults.error.message, faults.error.status);
    const result = run(readInput(body));
    endpoint.log.write('call', { service: 'json', action, requestId });
    return { ...json(200, result), faults };
  } catch (thrown) {
    const error = toAwsError(thrown, 'InternalFailure', endpoint.log);
    endpoint.log.write('call', { service: 'json', action, requestId, error: error.code });
    return json(error.status, { __type: error.code, message: error.message });
  }
}

function readInput(body: string): Record<string, unknown> {
  try {
    const input: unknown = JSON.parse(body === '' ? '{}' : body);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input as Record<string, unknown>;
  } catch {
    // Reported below, like everything else that is not an object.
  }
  throw new AwsError('SerializationException', 'The request is not a JSON object');
}

function json(status: number, body: Record<string, unknown>): Answer {
  return {
    status,
    headers: { 'content-type': 'application/x-amz-json-1.1' },
    body: JSON.stringify(body),
    faults: null,
  };
}
