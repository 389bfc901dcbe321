/**
 * Serves one file to this machine only, so that a saved page is read exactly as one from a site: same decoding, same
 * limits.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { listen, stopListening } from '../server/listen.ts';

export interface FileServer {
  url: string;
  close(): Promise<void>;
}

/** A saved page has lost its headers; its format is detected as for a site that sends none. */
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.htm': 'text/html',
  '.xhtml': 'application/xhtml+xml',
  '.xml': 'application/xml',
  '.json': 'application/json',
};

/** Rejects when the file cannot be read. */
export async function serveFile(file: string): Promise<FileServer> {
  const bytes = await readFile(file);
  const type = TYPES[path.extname(file).toLowerCase()];
  // Other programs on the machine must not get the file by guessing the port.
  const route = `/${randomUUID()}`;
  const server = await listen(
    (request, response) => {
      if (request.url !== route) {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, {
        'content-length': bytes.length,
        ...(type === undefined ? {} : { 'content-type': type }),
      });
      response.end(bytes);
    },
    '127.0.0.1',
    0,
  );
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${route}`, close: () => stopListening(server) };
}
