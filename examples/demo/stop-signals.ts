/** Stop signals: Ctrl-C, a closing terminal, a plain kill. Repeated signals count once. */

export interface StopRequest {
  signal: AbortSignal;
  dispose(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Calls back at the first signal. Later ones are ignored: the demo must live until everything it started has ended. */
export function watchStop(onStop: () => void): StopRequest {
  const controller = new AbortController();
  const handler = (): void => {
    if (controller.signal.aborted) return;
    controller.abort();
    onStop();
  };
  for (const signal of SIGNALS) process.on(signal, handler);
  return {
    signal: controller.signal,
    dispose: () => {
      for (const signal of SIGNALS) process.off(signal, handler);
    },
  };
}
