/** An HTTP endpoint that answers EC2 and ELBv2 calls from a script, for faults that no real endpoint has on demand. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Answer =
  | { status: number; body: string; contentType?: string }
  /** Cuts the connection after reading the request. */
  | 'reset'
  /** Never answers. */
  | 'silence';

export interface ScriptedEndpoint {
  endpoint: string;
  /** Parameters of every call, in order. */
  calls: URLSearchParams[];
  stop(): Promise<void>;
}

export async function startScriptedEndpoint(
  answer: (call: URLSearchParams, n: number) => Answer,
): Promise<ScriptedEndpoint> {
  const calls: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const call = new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
      calls.push(call);
      const reply = answer(call, calls.length);
      if (reply === 'reset') request.socket.destroy();
      else if (reply !== 'silence') {
        response.writeHead(reply.status, { 'content-type': reply.contentType ?? 'text/xml' });
        response.end(reply.body);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const ec2Error = (code: string, status = 400): Answer => ({
  status,
  body: `<Response><Errors><Error><Code>${code}</Code><Message>message of ${code}</Message></Error></Errors></Response>`,
});

export const elbError = (code: string): Answer => ({
  status: 400,
  body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>message of ${code}</Message></Error></ErrorResponse>`,
});

/** A page of DescribeInstances. */
export const instancesPage = (ids: readonly string[], nextToken?: string, tagValue = 'run-1'): Answer => ({
  status: 200,
  body: `<DescribeInstancesResponse><reservationSet>${ids
    .map(
      (id) =>
        `<item><instancesSet><item><instanceId>${id}</instanceId><instanceState><name>running</name></instanceState><tagSet><item><key>crawlfleet:run</key><value>${tagValue}</value></item></tagSet></item></instancesSet></item>`,
    )
    .join('')}</reservationSet>${nextToken ? `<nextToken>${nextToken}</nextToken>` : ''}</DescribeInstancesResponse>`,
});

export const HTML_500: Answer = {
  status: 500,
  body: '<!doctype html><title>500</title><p>oops',
  contentType: 'text/html',
};
export const EMPTY_200: Answer = { status: 200, body: '' };
