import { z } from 'zod'
import { Fault, unavailable } from '../kernel/fault.ts'
import { isRefusal } from '../storage/refusal.ts'

/** What a program that is wrong throws, and no connection does. */
const MISTAKES = [TypeError, RangeError, ReferenceError, SyntaxError, z.ZodError]

/** What a route reads of the ledger. That PostgreSQL can not be asked is no mistake of ours: the caller may try again. */
export async function fromLedger<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (cause) {
    if (cause instanceof Fault || isRefusal(cause) || MISTAKES.some((mistake) => cause instanceof mistake)) throw cause
    throw unavailable(cause)
  }
}
