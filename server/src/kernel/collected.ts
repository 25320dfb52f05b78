type Waiting<Ask, Answer> = {
  readonly ask: Ask
  readonly answer: PromiseWithResolvers<Answer>
}

/**
 * Asks for many things, one statement at a time: who asks while one is under way is asked for in the next, with everybody else who does. Who
 * asks for what is asked for already gets the same answer. So a burst takes one connection, however many it is made of.
 */
export function createCollected<Ask, Answer>(
  nameOf: (ask: Ask) => string,
  answersTo: (asks: readonly Ask[]) => Promise<readonly Answer[]>,
  portion = 500,
): (ask: Ask) => Promise<Answer> {
  /** Of those that are asked for now, and of those that wait. */
  const open = new Map<string, Waiting<Ask, Answer>>()
  const queue: string[] = []
  let isRunning = false

  async function answer(names: readonly string[]): Promise<void> {
    const some = names.flatMap((name) => open.get(name) ?? [])
    try {
      const answers = await answersTo(some.map(({ ask }) => ask))
      if (answers.length !== some.length) throw new Error(`${some.length} were asked for, ${answers.length} answered`)
      for (const [at, one] of answers.entries()) some[at]?.answer.resolve(one)
    } catch (error) {
      for (const one of some) one.answer.reject(error)
    } finally {
      for (const name of names) open.delete(name)
    }
  }

  async function run(): Promise<void> {
    isRunning = true
    while (queue.length > 0) await answer(queue.splice(0, portion))
    isRunning = false
  }

  return (ask) => {
    const name = nameOf(ask)
    const known = open.get(name)
    if (known !== undefined) return known.answer.promise
    const waiting = { ask, answer: Promise.withResolvers<Answer>() }
    open.set(name, waiting)
    queue.push(name)
    if (!isRunning) void run()
    return waiting.answer.promise
  }
}
