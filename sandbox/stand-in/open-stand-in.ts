/**
 * Creates the stand-in of a sandbox: its client, its record of boots, and its watch loop, already running on return.
 */
import { join } from 'node:path';
import { openBootedIds } from './booted-ids.ts';
import type { ForeignPlace } from './foreign-ec2.ts';
import { openForeignEc2 } from './foreign-ec2.ts';
import type { StandInParts } from './stand-in.ts';
import { StandIn } from './stand-in.ts';

export interface StandInOptions extends ForeignPlace, Omit<StandInParts, 'foreign' | 'booted'> {
  dataDir: string;
}

export async function openStandIn({ endpoint, region, runId, dataDir, ...parts }: StandInOptions): Promise<StandIn> {
  const foreign = await openForeignEc2({ endpoint, region, runId });
  const booted = await openBootedIds(join(dataDir, 'booted-instances'));
  const standIn = new StandIn({ ...parts, foreign, booted });
  standIn.start();
  parts.log.write('stand-in', { endpoint, runId });
  return standIn;
}
