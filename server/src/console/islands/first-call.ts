import type { EndedCall } from '../listed-calls.ts'
import { watchCalls } from './live.ts'

/** "Waiting for your first call …" becomes the call, with what it cost. */
export function waitForFirstCall(place: HTMLElement): void {
  const wait = place.querySelector<HTMLElement>('[data-wait]')
  const url = place.dataset.live
  if (wait === null || url === undefined) return
  const text = part(wait, 'wait-text')
  const began = Date.now()
  let lookedAt = began
  const saying = setInterval(() => {
    const seconds = Math.round((Date.now() - lookedAt) / 1_000)
    text.textContent = `Looked ${seconds <= 1 ? 'just now' : `${seconds} seconds ago`}. It appears here by itself, with its cost. Nothing has reached us with your key yet.`
  }, 1_000)
  const stop = watchCalls({
    url,
    onSign() {
      lookedAt = Date.now()
    },
    onCall(call) {
      clearInterval(saying)
      stop()
      show(place, wait, call)
    },
  })
}

function show(place: HTMLElement, wait: HTMLElement, call: EndedCall): void {
  const name = call.operation ?? 'Your call'
  part(wait, 'wait-title').textContent = titleOf(name, call)
  part(wait, 'wait-text').textContent = `It cost $${call.cost.usd}, and ended at ${timeOf(call.ended_at)}.`
  wait.classList.add('is-over')
  const cost = part(place, 'cost')
  cost.classList.add('is-real')
  part(cost, 'cost-operation').textContent = name
  part(cost, 'cost-charged').textContent = `$${call.cost.usd}`
  part(cost, 'cost-took').textContent = tookOf(call)
  part(cost, 'cost-link').hidden = false
  const [step, last] = [place.querySelector('[data-step="call"]'), place.querySelector('[data-step="cost"]')]
  step?.classList.add('is-done')
  step?.removeAttribute('aria-current')
  last?.setAttribute('aria-current', 'step')
}

function titleOf(name: string, { outcome, failed }: EndedCall): string {
  if (outcome !== 'posted') return `${name} was not charged`
  return failed ? `${name} failed, and was charged` : `${name} is here`
}

function part(within: HTMLElement, name: string): HTMLElement {
  const found = within.querySelector<HTMLElement>(`[data-${name}]`)
  if (found === null) throw new Error(`the page has no ${name}`)
  return found
}

function tookOf({ begun_at: begun, ended_at: ended }: EndedCall): string {
  return begun === null ? '' : `took ${Math.max(0, Date.parse(ended) - Date.parse(begun))} ms`
}

const timeOf = (at: string) => new Date(at).toLocaleTimeString([], { timeZoneName: 'short' })
