import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { glossaryOf } from '../../../../orchestrator/features/serve/bundle-page.ts';
import { wordsIn } from '../../../../orchestrator/features/serve/page/words-in.ts';

const GLOSSARY = glossaryOf(readFileSync(new URL('../../../../docs/glossary.md', import.meta.url), 'utf8'));
const marked = (text: string) => wordsIn(text, GLOSSARY).flatMap(({ word }) => word ?? []);

describe('the words of the project on the page', () => {
  it('are those of the glossary, in plain text', () => {
    for (const word of ['slot', 'epoch', 'chunk', 'canary page', 'p50', 'p95', 'offer', 'receipt', 'grant'])
      expect(GLOSSARY[word], word).toMatch(/^[A-Z].*\.$/);
    expect(Object.values(GLOSSARY).join('')).not.toMatch(/[*`]|\]\(/);
  });

  it('are found in any case, in the plural, each once', () => {
    expect(marked('Slots 3-5 are claimed; slot 9 returned chunks (p95)')).toEqual(['slot', 'chunk', 'p95']);
    expect(marked('a canary page and a Run')).toEqual(['canary page', 'run']);
  });

  it('are not found within other words and names', () => {
    expect(marked('running the parted run.deadline at shop.slot.example/chunk 20260101-run')).toEqual([]);
  });

  it('leave the text as it is', () => {
    for (const text of ['', 'slot', 'no such word', 'slot 3, epoch 1: slot', '<b>run</b>'])
      expect(
        wordsIn(text, GLOSSARY)
          .map((part) => part.text)
          .join(''),
      ).toBe(text);
  });
});
