/** The machines behind EC2, as processes of this machine. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { MachineEvent, MachineHost, MachineSpec, MachineStatus } from '../ec2/machine-host.ts';
import type { FaultBook } from '../faults.ts';
import { type HostOptions, Machine } from './machine.ts';

export interface ProcessHostOptions extends HostOptions {
  /** Holds one folder per instance. */
  folder: string;
  faults: FaultBook;
  /** Called when an instance has powered itself off. */
  onPowerOff: (id: string) => void;
}

export class ProcessHost implements MachineHost {
  readonly #options: ProcessHostOptions;
  readonly #machines = new Map<string, Machine>();

  constructor(options: ProcessHostOptions) {
    this.#options = options;
  }

  powerOn(spec: MachineSpec): void {
    const machine = this.#machines.get(spec.id) ?? this.#create(spec);
    this.#machines.set(spec.id, machine);
    machine.powerOn(this.#options.faults.takeForBoot());
  }

  async powerOff(id: string): Promise<void> {
    await this.#machines.get(id)?.powerOff();
  }

  consoleOutput(id: string): Buffer | null {
    return this.#machines.get(id)?.console.output() ?? null;
  }

  status(id: string): MachineStatus | null {
    const machine = this.#machines.get(id);
    return machine ? { pid: machine.pid, folder: machine.folder } : null;
  }

  befall(id: string, event: MachineEvent): boolean {
    return this.#machines.get(id)?.befall(event) ?? false;
  }

  forget(id: string): void {
    this.#machines.get(id)?.console.close();
    this.#machines.delete(id);
  }

  /** Closes the console files. */
  close(): void {
    for (const machine of this.#machines.values()) machine.console.close();
  }

  #create(spec: MachineSpec): Machine {
    const folder = join(this.#options.folder, spec.id);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return new Machine({ ...this.#options, folder, spec, onPowerOff: () => this.#options.onPowerOff(spec.id) });
  }
}
