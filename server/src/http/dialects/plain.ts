import type { Fault } from '../../kernel/fault.ts'

/** `{ "error": "…" }` and nothing else, which is what the usage endpoint's 400 is. */
export function renderPlain(fault: Fault) {
  return { error: fault.message }
}
