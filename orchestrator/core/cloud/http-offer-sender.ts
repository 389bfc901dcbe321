/** Sends offers through the load balancer over HTTP, signed with the run's key. */
import { Agent, request } from 'undici';
import { describeError } from '../../../shared/domain/errors.ts';
import { type Offer, offerPath, receiptSchema, refusalSchema } from '../../../shared/wire/instance-api.ts';
import { HEADER, envelopeHeaders, importPrivateKey, signMessage } from '../../../shared/wire/signature.ts';
import type { OfferResult, OfferSender } from './offers.ts';

/** An instance answers in milliseconds; a load balancer gives up after 60 s. */
const TIMEOUT_MS = 15_000;

export class HttpOfferSender implements OfferSender {
  readonly #agent: Agent;

  /** @param serverName of the certificate of an HTTPS listener, which is not the load balancer's host name */
  constructor(serverName?: string) {
    this.#agent = new Agent({
      connections: 16,
      connect: { timeout: 5_000, ...(serverName === undefined ? {} : { servername: serverName }) },
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
  }

  async send(balancerUrl: string, run: { id: string; privateKey: string }, offer: Offer): Promise<OfferResult> {
    const body = JSON.stringify(offer);
    const path = offerPath(run.id);
    const envelope = { method: 'POST', path, run: run.id };
    const headers = {
      'content-type': 'application/json',
      ...envelopeHeaders(envelope, signMessage(importPrivateKey(run.privateKey), envelope, body)),
    };
    try {
      const reply = await request(balancerUrl + path, { method: 'POST', headers, body, dispatcher: this.#agent });
      const text = await reply.body.text();
      return readReply(reply.statusCode, reply.headers[HEADER.instance] !== undefined, text);
    } catch (error) {
      return { kind: isFromBeforeConnection(error) ? 'unreachable' : 'unknown', message: describeError(error) };
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** Codes of undici, of the system and of TLS for a connection that was not made. */
const CONNECT_CODES = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  // The handshake comes before the request.
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** True for an error that rules out a delivered chunk: without a connection nothing was sent. */
export function isFromBeforeConnection(error: unknown): boolean {
  const { code, syscall, errors } = (error ?? {}) as { code?: string; syscall?: string; errors?: unknown[] };
  // A host name with several addresses: each was tried.
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isFromBeforeConnection);
  return CONNECT_CODES.has(code ?? '') || syscall === 'connect' || syscall === 'getaddrinfo';
}

function readReply(status: number, fromInstance: boolean, text: string): OfferResult {
  if (!fromInstance) {
    // A load balancer without targets sends 503. 502 and 504 may follow a delivery.
    return status === 503
      ? { kind: 'not-ready', message: 'HTTP 503' }
      : { kind: 'unknown', message: `HTTP ${status}, not from an instance` };
  }
  try {
    if (status === 202) return { kind: 'taken', receipt: receiptSchema.parse(JSON.parse(text)) };
    if (status === 409) return { kind: 'refused', refusal: refusalSchema.parse(JSON.parse(text)) };
  } catch (error) {
    return { kind: 'unknown', message: `HTTP ${status} with an unreadable body: ${describeError(error)}` };
  }
  if (status === 503) return { kind: 'not-ready', message: text };
  return { kind: 'invalid', message: `HTTP ${status}: ${text.slice(0, 300)}` };
}
