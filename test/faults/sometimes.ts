import { IMAGE_MODEL, IMAGE_TOKENS_MODEL } from '../../harness/seed.ts'
import { groupOf, limitOfGroup } from './endpoint-limits.ts'
import type { Evidence } from './evidence.ts'
import { isStreamed, type Operation } from './history.ts'
import { isBrokenOffUpstream } from './listen.ts'
import { BREAKING } from './questions.ts'
import { streamedSpeechOf } from './speeches.ts'

/** How streams and other calls of models went. A run that has none of one of these has not tried what it is for. */
export function callsOfModels({ operations }: Pick<Evidence, 'operations'>): Readonly<Record<string, number>> {
  const streams = operations.filter(isStreamed)
  const count = (went: (one: Operation) => boolean) => streams.filter(went).length
  const paid = (is: (one: Operation) => boolean) =>
    operations.filter((one) => one.outcome === 'ok' && (one.told.costNanos ?? 0n) > 0n && is(one)).length
  return {
    'streams that ended well': count(({ outcome }) => outcome === 'ok'),
    'streams cut by callers': count((one) => hasBegun(one) && one.told.isCut === true && one.outcome === 'unknown'),
    'streams hit by faults': count((one) => hasBegun(one) && isHit(one)),
    'streams of the third protocol that ended well': count((one) => one.outcome === 'ok' && reportsAsItGoes(one)),
    'streams of the third protocol broken off': count(
      (one) => hasBegun(one) && reportsAsItGoes(one) && isBrokenOffUpstream(one),
    ),
    'answers of the third protocol paid': paid(({ operation }) => operation === 'generate_content'),
    'embeddings paid': paid(({ operation }) => operation === 'embeddings'),
    'pictures paid by the piece': paid(({ question }) => question?.model === IMAGE_MODEL),
    'pictures paid by the token': paid(({ question }) => question?.model === IMAGE_TOKENS_MODEL),
    'requests beyond the limit of their endpoint': operations.filter(isBeyondItsEndpoint).length,
  }
}

function hasBegun({ told }: Operation): boolean {
  return (told.heardBytes ?? 0) > 0
}

/** Neither its caller nor its upstream meant it to end like that. */
function isHit({ outcome, told, question }: Operation): boolean {
  return outcome !== 'ok' && told.isCut !== true && !BREAKING.has(question?.model ?? '')
}

function reportsAsItGoes({ operation }: Operation): boolean {
  return streamedSpeechOf(operation)?.reportsAsItGoes === true
}

function isBeyondItsEndpoint({ operation, told }: Operation): boolean {
  return told.status === 429 && told.limit === limitOfGroup(groupOf(operation))
}
