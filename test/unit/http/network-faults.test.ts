/** What a user reads about a site that cannot be reached. */
import { describe, expect, it } from 'vitest';
import { describeNetworkError } from '../../../shared/adapters/http/network-faults.ts';

const error = (code: string, message: string, more: object = {}): Error =>
  Object.assign(new Error(message), { code, ...more });

describe('a network error', () => {
  it.each<[sentence: string, error: Error]>([
    ['the name does not exist: getaddrinfo ENOTFOUND a', error('ENOTFOUND', 'getaddrinfo ENOTFOUND a')],
    ['no name server answers: look-up ETIMEOUT a', error('ETIMEOUT', 'look-up ETIMEOUT a')],
    ['the name servers cannot resolve the name: look-up ESERVFAIL a', error('ESERVFAIL', 'look-up ESERVFAIL a')],
    [
      'nothing listens on that port: connect ECONNREFUSED 1.2.3.4:1',
      new AggregateError([error('ECONNREFUSED', 'connect ECONNREFUSED 1.2.3.4:1')], ''),
    ],
    [
      'the certificate of the server has expired: CERT_HAS_EXPIRED',
      error('CERT_HAS_EXPIRED', 'certificate has expired'),
    ],
    [
      'the certificate of the server is self-signed: DEPTH_ZERO_SELF_SIGNED_CERT',
      error('DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate; try running Node.js with --use-system-ca'),
    ],
    [
      'the certificate of the server is for another host: Host: a is not in the list',
      error('ERR_TLS_CERT_ALTNAME_INVALID', 'Hostname/IP does not match', { reason: 'Host: a is not in the list' }),
    ],
    [
      'the server uses only outdated versions of TLS: tlsv1 alert protocol version',
      error('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', '40:error:0A:SSL routines\n', {
        reason: 'tlsv1 alert protocol version',
      }),
    ],
    [
      'the TLS handshake with the server failed: bad record',
      error('ERR_SSL_SOMETHING_NEW', 'x', { reason: 'bad record' }),
    ],
    [
      'no route leads to the server: connect ENETUNREACH 1.2.3.4',
      error('ENETUNREACH', 'connect ENETUNREACH 1.2.3.4', { address: '1.2.3.4' }),
    ],
    [
      'the site was asked over IPv6, which this machine lacks: connect ENETUNREACH ::9',
      error('ENETUNREACH', 'connect ENETUNREACH ::9', { address: '::9' }),
    ],
    ['something else', error('EOTHER', 'something else\nwith more lines')],
    ['unknown', error('', '', { name: '' })],
  ])('is one line: %s', (sentence, fault) => {
    expect(describeNetworkError(fault)).toBe(sentence);
  });
});
