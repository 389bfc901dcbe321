/** The words of the project, each with its sentence of the glossary on hover and focus. */
import { useEffect, useId, useState } from 'preact/hooks';
import { wordsIn } from './words-in.ts';

/** docs/glossary.md, put here when the page is bundled. */
declare const GLOSSARY: Readonly<Record<string, string>>;

/**
 * The text with its words of the project marked, each once.
 * @param seen words that texts before have shown: these are explained on hover only, so that the keyboard passes them
 * once
 */
export function Words({ text, seen = new Set() }: { text: string; seen?: Set<string> }) {
  return (
    <>
      {wordsIn(text, GLOSSARY).map(({ text: part, word }, i) => {
        if (word === null) return part;
        const isFirst = !seen.has(word);
        seen.add(word);
        return <Word key={i} shown={part} meaning={GLOSSARY[word]!} isFocusable={isFirst} />;
      })}
    </>
  );
}

/** The widest that an explanation gets, with its distance from the edge, and the room below a word that it needs. */
const WIDTH = 336;
const HEIGHT = 140;

function Word({ shown, meaning, isFocusable }: { shown: string; meaning: string; isFocusable: boolean }) {
  const id = useId();
  const [place, setPlace] = useState<Record<string, string> | null>(null);
  const show = (event: { currentTarget: Element }): void => {
    const word = event.currentTarget.getBoundingClientRect();
    const left = `${Math.max(8, Math.min(word.left, innerWidth - WIDTH))}px`;
    // It touches the word, so that the pointer can go there.
    const isLow = word.bottom + HEIGHT > innerHeight;
    setPlace(isLow ? { left, bottom: `${innerHeight - word.top}px` } : { left, top: `${word.bottom}px` });
  };
  const hide = (): void => setPlace(null);
  // Also where the pointer has opened it, and the focus is elsewhere.
  useEffect(() => {
    if (place === null) return;
    const onKey = (event: KeyboardEvent): void => void (event.key === 'Escape' && hide());
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [place]);
  return (
    <dfn
      class="word"
      tabIndex={isFocusable ? 0 : undefined}
      aria-describedby={id}
      onMouseEnter={show}
      onMouseLeave={hide}
      onFocus={show}
      onBlur={hide}
    >
      {shown}
      <span id={id} role="tooltip" hidden={place === null} style={place ?? {}}>
        {meaning}
      </span>
    </dfn>
  );
}
