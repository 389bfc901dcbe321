/** Small parts that several views share. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Evidence } from '../../../../shared/domain/verdict.ts';
import { NeedsToken, signIn } from './api.ts';
import { Words } from './words.tsx';
import { clock, date, isUnbreakable, utc, withZone } from './format.ts';

export type Tone = 'good' | 'late' | 'bad' | 'plain';

const SIGNS: Record<Tone, string> = { good: '✓', late: '!', bad: '✕', plain: '' };

/** A state in words; its colour and sign only repeat them. */
export function Pill({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`pill ${tone}`}>
      {SIGNS[tone] !== '' && <span aria-hidden="true">{SIGNS[tone]} </span>}
      {children}
    </span>
  );
}

export function Time({ at, withDate = false }: { at: number | string; withDate?: boolean }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={utc(at)}>
      {withDate && `${date(at)}, `}
      {clock(at)}
    </time>
  );
}

/** With day and zone, for what somebody acts on. */
export function ZonedTime({ at }: { at: number | string }) {
  return (
    <time class="whole" dateTime={new Date(at).toISOString()} title={utc(at)}>
      {withZone(at)}
    </time>
  );
}

/** A figure with its name, and a second line that says what it is compared with. */
export function Fact({
  name,
  children,
  note,
  tone = 'plain',
}: {
  name: string;
  children: ComponentChildren;
  note?: string | undefined;
  tone?: Tone;
}) {
  return (
    <div class={`fact ${tone}`}>
      <dt>
        <Words text={name} />
      </dt>
      <dd>{children}</dd>
      {note !== undefined && (
        <dd class="note">
          <Words text={note} />
        </dd>
      )}
    </div>
  );
}

export function Section({
  title,
  children,
  aside,
}: {
  title: string;
  children: ComponentChildren;
  aside?: ComponentChildren;
}) {
  return (
    <section class="card">
      <h2>
        <span>
          <Words text={title} />
        </span>
        {aside !== undefined && <span class="aside">{aside}</span>}
      </h2>
      {children}
    </section>
  );
}

/** Events in their order. A long list scrolls, so the keyboard must reach it. */
export function Timeline({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <ol class="story" tabIndex={0} aria-label={label}>
      {children}
    </ol>
  );
}

export interface Column<T> {
  head: string;
  of: (row: T) => ComponentChildren;
  /** `n` for numbers. */
  class?: string;
}

/** @param stacks on a narrow screen each row becomes a list, for what must be read without scrolling sideways */
export function Table<T>({
  label,
  columns,
  rows,
  stacks = false,
}: {
  label: string;
  columns: Column<T>[];
  rows: T[];
  stacks?: boolean;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={stacks ? 'stacks' : ''}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} class={column.class === 'n' ? 'n' : ''}>
                <Words text={column.head} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {columns.map((column) => {
                const content = column.of(row);
                const ownClass = typeof content !== 'string' ? '' : isUnbreakable(content) ? 'whole' : 'wide';
                return (
                  <td key={column.head} class={column.class ?? ownClass} data-head={column.head}>
                    {content}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Follows a link inside the page. */
export function go(path: string): void {
  history.pushState(null, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
}

/** Only an address of the web is a link: it comes from a product list. */
export function SiteLink({ url }: { url: string }) {
  if (!/^https?:\/\//i.test(url)) return <code>{url}</code>;
  return (
    <a href={url} rel="noreferrer">
      {url}
    </a>
  );
}

/** What went wrong, and the way on: a token, or waiting. */
export function Fault({ error }: { error: Error }) {
  const isToken = error instanceof NeedsToken;
  useEffect(() => {
    if (isToken) askForToken(error.message);
  }, [isToken]);
  return (
    <p class="fault" role="alert">
      {error.message} {isToken && <button onClick={() => askForToken(error.message)}>Enter the token</button>}
    </p>
  );
}

/** Opens the page's one dialog for the token. */
export function askForToken(text: string): void {
  dispatchEvent(new CustomEvent('ask-token', { detail: text }));
}

/** Asks for the operator's token, has the server check it, and keeps it in this tab. */
export function TokenDialog() {
  const [text, setText] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const onAsk = (event: Event): void => {
      setFault(null);
      setText((event as CustomEvent<string>).detail);
      if (dialog.current?.open === false) dialog.current.showModal();
    };
    addEventListener('ask-token', onAsk);
    return () => removeEventListener('ask-token', onAsk);
  }, []);
  const onSubmit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    try {
      await signIn((new FormData(form).get('token') as string).trim());
      form.reset();
      dialog.current?.close();
      dispatchEvent(new Event('token'));
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <dialog ref={dialog} aria-label="Sign in" class="token">
      <form onSubmit={(event) => void onSubmit(event)}>
        <p>{text}</p>
        <label>
          Operator token <input name="token" type="password" autocomplete="off" required />
        </label>
        {fault !== null && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
        <div class="row">
          <button>Sign in</button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Everything here comes from the site: text, never HTML. */
export function EvidenceView({ evidence }: { evidence: Evidence }) {
  const { status, url, rule, headers, body, request } = evidence;
  return (
    <details class="evidence">
      <summary>
        Evidence: {rule}
        {status !== null && `, HTTP ${status}`}
      </summary>
      <p class="url">{url}</p>
      {request && <pre tabIndex={0}>POST {request.body}</pre>}
      {Object.keys(headers).length > 0 && (
        <pre tabIndex={0}>
          {Object.entries(headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join('\n')}
        </pre>
      )}
      {body !== '' && <pre tabIndex={0}>{body}</pre>}
    </details>
  );
}

/** Calls `onToken` whenever the operator's token is given or forgotten. */
export function useToken(onToken: () => void): void {
  useEffect(() => {
    addEventListener('token', onToken);
    return () => removeEventListener('token', onToken);
  }, []);
}

/** Loads once, and again after signing in. */
export function useLoaded<T>(load: () => Promise<T>): { value: T | null; error: Error | null; reload: () => void } {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    const run = async (): Promise<void> => {
      try {
        const loaded = await load();
        if (!isCurrent) return;
        setValue(loaded);
        setError(null);
      } catch (failure) {
        if (isCurrent) setError(failure instanceof Error ? failure : new Error(String(failure)));
      }
    };
    void run();
    return () => void (isCurrent = false);
  }, [round]);
  const reload = (): void => setRound((n) => n + 1);
  useToken(reload);
  return { value, error, reload };
}

/** Asks before `action` is carried out, in the browser's own modal dialog element. */
export function Confirm({
  question,
  action,
  label,
  onDone,
}: {
  question: string;
  action: () => Promise<void>;
  label: string;
  onDone: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onDone} aria-label={question}>
      <p>{question}</p>
      <form method="dialog" class="row">
        <button
          class="danger"
          onClick={(event) => {
            event.preventDefault();
            void action().finally(() => dialog.current?.close());
          }}
        >
          {label}
        </button>
        <button autofocus>Leave it</button>
      </form>
    </dialog>
  );
}
