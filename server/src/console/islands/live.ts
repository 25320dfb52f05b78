import type { EndedCall } from '../listed-calls.ts'

type Watch = {
  /** Where the account API sends calls as they end. */
  readonly url: string
  readonly onCall: (call: EndedCall) => void
  /** When something was heard, whether or not a call has ended. */
  readonly onSign: () => void
}

/** The stream says something every four seconds; a proxy that keeps it back says nothing. */
const SILENCE_MS = 15_000
const LIST_EVERY_MS = 10_000

/** Follows the stream, which is taken up again where it ends. Where nothing comes through, the list is asked for instead. Returns how to stop. */
export function watchCalls({ url, onCall, onSign }: Watch): () => void {
  const source = new EventSource(url)
  const known = new Set<string>()
  let heardAt = performance.now()
  let listing: number | undefined

  function tell(call: EndedCall): void {
    if (known.has(call.id)) return
    known.add(call.id)
    onCall(call)
  }

  function heard(): void {
    heardAt = performance.now()
    onSign()
  }

  async function list(): Promise<void> {
    const answer = await fetch(url.replace('/requests/live', '/requests'), { headers: { accept: 'application/json' } })
    if (!answer.ok) return
    const { data }: { data: EndedCall[] } = await answer.json()
    onSign()
    for (const call of data.toReversed()) tell(call)
  }

  source.addEventListener('request', (event) => {
    heard()
    tell(JSON.parse(event.data))
  })
  source.addEventListener('look', heard)
  const watching = setInterval(() => {
    if (performance.now() - heardAt < SILENCE_MS || listing !== undefined) return
    source.close()
    listing = setInterval(() => void list().catch(() => undefined), LIST_EVERY_MS)
  }, SILENCE_MS / 3)

  return () => {
    source.close()
    clearInterval(watching)
    clearInterval(listing)
  }
}
