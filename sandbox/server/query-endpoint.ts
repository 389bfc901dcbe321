/** One call of EC2's or ELBv2's query protocol, from form to XML. */
import type { IncomingMessage } from 'node:http';
import { AwsError } from '../aws-error.ts';
import type { ConditionBoard } from '../conditions.ts';
import type { RequestLimits } from '../ec2/request-limits.ts';
import type { FaultBook } from '../faults.ts';
import type { QueryAction, QueryService } from '../query-protocol.ts';
import { Params, queryError, queryReply, serviceOf } from '../query-protocol.ts';
import type { Log } from '../log.ts';
import type { Answer } from './answer.ts';
import { toAwsError } from './answer.ts';
import { readBody } from './http-body.ts';

/** More than any call needs: 1,000 ids, or user data of maximum size. */
const MAX_BODY_BYTES = 1_000_000;

export interface QueryEndpoint {
  actions: Record<QueryService, ReadonlyMap<string, QueryAction>>;
  faults: FaultBook;
  conditions: ConditionBoard;
  /** EC2's; ELBv2 has none here. */
  limits: RequestLimits;
  log: Log;
}

/** True for requests of the query protocol; all others are S3's. */
export function isQueryRequest(request: IncomingMessage): boolean {
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  if (path !== '/' && path !== '') return false;
  const form = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
  return (request.method === 'POST' && form) || /(^|&)Action=/.test(query);
}

export async function answerQuery(
  request: IncomingMessage,
  requestId: string,
  endpoint: QueryEndpoint,
): Promise<Answer> {
  const query = (request.url ?? '/').split('?', 2)[1] ?? '';
  let service: QueryService = 'ec2';
  let action = '';
  try {
    const body = request.method === 'POST' ? await readBody(request, MAX_BODY_BYTES) : '';
    const values = new Map([...new URLSearchParams(query), ...new URLSearchParams(body)]);
    const credential = request.headers.authorization ?? values.get('X-Amz-Credential');
    const known = serviceOf(credential, values.get('Version'));
    service = known ?? 'ec2';
    action = values.get('Action') ?? '';
    if (credential === undefined) {
      throw new AwsError('MissingAuthenticationToken', 'Request is missing Authentication Token', 403);
    }
    const run = known === null ? undefined : endpoint.actions[service].get(action);
    if (!run) throw new AwsError('InvalidAction', `The action ${action} is not valid for this web service.`);
    const faults = endpoint.faults.takeForCall(action);
    if (faults.lost) return { ...xml(503, ''), faults };
    if (faults.error) throw new AwsError(faults.error.code, faults.error.message, faults.error.status);
    const params = new Params(values, service);
    const scale = endpoint.conditions.now.requestLimits;
    if (scale !== null && service === 'ec2') endpoint.limits.take(action, params, scale);
    const result = await run(params);
    endpoint.log.write('call', { service, action, requestId });
    return { ...xml(200, queryReply(service, action, result, requestId)), faults };
  } catch (thrown) {
    const error = toAwsError(thrown, 'InternalError', endpoint.log);
    endpoint.log.write('call', { service, action, requestId, error: error.code });
    return xml(error.status, queryError(service, error, requestId));
  }
}

function xml(status: number, body: string): Answer {
  return { status, headers: { 'content-type': 'text/xml;charset=UTF-8' }, body, faults: null };
}
