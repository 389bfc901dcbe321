/** The callback listener on a real socket, in front of a run in `crawling` on a real database. */
import type { MemoryObjectStore } from '../../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { Callbacks } from '../../../../orchestrator/core/callbacks/callbacks.ts';
import type { Core } from '../../../../orchestrator/core/model/core.ts';
import { Dispatcher } from '../../../../orchestrator/core/act/shares/dispatch.ts';
import { Observer } from '../../../../orchestrator/core/observe/observe.ts';
import type { InstanceRecord, NewRun } from '../../../../orchestrator/core/model/stores.ts';
import type { World } from '../../../../orchestrator/core/model/world.ts';
import { createCallbackApp } from '../../../../orchestrator/core/server/callback-app.ts';
import { listen, type Listener } from '../../../../orchestrator/core/server/listen.ts';
import { START_MS } from '../../../unit/core/builders.ts';
import { type Base, createCore, createRun, memoryCloud, type RunShape } from '../run-stage.ts';
import { Caller } from './caller.ts';

export interface CallbackStage {
  core: Core & { alarms: string[] };
  run: NewRun;
  clock: VirtualClock;
  objects: MemoryObjectStore;
  dispatcher: Dispatcher;
  /** Behind the listener: every request through it comes from this machine. */
  callbacks: Callbacks;
  baseUrl: string;
  /** How often a callback woke the loop. */
  wakes(): number;
  /** Repeats the loop's observation: callbacks then use the current state. */
  look(): Promise<World>;
  /** Claims a slot; EC2 has not answered yet. */
  claim(slot: number, epoch?: number): Promise<Caller>;
  /** A claimed instance that EC2 has launched and that has not sent its hello. */
  launched(slot: number, epoch?: number): Promise<Caller>;
  /** An instance whose hello was accepted. */
  ready(slot: number, epoch?: number): Promise<Caller>;
  record(caller: Caller): Promise<InstanceRecord>;
  close(): Promise<void>;
}

export async function openCallbackStage(base: Base, shape: Partial<RunShape> = {}): Promise<CallbackStage> {
  const run = await createRun(base, { products: 20, instances: 2, chunkSize: 2, ...shape });
  const clock = new VirtualClock(START_MS);
  const cloud = memoryCloud(clock);
  const core = createCore(base, run.id, cloud, clock);
  const { fleet } = core;
  await core.run.move('planned', 'launching');
  await core.run.move('launching', 'crawling');

  const observer = new Observer(core);
  let world: World | null = null;
  let wakes = 0;
  const dispatcher = new Dispatcher(core);
  const link = { world: () => world, wake: () => void wakes++ };
  const callbacks = new Callbacks(core, dispatcher, link, run.privateKey);
  const app = createCallbackApp(callbacks, core.log);
  const listener: Listener = await listen(app, '127.0.0.1:0', 'server.listen');
  const baseUrl = `http://127.0.0.1:${listener.port}`;

  const stage: CallbackStage = {
    core,
    run,
    clock,
    objects: cloud.objects,
    dispatcher,
    callbacks,
    baseUrl,
    wakes: () => wakes,
    look: async () => (world = await observer.observe()),
    async claim(slot, epoch = 1) {
      const token = `${slot}${epoch}`.padStart(64, 'a');
      const request = {
        clientToken: `${slot}.${epoch}`,
        instanceType: 't4g.nano',
        imageId: 'ami-1',
        subnetId: 'subnet-1',
        securityGroupIds: [],
        instanceProfile: null,
        userData: '',
        tags: {},
      };
      await fleet.claim({ slot, epoch, request, token });
      return new Caller({ baseUrl, run, slot, epoch, instanceId: `i-${slot}-${epoch}`, token, now: () => clock.now() });
    },
    async launched(slot, epoch = 1) {
      const caller = await stage.claim(slot, epoch);
      await fleet.patch({ slot, epoch }, { instanceId: caller.options.instanceId });
      await fleet.move({ slot, epoch }, 'claimed', 'pending');
      return caller;
    },
    async ready(slot, epoch = 1) {
      const caller = await stage.launched(slot, epoch);
      const answer = await caller.hello();
      if (answer.status !== 200) throw new Error(`hello was refused: ${JSON.stringify(answer)}`);
      await stage.look();
      return caller;
    },
    async record({ options }) {
      const record = await fleet.get(options);
      if (!record) throw new Error('there is no such claim');
      return record;
    },
    close: () => listener.close(),
  };
  await stage.look();
  return stage;
}
