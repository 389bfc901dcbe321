/** The single port of the sandbox: EC2, ELBv2, S3 and the control routes, distinguished per request. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { closeServer, listen } from '../../shared/adapters/http/listening.ts';
import { type Answer, plainAnswer, sendAnswer, toAwsError } from './answer.ts';
import { answerControl, type Control, CONTROL_PREFIX, isSignedWith } from './control.ts';
import { refusalOf } from './guard.ts';
import { answerS3, type S3Endpoint } from './s3-endpoint.ts';
import { AwsError } from '../aws-error.ts';
import { signingInstance } from '../instance-role.ts';
import { scopeRegionOf } from '../region.ts';
import { SSM_TARGET } from '../ssm/actions.ts';
import { readBody } from '../http-body.ts';
import { Params, queryError, queryReply, type QueryService, serviceOf } from '../query-protocol.ts';

export interface EndpointParts extends S3Endpoint {
  clock: Clock;
  control: Control;
}

export interface Endpoint {
  url: string;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1; port 0 takes any free one. Throws AppError `port-taken`. */
export async function startEndpoint(port: number, parts: EndpointParts): Promise<Endpoint> {
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 0 }, (request, response) => {
    void handle(request, response, parts);
  });
  // A fleet of a hundred instances connects at once: the default backlog of 511 is too small.
  await listen(server, { port, host: '127.0.0.1', backlog: 4_096 }).catch((cause: unknown) => {
    throw new AppError('port-taken', `The sandbox cannot listen on 127.0.0.1:${port}`, {
      hint: 'Choose another --port, or 0 for any free one.',
      cause,
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => closeServer(server),
  };
}

async function handle(request: IncomingMessage, response: ServerResponse, parts: EndpointParts): Promise<void> {
  request.on('error', () => {});
  response.on('error', () => {});
  const requestId = randomUUID();
  const answer = await answerTo(request, requestId, parts).catch((thrown: unknown): Answer => {
    const error = toAwsError(thrown, 'InternalError', parts.log);
    return plainAnswer(500, 'text/plain', error.message);
  });
  await sendAnswer(answer, request, response, parts.clock);
}

async function answerTo(request: IncomingMessage, requestId: string, parts: EndpointParts): Promise<Answer> {
  const refusal = refusalOf(request);
  if (refusal !== null) return plainAnswer(403, 'text/plain', `${refusal}\n`);
  if (request.url?.startsWith(CONTROL_PREFIX)) return answerControl(request, parts.control);
  if (request.headers['x-amz-target'] !== undefined) return answerJson(request, requestId, parts);
  if (isQueryRequest(request)) return answerQuery(request, requestId, parts);
  return answerS3(request, requestId, parts);
}

const MAX_JSON_BYTES = 100_000;

/** Answers the call; a call to an unimplemented service gets an error that its SDK understands. */
async function answerJson(request: IncomingMessage, requestId: string, endpoint: EndpointParts): Promise<Answer> {
  const target = String(request.headers['x-amz-target']);
  const action = target.slice(target.lastIndexOf('.') + 1);
  try {
    const body = (await readBody(request, MAX_JSON_BYTES)).toString();
    if (request.headers.authorization === undefined)
      throw new AwsError('MissingAuthenticationTokenException', 'Missing Authentication Token');
    // Everything else is harmless in the hands of any local program; this runs shell commands as the user.
    if (target.startsWith(SSM_TARGET) && !isSignedWith(request, endpoint.control.token))
      throw new AwsError('AccessDeniedException', 'Commands need the control token of the sandbox as the access key');
    const region = scopeRegionOf(request.headers.authorization);
    endpoint.regions.refuseOutage(region);
    const run = (await endpoint.regions.of(region)).jsonActions.get(target);
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
  let input: unknown;
  try {
    input = JSON.parse(body || '{}');
  } catch {
    // Reported below, like everything else that is not an object.
  }
  if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input as Record<string, unknown>;
  throw new AwsError('SerializationException', 'The request is not a JSON object');
}

const json = (status: number, body: Record<string, unknown>): Answer =>
  plainAnswer(status, 'application/x-amz-json-1.1', JSON.stringify(body));

/** The largest body, more than any call needs: 1,000 ids, or user data of maximum size. */
const MAX_BODY_BYTES = 1_000_000;

/** True for requests of the query protocol; all others are S3's. */
function isQueryRequest(request: IncomingMessage): boolean {
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  if (path !== '/' && path !== '') return false;
  const form = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
  return (request.method === 'POST' && form) || /(^|&)Action=/.test(query);
}

async function answerQuery(request: IncomingMessage, requestId: string, endpoint: EndpointParts): Promise<Answer> {
  const query = (request.url ?? '/').split('?', 2)[1] ?? '';
  let service: QueryService = 'ec2';
  let action = '';
  try {
    const body = request.method === 'POST' ? (await readBody(request, MAX_BODY_BYTES)).toString() : '';
    const values = new Map([...new URLSearchParams(query), ...new URLSearchParams(body)]);
    const credential = request.headers.authorization ?? values.get('X-Amz-Credential');
    const known = serviceOf(credential, values.get('Version'));
    service = known ?? 'ec2';
    action = values.get('Action') ?? '';
    if (credential === undefined)
      throw new AwsError('MissingAuthenticationToken', 'Request is missing Authentication Token', 403);
    const name = scopeRegionOf(credential);
    endpoint.regions.refuseOutage(name);
    const region = await endpoint.regions.of(name);
    const run = known === null ? undefined : region.actions[service].get(action);
    if (!run) throw new AwsError('InvalidAction', `The action ${action} is not valid for this web service.`);
    const faults = endpoint.faults.takeForCall(action);
    if (faults.lost) return { ...xml(503, ''), faults };
    if (faults.error) throw new AwsError(faults.error.code, faults.error.message, faults.error.status);
    const params = new Params(values, service);
    const scale = endpoint.conditions.now.requestLimits;
    if (scale !== null && service === 'ec2') region.limits.take(action, params, scale);
    const result = await run(params, signingInstance(credential));
    endpoint.log.write('call', { service, action, requestId });
    return { ...xml(200, queryReply(service, action, result, requestId)), faults };
  } catch (thrown) {
    const error = toAwsError(thrown, 'InternalError', endpoint.log);
    endpoint.log.write('call', { service, action, requestId, error: error.code });
    return xml(error.status, queryError(service, error, requestId));
  }
}

const xml = (status: number, body: string): Answer => plainAnswer(status, 'text/xml;charset=UTF-8', body);
