/** `site.headers`, `site.cookies` and `site.language` in the configuration, and what instances send by it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { siteSettingsOf } from '../../../../orchestrator/core/config/site-section.ts';
import { readSiteSecrets, withoutSecrets } from '../../../../orchestrator/core/config/user-headers.ts';
import { discoveryConfig } from '../../../../orchestrator/features/discovery/discovery-config.ts';
import { siteSettingsSchema } from '../../../../shared/wire/site-settings.ts';
import { readConfig } from '../../../support/features.ts';

const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-headers-'));
afterAll(() => rmSync(folder, { recursive: true }));

const SECRET = 'marked-secret-1';
const ENVIRONMENT = { SHOP_KEY: SECRET, SHORT: 'EUR', BROKEN: 'a\nb' };

let files = 0;
function read(site: string, more = '', url = '"https://shop.example/item/{id}"') {
  const path = join(folder, `fleet-${++files}.yaml`);
  const lines = `site:\n  product_url: ${url}\n  mapping: { fields: { title: h1 } }\n  ${site}\n`;
  writeFileSync(
    path,
    `${lines}products: { query: q }\ndatabase: { url: "sqlite:./fleet.db" }\nrun: { deadline: 1h }\n${more}`,
  );
  return readConfig(path, ENVIRONMENT);
}

const settingsOf = (...given: Parameters<typeof read>) => siteSettingsOf(read(...given).values.site);
const sentBy = (...given: Parameters<typeof read>) => settingsOf(...given).userHeaders;
function faultOf(...given: Parameters<typeof read>): string {
  try {
    read(...given);
  } catch (error) {
    return (error as Error).message;
  }
  return 'no fault';
}

describe('user headers of a site', () => {
  it('are nothing by default, in the settings, too', () => {
    expect('userHeaders' in settingsOf('interval: 1s')).toBe(false);
  });

  it('go to the authority of product_url, with small letters', () => {
    expect(sentBy('headers: { X-Currency: JPY }\n  cookies: { Region: eu }\n  language: "de-CH, de;q=0.8"')).toEqual([
      {
        origin: 'https://shop.example',
        headers: { 'x-currency': 'JPY', 'accept-language': 'de-CH, de;q=0.8' },
        cookies: { Region: 'eu' },
      },
    ]);
  });

  it('keep the text of a secret, and never its value', () => {
    const config = read('headers: { Authorization: "Bearer ${SHOP_KEY}", X-Text: "a$${b}" }');
    const settings = siteSettingsOf(config.values.site);
    expect(settings.userHeaders![0]!.headers).toEqual({
      authorization: { secret: 'Bearer ${SHOP_KEY}' },
      'x-text': 'a${b}',
    });
    expect(siteSettingsSchema.parse(settings)).toEqual(settings);
    expect(JSON.stringify(config)).not.toContain(SECRET);
  });

  it('may be those of one domain, which win over those of the site', () => {
    const url =
      '[{ url: "https://a.example/{id}", weight: 2, headers: { x-currency: EUR }, language: fr }, { url: "https://b.example:8443/{id}", cookies: { c: "1" } }]';
    const settings = settingsOf('headers: { X-Currency: JPY }\n  language: ja', '', url);
    expect(settings.userHeaders).toEqual([
      { origin: 'https://a.example', headers: { 'x-currency': 'EUR', 'accept-language': 'fr' }, cookies: {} },
      {
        origin: 'https://b.example:8443',
        headers: { 'x-currency': 'JPY', 'accept-language': 'ja' },
        cookies: { c: '1' },
      },
    ]);
    expect(siteSettingsSchema.parse(settings).productUrl).toEqual([
      { url: 'https://a.example/{id}', weight: 2 },
      { url: 'https://b.example:8443/{id}', weight: 1 },
    ]);
  });

  it('are those of the first domain in a discovery', () => {
    const url = '[{ url: "https://a.example/{id}", language: fr }, { url: "https://b.example/{id}", language: it }]';
    const more = 'discover: { seeds: ["https://a.example/"], into: { table: found, id: "/(\\\\w+)" } }\n';
    expect(siteSettingsOf(discoveryConfig(read('interval: 1s', more, url)).values.site).userHeaders).toEqual([
      { origin: 'https://a.example', headers: { 'accept-language': 'fr' }, cookies: {} },
    ]);
  });

  it.each([
    [
      'headers: { X-Forwarded-For: 192.0.2.1 }',
      'site.headers.X-Forwarded-For: is refused: it states where a request comes from',
    ],
    ['headers: { cookie: a }', 'is refused: site.cookies sends cookies'],
    ['headers: { "X Y": a }', 'is no name'],
    ['headers: { X-A: "1", x-a: "2" }', 'site.headers.x-a: is named twice'],
    ['headers: { X-A: 5 }', 'site.headers.X-A: must be a text, in quotes'],
    ['headers: { X-A: "größer" }', 'site.headers.X-A: may have letters, digits and signs of ASCII only'],
    ['headers: { X-A: "${BROKEN}" }', 'site.headers.X-A: may have letters, digits and signs of ASCII only'],
    ['headers: { X-A: "" }', 'site.headers.X-A: is empty'],
    ['headers: { X-A: "${NONE}" }', 'the variable NONE is not set'],
    ['cookies: { a: "b; c=d" }', 'site.cookies.a: may have neither a blank nor a ;'],
    ['language: "de de"', 'site.language: must be languages such as'],
    ['headers: { Accept-Language: de }\n  language: fr', 'says the same as site.language'],
  ])('refuses %s', (site, fault) => {
    expect(faultOf(site)).toContain(fault);
  });

  it('quotes no secret in a fault', () => {
    expect(faultOf('cookies: { a: "x ${SHOP_KEY}" }')).not.toContain(SECRET);
  });
});

describe('readSiteSecrets', () => {
  const site = { userHeaders: sentBy('headers: { X-Key: "Key ${SHOP_KEY}" }\n  cookies: { c: "${SHORT}" }')! };

  it('gives the values by their texts', () => {
    expect(readSiteSecrets(site, { environment: ENVIRONMENT, folder })).toEqual({
      values: { 'Key ${SHOP_KEY}': `Key ${SECRET}`, '${SHORT}': 'EUR' },
      masked: [SECRET, 'EUR'],
    });
  });

  it('reads .env and files again, and the environment wins', () => {
    const place = { environment: { SHORT: 'EUR' }, folder };
    for (const value of ['first-value', 'second-value']) {
      writeFileSync(join(folder, '.env'), `SHOP_KEY=${value}\nSHORT=USD\n`);
      expect(readSiteSecrets(site, place).masked).toEqual([value, 'EUR']);
    }
    rmSync(join(folder, '.env'));
  });

  it('throws without quoting when a value is missing or cannot be sent', () => {
    expect(() => readSiteSecrets(site, { environment: { SHORT: 'EUR' }, folder })).toThrow('SHOP_KEY is not set');
    const broken = { ...ENVIRONMENT, SHOP_KEY: 'a\nb' };
    expect(() => readSiteSecrets(site, { environment: broken, folder })).toThrow('site.headers.x-key may have letters');
  });

  it('keeps the secrets from programs that outlive the main server', () => {
    expect(withoutSecrets(site, { ...ENVIRONMENT, PATH: '/bin' })).toEqual({
      environment: { BROKEN: 'a\nb', PATH: '/bin' },
    });
    expect(withoutSecrets({}, ENVIRONMENT)).toEqual({});
  });
});
