import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'

const MOST = 500

/** What a schema did not take, as a refusal that says where. */
export function invalidArguments(error: z.ZodError): Fault {
  return new Fault('invalid_request', { detail: z.prettifyError(error).slice(0, MOST) })
}
