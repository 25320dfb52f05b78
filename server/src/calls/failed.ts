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

/** What one statement answers of some items, each with its own, or that it failed with all of them. */
export async function answersOf<Item, Answer>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<readonly (readonly [Item, Answer])[]>,
): Promise<readonly (readonly [Item, Answer | Failed])[]> {
  if (items.length === 0) return []
  const answers = await orFailed(() => run(items))
  return answers instanceof Failed ? items.map((item) => [item, answers]) : answers
}
