type Stop = () => Promise<unknown>

/** Parts that were started one after the other, to be stopped in the opposite order: at the end, or when a later one fails. */
export function createStarted() {
  const stops: Stop[] = []
  const stop = async () => {
    for (const one of stops.reverse()) await one()
  }
  return {
    keep<T extends { readonly stop: Stop }>(part: T): T {
      stops.push(part.stop)
      return part
    },
    onStop: (one: Stop) => stops.push(one),
    stop,
    /** What starts more of them: if it fails, all are stopped. */
    async orStop<T>(start: () => Promise<T>): Promise<T> {
      try {
        return await start()
      } catch (error) {
        await stop()
        throw error
      }
    },
  }
}
