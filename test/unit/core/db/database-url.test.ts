import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseDatabaseUrl } from '../../../../orchestrator/core/db/database-url.ts';

describe('parseDatabaseUrl', () => {
  it('parses a MySQL URL and keeps the password out of the label', () => {
    expect(parseDatabaseUrl('mysql://fleet:p%40ss%2F1@db.example:3307/shop?ssl=true')).toEqual({
      engine: 'mysql',
      host: 'db.example',
      port: 3307,
      user: 'fleet',
      password: 'p@ss/1',
      database: 'shop',
      tls: true,
      label: 'database shop at db.example:3307 as user fleet',
    });
  });

  it('accepts mariadb://, IPv6 hosts and the default port', () => {
    expect(parseDatabaseUrl('mariadb://u@[::1]/x')).toMatchObject({
      host: '::1',
      port: 3306,
      password: '',
      tls: false,
    });
  });

  it.each([
    ['sqlite:./fleet.db', resolve('fleet.db')],
    ['sqlite:fleet.db', resolve('fleet.db')],
    ['sqlite:/var/lib/fleet.db', '/var/lib/fleet.db'],
    ['sqlite:///var/lib/fleet.db', '/var/lib/fleet.db'],
  ])('reads %s', (url, file) => {
    expect(parseDatabaseUrl(url)).toMatchObject({ engine: 'sqlite', file });
  });

  it.each([
    'fleet.db',
    'postgres://u:secret@h/x',
    'sqlite:',
    'sqlite::memory:',
    'mysql://h/x',
    'mysql://u:secret@h',
    'mysql://u:secret@h/a/b',
    'mysql://u:%zz@h/x',
    'mysql://u:secret@h/x?charset=latin1',
    'mysql://u:sec#ret@h:x/y',
  ])('refuses %s without printing the password', (url) => {
    try {
      parseDatabaseUrl(url);
    } catch (error) {
      expect(error).toMatchObject({ code: 'config-invalid' });
      expect((error as Error).message).not.toContain('secret');
      return;
    }
    expect.unreachable();
  });
});
