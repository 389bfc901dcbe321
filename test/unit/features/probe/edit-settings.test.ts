/** Settings written into a YAML text. */
import { describe, expect, it } from 'vitest';
import { editText } from '../../../../orchestrator/core/config/edit-settings.ts';

const TEXT = `# Our shop.
site:
  interval:   10s          # start to start
  ban: { statuses: [403], cool_down: 30m }   # the 403 is theirs
run: {deadline: 4h}
`;
const INTERVAL = { path: ['site', 'interval'], value: '20s' };
const COOL_DOWN = { path: ['site', 'ban', 'cool_down'], value: '45m' };

describe('editText', () => {
  it('replaces a value and leaves every other character', () => {
    expect([INTERVAL, COOL_DOWN].reduce(editText, TEXT)).toBe(TEXT.replace('10s', '20s').replace('30m', '45m'));
  });

  it('adds a missing key, with the mappings around it, and keeps the comments', () => {
    const text = '# Our shop.\nsite:\n  # a page\n  product_url: "https://shop.example/{id}" # by number\n';
    expect(editText(text, COOL_DOWN)).toBe(`${text}  ban:\n    cool_down: 45m\n`);
  });

  it('keeps the lines of a file from Windows', () => {
    expect(editText('site:\r\n  interval: 10s\r\n', INTERVAL)).toBe('site:\r\n  interval: 20s\r\n');
  });
});
