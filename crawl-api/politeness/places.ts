/** The places of an instance for pages under way (site.pages_at_once), which its domains share. */

interface Visitor {
  domain: number;
  host: string;
}

interface Waiting extends Visitor {
  start: () => void;
}

export class Places {
  readonly #size: number;
  readonly #hosts = new Set<string>();
  readonly #waiting: Waiting[] = [];
  /** The domains that want to be alone, in order; the first one is, once the pages of all others have ended. */
  readonly #alone: { domain: number; start: () => void }[] = [];
  #isAlone = false;
  #away = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Pages under way. */
  get used(): number {
    return this.#hosts.size;
  }

  /** Visits that wait for their turn, and keep no place meanwhile. */
  get waiting(): number {
    return this.#away;
  }

  /** True while the pages of all other domains wait for this one. */
  isAlone(domain: number): boolean {
    return this.#isAlone && this.#alone[0]?.domain === domain;
  }

  /** Waits without a place. */
  async away<T>(wait: () => Promise<T>): Promise<T> {
    this.#away++;
    try {
      return await wait();
    } finally {
      this.#away--;
    }
  }

  /**
   * Runs the work in a place: at once, or when one is free and no other page of this host is under way. In the order of
   * the calls, as far as their hosts allow.
   */
  async use<T>(visitor: Visitor, work: () => Promise<T>): Promise<T> {
    if (!this.#mayStart(visitor)) await this.#wait(visitor);
    else this.#hosts.add(visitor.host);
    try {
      return await work();
    } finally {
      this.#hosts.delete(visitor.host);
      this.#startNext();
    }
  }

  /**
   * Runs the work while the pages of all other domains wait: once those under way have ended. Where there is one place,
   * each page is alone.
   */
  async alone<T>(domain: number, work: () => Promise<T>): Promise<T> {
    if (this.#size === 1) return work();
    await new Promise<void>((start) => {
      this.#alone.push({ domain, start });
      this.#startNext();
    });
    try {
      return await work();
    } finally {
      this.#alone.shift();
      this.#isAlone = false;
      this.#startNext();
    }
  }

  #mayStart({ domain, host }: Visitor): boolean {
    const [first] = this.#alone;
    if (first !== undefined && !(this.#isAlone && first.domain === domain)) return false;
    return this.#hosts.size < this.#size && !this.#hosts.has(host);
  }

  #wait(visitor: Visitor): Promise<void> {
    return new Promise((start) => this.#waiting.push({ ...visitor, start }));
  }

  #startNext(): void {
    const [first] = this.#alone;
    if (first !== undefined && !this.#isAlone && this.#hosts.size === 0) {
      this.#isAlone = true;
      first.start();
    }
    for (let i = 0; i < this.#waiting.length && this.#hosts.size < this.#size;) {
      const waiting = this.#waiting[i]!;
      if (!this.#mayStart(waiting)) i++;
      else {
        this.#waiting.splice(i, 1);
        this.#hosts.add(waiting.host);
        waiting.start();
      }
    }
  }
}
