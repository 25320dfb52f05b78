import { priceClassOf } from '../../bill.ts'
import { reported } from '../../deviants.ts'
import type { JsonObject } from '../../json.ts'
import type { Asked, Knobs, Reply } from '../../upstream.ts'
import type { Dialect } from './dialect.ts'
import { magicModel } from './magic-models.ts'
import { failure, usageTold } from './reply.ts'

/** An answer that is no conversation: it always comes whole. */
export type Made = {
  readonly model: string
  /** What a vendor has counted. */
  readonly inputTokens: number
  readonly outputTokens: (knobs: Knobs) => number
  readonly usage: (inputTokens: number, outputTokens: number) => JsonObject
  readonly images?: (knobs: Knobs) => number
  /** All but the usage. */
  readonly body: (knobs: Knobs) => JsonObject
}

/** How a vendor writes such an answer down. */
export type WholeDialect = Pick<Dialect, 'overloadedStatus' | 'errorBody'> & { readonly usageName?: string }

/** The model decides how it goes, as in a conversation; what it would say plays no part. */
export function wholeReply(made: Made, dialect: WholeDialect, asked: Asked): Reply {
  const magic = magicModel(made.model)
  if (magic.status !== undefined)
    return failure(magic.status, { model: made.model, isStreamed: false }, magic, dialect, asked)

  function remade(knobs: Knobs): Reply {
    const inputTokens = knobs.inputTokens ?? made.inputTokens
    const outputTokens = made.outputTokens(knobs)
    const { reportedTimes } = asked.deviance
    const told = made.usage(reported(inputTokens, reportedTimes), reported(outputTokens, reportedTimes))
    const usage = usageTold(told, knobs.hidesUsage ? 'none' : magic.usage)
    return {
      status: 200,
      body: { ...made.body(knobs), ...(usage && { [dialect.usageName ?? 'usage']: usage }) },
      tokens: outputTokens,
      isBilled: true,
      bill: {
        price_class: priceClassOf(made.model),
        input: inputTokens,
        output: outputTokens,
        ...(made.images && { images: made.images(knobs) }),
      },
      about: { model: made.model, isStreamed: false, inputTokens },
    }
  }
  return { ...remade({}), remade, ...(magic.delivery && { delivery: magic.delivery }) }
}
