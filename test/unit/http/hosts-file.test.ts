import { expect, it } from 'vitest';
import { parseHosts } from '../../../shared/adapters/http/hosts-file.ts';

const TEXT = `# The machine
127.0.0.1\tlocalhost
::1 localhost ip6-localhost # both
  10.0.0.5   Shop.Example www.shop.example.   alias
10.0.0.6 shop.example
10.0.0.6 shop.example
not-an-address ignored.example
10.0.0.7
#10.0.0.8 commented.example\r
10.0.0.9 last.example`;

it('a hosts file has several names a line, both families, and comments', () => {
  const names = parseHosts(TEXT);
  expect([...names.keys()]).toEqual([
    'localhost',
    'ip6-localhost',
    'shop.example',
    'www.shop.example',
    'alias',
    'last.example',
  ]);
  expect(names.get('localhost')).toEqual([
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]);
  expect(names.get('shop.example')).toEqual([
    { address: '10.0.0.5', family: 4 },
    { address: '10.0.0.6', family: 4 },
  ]);
});
