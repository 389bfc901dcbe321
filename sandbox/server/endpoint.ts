/** The single port of the sandbox: EC2, ELBv2, S3 and the control routes, distinguished per request. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { newRequestId } from '../ids.ts';
import type { Answer } from './answer.ts';
import { sendAnswer, toAwsError } from './answer.ts';
import type { Control } from './control.ts';
import { CONTROL_PREFIX, answerControl } from './control.ts';
import { refusalOf } from './guard.ts';
import type { QueryEndpoint } from './query-endpoint.ts';
import { answerQuery, isQueryRequest } from './query-endpoint.ts';
import type { JsonEndpoint } from './json-endpoint.ts';
import { answerJson } from './json-endpoint.ts';
import type { S3Endpoint } from './s3-endpoint.ts';
import { answerS3 } from './s3-endpoint.ts';

export interface EndpointParts extends QueryEndpoint, JsonEndpoint, S3Endpoint {
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // A fleet of a hundred instances connects at once: the default backlog of 511 is too small.
    server.listen(port, '127.0.0.1', 4_096, resolve);
  }).catch((cause: unknown) => {
    throw new AppError('port-taken', `The sandbox cannot listen on 127.0.0.1:${port}`, {
      hint: 'Choose another --port, or 0 for any free one.',
      cause,
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function handle(request: IncomingMessage, response: ServerResponse, parts: EndpointParts): Promise<void> {
  request.on('error', () => {});
  response.on('error', () => {});
  const requestId = newRequestId();
  const answer = await answerTo(request, requestId, parts).catch((thrown: unknown): Answer => {
    const error = toAwsError(thrown, 'InternalError', parts.log);
    return { status: 500, headers: { 'content-type': 'text/plain' }, body: error.message, faults: null };
  });
  await sendAnswer(answer, request, response, parts.clock);
}

async function answerTo(request: IncomingMessage, requestId: string, parts: EndpointParts): Promise<Answer> {
  const refusal = refusalOf(request);
  if (refusal !== null) {
    return { status: 403, headers: { 'content-type': 'text/plain' }, body: `${refusal}\n`, faults: null };
  }
  if (request.url?.startsWith(CONTROL_PREFIX)) return answerControl(request, parts.control);
  if (request.headers['x-amz-target'] !== undefined) return answerJson(request, requestId, parts);
  if (isQueryRequest(request)) return answerQuery(request, requestId, parts);
  return answerS3(request, requestId, parts);
}
