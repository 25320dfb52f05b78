import { type Member, neutral, priced, type Shape, typed } from '../catalogue/member-table.ts'
import { IN_INPUT, IN_OUTPUT } from './reasons.ts'

/** The members that several protocols have, with what we read of them. */

export const MODEL_NAME_LENGTH = 200

export const MODEL = typed(
  { type: 'string', minLength: 1, maxLength: MODEL_NAME_LENGTH },
  priced('its price is that of the call'),
)

export const OUTPUT_LIMIT = typed({ type: 'integer', minimum: 1 }, priced(IN_OUTPUT))

export const STREAM = typed({ type: 'boolean' }, neutral())

export const messagesWith = (message: () => Shape): Member =>
  typed({ type: 'array', minItems: 1 }, priced(IN_INPUT, message))

/** As many as are asked for are held. */
export const counted = (what: string, most: number): Member =>
  typed({ type: 'integer', minimum: 1, maximum: most }, priced(`as many ${what} are held`))
