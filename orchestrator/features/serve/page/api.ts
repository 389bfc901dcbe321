/** Talks to the server that this page came from. The token stays in this tab. */
import type { ProductDocument } from '../../../core/read/product-document.ts';
import type { RunSummary } from '../../../core/read/run-documents.ts';
import type { RunEvent } from '../../../core/model/stores.ts';
import type { LiveEvent } from '../live-run.ts';
import type { ProductsDocument, RunAction } from '../serve-app.ts';

const TOKEN = 'crawlfleet-token';

export const token = {
  get: (): string | null => sessionStorage.getItem(TOKEN),
  set(value: string | null): void {
    if (value === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, value);
  },
};

/** The server wants the operator's token, or another one. */
export class NeedsToken extends Error {}

async function call(path: string, options: RequestInit = {}, given = token.get()): Promise<Response> {
  const headers = given === null ? {} : { authorization: `Bearer ${given}` };
  const response = await fetch(path, { ...options, headers, cache: 'no-store' });
  if (response.ok) return response;
  const answer = (await response.json().catch(() => ({}))) as { error?: string; hint?: string | null };
  const text = [answer.error ?? `the server answers ${response.status}`, answer.hint].filter(Boolean).join('. ');
  throw response.status === 401 ? new NeedsToken(text) : new Error(text);
}

/** Keeps the token in this tab, if the server takes it. Throws the server's words otherwise. */
export async function signIn(given: string): Promise<void> {
  await call('/api/token', {}, given);
  token.set(given);
}

export interface RunList {
  runs: RunSummary[];
  /** False while the server has no token: then no button works. */
  canAct: boolean;
  /** When the schedule starts the next run; null without one. */
  nextDue: string | null;
}

const path = (...parts: string[]): string => `/api/${parts.map(encodeURIComponent).join('/')}`;

export const listRuns = async (): Promise<RunList> => (await call(path('runs'))).json() as Promise<RunList>;

export const readProduct = async (id: string): Promise<ProductDocument> =>
  (await call(path('products', id))).json() as Promise<ProductDocument>;

export const findProducts = async (run: string, query: Record<string, string>): Promise<ProductsDocument> =>
  (
    await call(`${path('runs', run, 'products')}?${new URLSearchParams(query).toString()}`)
  ).json() as Promise<ProductsDocument>;

/** The last lines of the run's log. */
export const readLog = async (run: string): Promise<string> =>
  ((await (await call(path('runs', run, 'log'))).json()) as { lines: string[] }).lines.join('\n');

export const readSettings = async (run: string): Promise<string> =>
  JSON.stringify(await (await call(path('runs', run, 'settings'))).json(), null, 2);

/** Saves the rows of a run as a file. A link cannot send the token: with one, the page fetches them first. */
export async function downloadRows(run: string, ending: 'csv' | 'ndjson'): Promise<void> {
  const link = document.createElement('a');
  link.href = path('runs', run, `rows.${ending}`);
  link.download = `${run}.${ending}`;
  if (token.get() !== null) link.href = URL.createObjectURL(await (await call(link.href)).blob());
  link.click();
  // The browser has begun to save it by then.
  if (link.protocol === 'blob:') setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const readSlot = async (run: string, slot: number): Promise<RunEvent[]> =>
  ((await (await call(path('runs', run, 'slots', String(slot)))).json()) as { events: RunEvent[] }).events;

/** What a retry of the run would start. The server plans it first. */
export const startOfRetry = async (run: string): Promise<string> =>
  ((await (await call(path('runs', run, 'retry'))).json()) as { start: string }).start;

/** What the server says about it. */
export const act = async (run: string, action: RunAction): Promise<string> =>
  ((await (await call(path('runs', run, action), { method: 'POST' })).json()) as { message: string }).message;

/** Slows the run down as `orchestrator pace` does: `interval`, `pause` or `reset`. What the server says about it. */
export const askPace = async (run: string, query: Record<string, string>): Promise<string> => {
  const url = `${path('runs', run, 'pace')}?${new URLSearchParams(query).toString()}`;
  return ((await (await call(url, { method: 'POST' })).json()) as { message: string }).message;
};

/**
 * Calls `onEvent` for every event of the run until the signal aborts, and `onState` with what is wrong (null: nothing).
 * EventSource cannot send the token.
 */
export async function watchRun(
  run: string,
  on: { event: (event: LiveEvent) => void; state: (fault: Error | null) => void },
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const response = await call(path('runs', run, 'events'), { signal });
      on.state(null);
      for await (const event of eventsOf(response.body!)) {
        failures = 0;
        on.event(event);
      }
      throw new Error('the server has closed the connection');
    } catch (error) {
      if (signal.aborted) return;
      on.state(error instanceof Error ? error : new Error(String(error)));
      if (error instanceof NeedsToken) return;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(10_000, 1_000 * 2 ** failures)));
  }
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<LiveEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      const event = /^event: (.+)$/m.exec(block)?.[1];
      const data = /^data: (.+)$/m.exec(block)?.[1];
      if (event !== undefined && data !== undefined) yield { event, data: JSON.parse(data) } as LiveEvent;
    }
  }
}
