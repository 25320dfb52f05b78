/** Does one piece of work after another, in the order in which they came. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>

export function createTurn(): Turn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}
