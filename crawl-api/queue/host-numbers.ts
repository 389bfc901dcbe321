/** The numbers of many hosts, in the order in which the journal names them. */
import { hostGroupOf, type HostKey } from '../../shared/domain/host-key.ts';
import type { Domains } from './queue-state.ts';

export class HostNumbers implements Domains {
  readonly #numbers = new Map<string, number>();
  readonly #hosts: string[] = [];
  readonly #key: HostKey | undefined;

  constructor(key?: HostKey) {
    this.#key = key;
  }

  keyOf(url: Pick<URL, 'hostname'>): string {
    return hostGroupOf(url, this.#key);
  }

  /** The number of the host of a URL; of all that is no URL, one in common. */
  of(url: string): number {
    const parsed = URL.parse(url);
    return this.ofHost(parsed === null ? '' : this.keyOf(parsed));
  }

  ofHost(host: string): number {
    let number = this.#numbers.get(host);
    if (number === undefined) {
      number = this.#hosts.length;
      this.#hosts.push(host);
      this.#numbers.set(host, number);
    }
    return number;
  }

  find(host: string): number | undefined {
    return this.#numbers.get(host);
  }

  hostOf(domain: number): string {
    return this.#hosts[domain] ?? '';
  }
}
