/** Ctrl-C and SIGTERM: the first Ctrl-C asks the run to stop and keep its results, the second leaves at once. */

export interface Interrupts {
  /** Aborts when the program must leave at once. */
  leave: AbortSignal;
  /** What the first Ctrl-C does; before a run exists it leaves. */
  onFirst(handler: () => void): void;
  dispose(): void;
}

export function watchInterrupts(): Interrupts {
  const leave = new AbortController();
  let handler: (() => void) | null = null;
  const onInterrupt = (): void => {
    if (handler === null) return leave.abort();
    const first = handler;
    handler = null;
    first();
  };
  const onTerminate = (): void => leave.abort();
  process.on('SIGINT', onInterrupt);
  process.on('SIGTERM', onTerminate);
  process.on('SIGHUP', onTerminate);
  return {
    leave: leave.signal,
    onFirst(first) {
      handler = first;
    },
    dispose() {
      process.off('SIGINT', onInterrupt);
      process.off('SIGTERM', onTerminate);
      process.off('SIGHUP', onTerminate);
    },
  };
}
