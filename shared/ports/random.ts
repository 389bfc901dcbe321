/** The source of randomness, so that a run can be replayed from its seed. */

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}
