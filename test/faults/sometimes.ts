import type { Evidence } from './evidence.ts'
import { isStreamed, type Operation } from './history.ts'
import { BREAKING } from './questions.ts'

/** How streams went. A run that has none of one of these has not tried what it is for. */
export function streamsThat({ operations }: Pick<Evidence, 'operations'>): Readonly<Record<string, number>> {
  const streams = operations.filter(isStreamed)
  const count = (went: (one: Operation) => boolean) => streams.filter(went).length
  return {
    'streams that ended well': count(({ outcome }) => outcome === 'ok'),
    'streams cut by callers': count((one) => hasBegun(one) && one.told.isCut === true && one.outcome === 'unknown'),
    'streams hit by faults': count((one) => hasBegun(one) && isHit(one)),
  }
}

function hasBegun({ told }: Operation): boolean {
  return (told.heardBytes ?? 0) > 0
}

/** Neither its caller nor its upstream meant it to end like that. */
function isHit({ outcome, told, question }: Operation): boolean {
  return outcome !== 'ok' && told.isCut !== true && !BREAKING.has(question?.model ?? '')
}
