/** What must be true of a simulated run after every event: nothing is lost, nothing is counted or crawled twice. */
import type { SimState } from '../../../orchestrator/simulation/state.ts';
import { openIn } from '../../../orchestrator/simulation/work.ts';

/** Looks at every event in which something was counted, and at every hundredth one. Throws at the first violation. */
export function createAudit(): (state: SimState) => void {
  let steps = 0;
  let last = '';
  let settledBefore = 0;
  return (state) => {
    const { totals, counts } = state.work;
    const mark = `${totals.loaded} ${counts.waiting} ${counts.granted} ${state.world.run.phase}`;
    if (mark === last && ++steps % 100 !== 0) return;
    last = mark;
    const settled = totals.stored + totals.gone + totals.failed;
    if (settled < settledBefore) throw new Error(`outcomes went back from ${settledBefore} to ${settled}`);
    settledBefore = settled;
    findFault(state, settled);
  };
}

function findFault({ work, world, machines, nowMs }: SimState, settled: number): void {
  const open = work.chunks.reduce((sum, chunk) => sum + openIn(chunk), 0);
  if (settled + open !== world.run.planned)
    throw new Error(`${settled} settled and ${open} open are not ${world.run.planned} planned`);
  const waiting = work.chunks.filter((chunk) => chunk.owner === null).length;
  if (waiting !== work.counts.waiting) throw new Error(`${waiting} chunks wait, ${work.counts.waiting} are counted`);
  const owned = work.counts.bySlot.reduce((sum, owner) => sum + owner.chunks, 0);
  if (owned !== work.counts.granted) throw new Error(`${owned} chunks are owned, ${work.counts.granted} are counted`);
  const alive = world.instances.filter((r) => r.phase !== 'terminated').map((r) => `${r.slot}.${r.epoch}`);
  if (new Set(alive).size !== alive.length) throw new Error('two instances are alive under one epoch');
  const crawling = new Map<unknown, string>();
  for (const machine of machines) {
    if (machine.dead || machine.closing || nowMs < machine.frozenUntilMs) continue;
    // One that is fenced and does not know it yet may go on with what it had.
    if (machine.record.phase !== 'ready' && machine.record.phase !== 'crawling') continue;
    for (const chunk of machine.queue.openChunks()) {
      const other = crawling.get(chunk);
      if (other !== undefined) throw new Error(`chunk ${chunk.id} is crawled by ${other} and ${machine.cloud.id}`);
      crawling.set(chunk, machine.cloud.id);
    }
  }
}
