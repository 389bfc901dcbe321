/** The instance of the modelled world, alone: orchestrator/core/simulation. */
import type { z } from 'zod';
import type { OfferAnswer } from '../../../crawl-api/queue/queue.ts';
import { SimulatedInstance } from '../../../orchestrator/core/simulation/instance.ts';
import {
  COMPLETION_PATH,
  completionSchema,
  HEARTBEAT_PATH,
  heartbeatSchema,
  HELLO_PATH,
  helloSchema,
} from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { Signatures } from '../../../shared/wire/signature.ts';
import type { InstanceStage, InstanceUnderTest } from './stage.ts';

/** The model does not read its own messages: they must have the form of those of crawl-api. */
const SCHEMAS: Record<string, z.ZodType> = {
  [HELLO_PATH]: helloSchema,
  [HEARTBEAT_PATH]: heartbeatSchema,
  [COMPLETION_PATH]: completionSchema,
};

const SIGNATURES: Signatures = {
  sign: () => 'signed',
  verify: () => true,
  signText: () => Buffer.alloc(64),
  verifyText: () => true,
};

export async function makeModelledInstance(stage: InstanceStage): Promise<InstanceUnderTest> {
  const { settings, clock, objects } = stage;
  const at = (): string => new Date(clock.now()).toISOString();
  const instance = new SimulatedInstance({
    id: 'i-0123456789abcdef0',
    settings,
    address: '192.0.2.1',
    clock,
    objects,
    signatures: SIGNATURES,
    site: {
      treat: (_, { n }) => stage.request(n),
      onRequest: () => undefined,
      pace: () => ({ gapMs: 0, pageMs: stage.pageMs }),
      result: ({ n, id }) => {
        const page = { n, id, url: `http://shop.example/${id}`, at: at(), attempts: 1 };
        return { ...page, outcome: 'stored', rows: [{ key: null, row: { t: 'x' } }] };
      },
    },
    call: async (path, callback) => {
      const schema: z.ZodType = SCHEMAS[path]!;
      const message = schema.parse((await callback.body()).read(schema));
      const reply = await stage.reply(path, JSON.stringify(message));
      return reply && { status: reply.status, message: JSON.parse(reply.body) as unknown, sign: () => 'signed' };
    },
    roundTripMs: 0,
    uploadMs: 0,
    onFenced: () => {
      stage.isFenced = true;
    },
    onFault: (error) => stage.faults.push(error),
    written: new Map(),
    wrongs: {},
  });
  instance.start();
  return {
    offer: (offer: Offer): Promise<OfferAnswer> => {
      const result = instance.offer(offer);
      if (result.kind === 'refused') return Promise.resolve({ taken: false, ...result.refusal });
      if (result.kind !== 'taken') throw new Error(result.kind);
      return Promise.resolve({ taken: true, held: result.receipt.held });
    },
    crash: (downMs, lost) => instance.crash(downMs, lost),
  };
}
