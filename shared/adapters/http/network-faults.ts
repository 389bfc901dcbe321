/** Why a site could not be reached, in words for the user: the same for pages, robots.txt and sitemaps. */
import { isIPv6 } from 'node:net';
import { describeError } from '../../domain/errors.ts';

const CLOSED = 'the server has closed the connection';
const UNKNOWN_ISSUER =
  'the certificate of the server is of an unknown authority, or the server does not send the whole chain';

const MEANINGS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the name does not exist',
  ENODATA: 'the name has no address',
  EAI_AGAIN: 'no name server answers',
  EAI_FAIL: 'the name servers cannot resolve the name',
  // The next three are of NameResolver; a connection that times out is ETIMEDOUT.
  ETIMEOUT: 'no name server answers',
  ESERVFAIL: 'the name servers cannot resolve the name',
  EREFUSED: 'the name servers cannot resolve the name',
  ECONNREFUSED: 'nothing listens on that port',
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  KEPT_CONNECTION_CLOSED: CLOSED,
  ETIMEDOUT: 'the server does not answer',
  UND_ERR_CONNECT_TIMEOUT: 'the server does not answer',
  EHOSTUNREACH: 'no route leads to the server',
  ENETUNREACH: 'no route leads to the server',
  CERT_HAS_EXPIRED: 'the certificate of the server has expired',
  CERT_NOT_YET_VALID: 'the certificate of the server is not valid yet, or the clock of this machine is wrong',
  CERT_REVOKED: 'the certificate of the server is revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the server is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_ISSUER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_ISSUER,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the server is for another host',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not use TLS on that port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not use TLS on that port',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the server uses only outdated versions of TLS',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the server uses only outdated versions of TLS',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'the server speaks only HTTP/2, which the crawl does not',
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'the server does not know this host',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'the server asks for a certificate of the client',
};

/** One line: the meaning, where known, and the text of the error. */
export function describeNetworkError(error: unknown): string {
  const { code = '', reason, address } = detailsOf(error);
  const [text = ''] = (reason ?? describeError(error)).split('\n', 1);
  const known = Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined;
  const isRoute = code === 'EHOSTUNREACH' || code === 'ENETUNREACH';
  if (isRoute && isIPv6(address ?? '')) return `the site was asked over IPv6, which this machine lacks: ${text}`;
  // Node's texts for certificates advise how to run Node.
  if (known?.startsWith('the certificate') && reason === undefined) return `${known}: ${code}`;
  if (known !== undefined) return `${known}: ${text}`;
  return /^ERR_(?:SSL|TLS)_|^EPROTO$/.test(code)
    ? `the TLS handshake with the server failed: ${text}`
    : text || 'unknown';
}

interface Details {
  code?: string;
  /** The text of an error of TLS, without codes. */
  reason?: string;
  address?: string;
}

function detailsOf(error: unknown): Details {
  if (error instanceof AggregateError) return detailsOf(error.errors[0]);
  if (!(error instanceof Error)) return {};
  const { code, reason, address } = error as Error & { [name in keyof Details]: unknown };
  return {
    ...(typeof code === 'string' && { code }),
    ...(typeof reason === 'string' && { reason }),
    ...(typeof address === 'string' && { address }),
  };
}
