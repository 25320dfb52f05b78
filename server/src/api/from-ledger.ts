import { z } from 'zod'
import { Fault, unavailable } from '../kernel/fault.ts'
import { isRefusal } from '../storage/refusal.ts'

/** What a route reads of the ledger. That PostgreSQL can not be asked is no mistake of ours: the caller may try again. */
export async function fromLedger<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (cause) {
    if (cause instanceof Fault || cause instanceof z.ZodError || isRefusal(cause)) throw cause
    throw unavailable(cause)
  }
}
