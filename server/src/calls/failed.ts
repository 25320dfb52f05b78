/**
 * What is said of an item whose statement failed as a whole: PostgreSQL refused it, gave up waiting for a lock, or did not answer. Other items of the batch may have
 * been in a statement beside it that did not fail.
 */
export class Failed {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

export async function orFailed<Answer>(run: () => Promise<Answer>): Promise<Answer | Failed> {
  try {
    return await run()
  } catch (error) {
    return new Failed(error)
  }
}
