import { watchCalls } from './live.ts'

/** The page of a call that runs becomes that of the one that has ended. */
export function waitForEnd({ dataset: { live, id } }: HTMLElement): void {
  if (live === undefined) return
  const stop = watchCalls({
    url: live,
    onSign() {},
    onCall(call) {
      if (call.id !== id) return
      stop()
      location.reload()
    },
  })
}
