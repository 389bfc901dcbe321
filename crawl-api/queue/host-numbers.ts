/** The numbers of many hosts, in the order in which the journal names them. */
import { hostGroupOf } from '../../shared/domain/host-key.ts';
import type { Domains } from './queue-state.ts';

export class HostNumbers implements Domains {
  readonly #numbers = new Map<string, number>();
  readonly #hosts: string[] = [];

  /** The number of the host of a URL; of all that is no URL, one in common. */
  of(url: string): number {
    const parsed = URL.parse(url);
    return this.ofHost(parsed === null ? '' : hostGroupOf(parsed));
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
