import type { Catalogue, Operation } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'
import { nearest } from '../kernel/nearest.ts'

/** The operations of the catalogue that a tool can call. */
export type AgentOperations = {
  readonly all: readonly Operation[]
  readonly find: (id: string) => Operation | undefined
  /** The refusal of an id that nobody knows, with the nearest that somebody does. */
  readonly unknown: (id: string) => Fault
}

/** Those that answer in pieces alone, and what answers the same whole. */
const STREAMS: Readonly<Record<string, string>> = { stream_generate_content: 'generate_content' }

export function createOperations(catalogue: Catalogue, others: readonly string[]): AgentOperations {
  const all = catalogue.operations.filter(({ id }) => !Object.hasOwn(STREAMS, id))
  const byId = new Map(all.map((one) => [one.id, one]))
  const ids = [...byId.keys(), ...others]
  return {
    all,
    find: (id) => byId.get(id),
    unknown(id) {
      const near = STREAMS[id] ?? nearest(id, ids)
      const hint = near === undefined ? 'The tool search finds operations by what they do.' : `Did you mean ${near}?`
      return new Fault('resource_not_found', {
        detail: `There is no operation ${JSON.stringify(id.slice(0, 80))} here. ${hint}`,
        members: { ...(near !== undefined && { nearest: near }) },
      })
    },
  }
}
