/** The hosts of request logs as numbers: by what one pace holds for, whatever names and ports the requests went to. */
import { hostGroupOf, type HostKey } from '../../../shared/domain/host-key.ts';

export class HostNumbers {
  readonly #hosts: string[] = [];
  /** By their keys, and by all names that requests went to. */
  readonly #numbers = new Map<string, number>();
  readonly #key: HostKey | undefined;

  /** @param key as the run has it */
  constructor(key?: HostKey) {
    this.#key = key;
  }

  /** Hosts that were asked. */
  get count(): number {
    return this.#hosts.length;
  }

  /** The number of the host that has this name, which may end with a port. */
  readonly numberOf = (name: string): number => {
    let number = this.#numbers.get(name);
    if (number !== undefined) return number;
    const url = URL.parse(`http://${name}`);
    const key = url === null ? name : hostGroupOf(url, this.#key);
    number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#hosts.length;
      this.#hosts.push(key);
      this.#numbers.set(key, number);
    }
    this.#numbers.set(name, number);
    return number;
  };

  /** @param number as `numberOf` gave it */
  nameOf(number: number): string {
    return this.#hosts[number]!;
  }
}
