/**
 * An instance that is taken over: it makes up rows of all products, in its own parts or, with a manifest, in the place
 * of another one.
 */
import { gzipSync } from 'node:zlib';
import { epochKey } from '../../shared/domain/epoch-id.ts';
import { manifestKey, partKey } from '../../shared/domain/keys.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { signPart } from '../../shared/wire/part-signature.ts';
import { createKeyPair, sha256Hex } from '../../shared/wire/signature.ts';
import type { Dice } from './dice.ts';
import { type FaultWorld, FORGED } from './fault-world.ts';

/** Parts that the other one has not written yet, and may be looked for. */
const AHEAD = 3;

/** The next part of an instance has rows of all products, and its heartbeat names it. */
export function forgePart(world: FaultWorld, dice: Dice): void {
  const forger = dice.pick(world.fleet.instances.filter((i) => !i.dead && !i.fenced));
  if (!forger) return;
  forger.forged = forgedResults(world.productIds);
  world.forgers.add(epochKey(forger));
  world.struck.push('F58 own part');
}

/** Objects in the place of another instance, which count for nothing. */
export function plantObjects(world: FaultWorld, dice: Dice): void {
  const victim = dice.pick(world.fleet.instances);
  if (!victim) return;
  world.struck.push('F58 in the place of another');
  const { slot, epoch } = victim;
  const { objects } = world.cloud.objects;
  const put = (key: string, bytes: Uint8Array): void => {
    if (objects.has(key)) return;
    objects.set(key, bytes);
    world.planted.add(key);
  };
  // In its own folder, in that of the other one as an earlier policy allows, or in none.
  const session = dice.pick([null, 'AROASIMULATED00000001:i-stranger', `AROASIMULATED00000001:${victim.id}`]);
  if (dice.chance(0.5))
    put(manifestKey(world.run.id, slot, epoch, session), Buffer.from('{"manifest":"{}","signature":""}'));
  const gzip = gzipSync(
    forgedResults(world.productIds)
      .map((result) => JSON.stringify(result))
      .join('\n'),
  );
  for (let seq = 0; seq < AHEAD; seq++) {
    const place = { run: world.run.id, slot, epoch, seq };
    // Signed by itself, or not at all.
    const bytes = dice.chance(0.5) ? signPart(gzip, place, createKeyPair().privateKey) : gzip;
    put(partKey(world.run.id, { ...place, session: session ?? null, sha256: sha256Hex(bytes) }), bytes);
  }
}

const forgedResults = (ids: readonly string[]): ItemResult[] =>
  ids.map((id, i) => {
    const common = {
      n: i + 1,
      id,
      url: 'https://shop.example/',
      at: '2026-01-01T00:00:00.000Z',
      attempts: 1,
    };
    return { ...common, outcome: 'stored', rows: [{ key: null, row: { title: FORGED } }] };
  });
