/** Unauthorized callbacks: with another's token, with an invalid signature, or replayed. */
import { HEARTBEAT_PATH, HELLO_PATH } from '../../shared/wire/callbacks.ts';
import { createKeyPair, exportPublicKey, macMessage, signMessage } from '../../shared/wire/signature.ts';
import { type Callback, foreignBody } from '../../orchestrator/core/callbacks/callbacks.ts';
import type { FaultWorld } from './fault-world.ts';

/** Retries while there is an instance to impersonate; the replies go into the history. */
export function intrude(world: FaultWorld, how: 'token' | 'forged' | 'replay'): void {
  if (how === 'replay') {
    listen(world);
    return;
  }
  const attempt = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await world.clock.sleep(700);
      const victim = (await world.instances()).find((r) => r.publicKey !== null);
      if (!victim) continue;
      const { slot, epoch, token, counter } = victim;
      const keys = createKeyPair();
      const at = { run: world.run.id, slot, epoch };
      if (how === 'token') {
        const body = JSON.stringify({
          instanceId: 'i-00000000000000bad',
          address: '203.0.113.66',
          publicKey: exportPublicKey(keys.publicKey),
          bundleSha256: 'b'.repeat(64),
          clock: new Date(world.clock.now()).toISOString(),
        });
        const signature = macMessage(token, { method: 'POST', path: HELLO_PATH, ...at }, body);
        await say(world, 'a hello with the token of another instance', HELLO_PATH, {
          ...at,
          counter: null,
          signature,
          body: async () => foreignBody(Buffer.from(body)),
        });
        continue;
      }
      const body = '{}';
      const next = counter + 1;
      const signature = signMessage(
        keys.privateKey,
        { method: 'POST', path: HEARTBEAT_PATH, ...at, counter: next },
        body,
      );
      const forged = { ...at, counter: next, signature, body: async () => foreignBody(Buffer.from(body)) };
      await say(world, 'a forged heartbeat', HEARTBEAT_PATH, forged);
    }
  };
  void attempt();
}

/**
 * Replays each of the next heartbeats once it has been accepted. One that was answered with 503 was not: its counter
 * is unused, and the instance itself may repeat it.
 */
function listen(world: FaultWorld): void {
  let left = 5;
  world.onAnswered = (path, callback, status) => {
    if (path !== HEARTBEAT_PATH || status !== 200 || left <= 0) return;
    left--;
    world.later(30, () => say(world, 'a replayed heartbeat', path, callback));
  };
}

async function say(world: FaultWorld, what: string, path: string, callback: Callback): Promise<void> {
  const reply = await world.fleet.deliver(path, callback);
  if (!reply) return;
  // A given-up instance is ordered to end, whatever it sends.
  const isToldToGo = (reply.message as { fenced?: boolean }).fenced === true;
  const accepted = reply.status >= 200 && reply.status < 300 && !isToldToGo;
  world.intruders.push({ atMs: world.clock.now(), what, status: reply.status, accepted });
}
