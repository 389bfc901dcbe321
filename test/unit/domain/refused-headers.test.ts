/** Which names `site.headers` may have. */
import { describe, expect, it } from 'vitest';
import { whyRefused } from '../../../shared/domain/refused-headers.ts';

describe('whyRefused', () => {
  it.each([
    ['hop-by-hop', 'Connection Keep-Alive Proxy-Authorization Proxy-Connection TE Trailer Transfer-Encoding Upgrade'],
    ['framing', 'Content-Length Content-Encoding Expect'],
    ['conditional', 'If-None-Match If-Modified-Since If-Match If-Unmodified-Since If-Range'],
    ['range', 'Range Content-Range'],
    ['encoding', 'Accept-Encoding A-IM'],
    [
      'an address or origin',
      'Forwarded Via Origin Referer X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP X-Client-IP Client-IP True-Client-IP X-Cluster-Client-IP X-Originating-IP X-Remote-IP X-Remote-Addr CF-Connecting-IP CF-IPCountry Fastly-Client-IP Fly-Client-IP X-Azure-ClientIP X-ProxyUser-Ip WL-Proxy-Client-IP CloudFront-Viewer-Address X-Original-Forwarded-For Sec-Fetch-Site',
    ],
    ['signature', 'Signature Signature-Input Signature-Agent'],
    ['another request', 'X-HTTP-Method-Override X-Original-URL'],
    ['what crawlfleet sends itself', 'Host Cookie User-Agent Sec-CH-UA X-Crawlfleet-Run'],
  ])('refuses what is %s, in any case and with underscores', (_what, names) => {
    for (const name of names.split(' '))
      for (const spelt of [name, name.toLowerCase(), name.toUpperCase(), name.replaceAll('-', '_')])
        expect(whyRefused(spelt), spelt).not.toBeNull();
  });

  it.each(
    'Accept Accept-Language Authorization X-Api-Key X-Currency X-Country X-Requested-With DNT Save-Data From Cache-Control X-Shop-Region X-Zip-Code X-Ship-To Content-Type X-Tipping Currency X-Client-Version X-Ip-Less'.split(
      ' ',
    ),
  )('lets %s be sent', (name) => {
    expect(whyRefused(name)).toBeNull();
  });
});
