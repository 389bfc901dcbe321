/** Identifies one instance within its run: a slot of the plan, and the number of the instance within the slot. */
export interface EpochId {
  /** The slot's number, from 0. */
  slot: number;
  /** The epoch's number, from 1; a replacement gets the next one. */
  epoch: number;
}

/** `<slot>.<epoch>`, as a key of maps and sets. */
export const epochKey = ({ slot, epoch }: EpochId): string => `${slot}.${epoch}`;

/** The same as a number, for what is looked up for thousands of instances at once: a text would cost more than that. */
export const epochNumber = ({ slot, epoch }: EpochId): number => slot * 1_000_000 + epoch;
