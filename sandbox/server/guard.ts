/**
 * Restricts access to local programs that address the sandbox on purpose. A web page can make a browser send requests
 * to loopback, directly (then they have an Origin header) or through a host name that resolves to 127.0.0.1 (then the
 * Host header is that name); both are refused before any other check.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Why the request is refused; null when it is allowed. */
export function refusalOf(request: IncomingMessage): string | null {
  if (request.headers.origin !== undefined)
    return 'Requests with an Origin header are refused: this service is not for web pages.';
  if (!isLoopbackHost(request.headers.host))
    return 'The Host header is not an address of this machine. Use the endpoint as the sandbox printed it, with path-style S3 addressing.';
  return null;
}

/** `127.0.0.1:4566`, `localhost`, `[::1]:80` */
export function isLoopbackHost(host: string | undefined): boolean {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(host ?? '');
  const name = (match?.[1] ?? match?.[2] ?? '').toLowerCase();
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}
