/**
 * What was opened one after another, closed together: JavaScript's AsyncDisposableStack, which Node 22 lacks.
 */
export class OpenResources implements AsyncDisposable {
  #closings: (() => unknown)[] = [];

  /** Closes the resource with the others. */
  use<T extends Disposable | AsyncDisposable>(resource: T): T {
    this.defer(() => (Symbol.asyncDispose in resource ? resource[Symbol.asyncDispose]() : resource[Symbol.dispose]()));
    return resource;
  }

  /** Calls this with the others. */
  defer(close: () => unknown): void {
    this.#closings.push(close);
  }

  /** Hands everything over: the caller closes it, this object no longer does. */
  move(): OpenResources {
    const moved = new OpenResources();
    [moved.#closings, this.#closings] = [this.#closings, []];
    return moved;
  }

  /** Closes the last first, and each although another fails; then throws the first error. */
  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closings.pop(); close !== undefined; close = this.#closings.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
