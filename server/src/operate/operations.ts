import { z } from 'zod'
import { catalogue } from '../catalogue/catalogue.ts'
import type { Operation } from '../catalogue/operation.ts'
import { modesOf, readSold } from '../pricing/sold.ts'
import { listSwitchedOff, type Switch, type SwitchedOff, switchOff, switchOn } from '../pricing/switches.ts'
import { type Action, action, field, type OperatorParts } from './action.ts'
import { NO_INPUT, reasonOf } from './fields.ts'

/** What is sold and what is not: operations one by one, and whole categories. */

const offReason = field('text', 'why it is no longer sold: kept in the audit log and shown in lists', reasonOf)
const onReason = field('text', 'why it is sold again: kept in the audit log', reasonOf)

const list = action({
  name: 'operations list',
  summary: 'list all operations, whether each is sold, and in which mode',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const [sold, off] = [await readSold(pool, catalogue), await listSwitchedOff(pool)]
    return catalogue.operations.map((one) => {
      const { id, category, summary } = one
      return { id, category, summary, modes: modesOf(sold, one), ...switchedOff(off, one) }
    })
  },
  lines: (operations) =>
    operations.map(({ id, category, modes, off }) => `${id}  ${category}  ${stateOf({ modes, off })}`),
})

const listOfCategories = action({
  name: 'categories list',
  summary: 'list the categories of operations, and how many of each are sold',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const [sold, off] = [await readSold(pool, catalogue), await listSwitchedOff(pool)]
    return CATEGORIES.map((category) => {
      const own = catalogue.operations.filter((one) => one.category === category)
      const isSold = (one: Operation) => modesOf(sold, one).length > 0
      const offNow = off.find(({ kind, name }) => kind === 'category' && name === category)
      return { category, operations: own.length, sold: own.filter(isSold).length, off: offNow && told(offNow) }
    })
  },
  lines: (categories) =>
    categories.map(
      ({ category, operations, sold, off }) =>
        `${category}  ${sold} of ${operations} operations sold${off === undefined ? '' : `  off since ${sinceText(off)}`}`,
    ),
})

type Off = { readonly by: Switch['kind']; readonly reason: string; readonly since: Date }

/** Its own switch before that of its category: that is the one to turn first. */
function switchedOff(off: readonly SwitchedOff[], { id, category }: Operation): { readonly off?: Off } {
  const found =
    off.find(({ kind, name }) => kind === 'operation' && name === id) ??
    off.find(({ kind, name }) => kind === 'category' && name === category)
  return found === undefined ? {} : { off: told(found) }
}

function told({ kind, reason, since }: SwitchedOff): Off {
  return { by: kind, reason, since }
}

function stateOf({ modes, off }: { readonly modes: readonly string[]; readonly off: Off | undefined }): string {
  if (off !== undefined) return offText(off)
  return modes.length === 0 ? 'not sold: no upstream' : `sold in ${modes.join(' and ')}`
}

function offText({ by, reason, since }: Off): string {
  return `off${by === 'category' ? ' with its category' : ''} since ${sinceText({ reason, since })}`
}

function sinceText({ reason, since }: Pick<Off, 'reason' | 'since'>): string {
  return `${since.toISOString()}: ${reason}`
}

const CATEGORIES = [...new Set(catalogue.operations.map(({ category }) => category))]

const operation = field('operation', 'id of the operation: see farebox operations list', (id) => {
  if (catalogue.find(id) === undefined)
    throw new Error(`there is no operation ${JSON.stringify(id)}: see farebox operations list`)
  return id
})

const category = field('category', `one of ${CATEGORIES.join(', ')}`, (text) => {
  const found = CATEGORIES.find((name) => name === text)
  if (found === undefined)
    throw new Error(`there is no category ${JSON.stringify(text)}: use one of ${CATEGORIES.join(', ')}`)
  return found
})

const GOES_ON = 'Quotes given before can be used until they expire, and tasks under way go on.'

const off = action({
  name: 'operations off',
  summary: 'stop selling an operation, within a second; open tasks and quotes given before are honoured',
  effect: 'writes',
  positional: ['operation'],
  input: z.object({ operation, reason: offReason }),
  run: (parts, { operation: name, reason }) => turnOff(parts, { kind: 'operation', name }, reason),
  lines: ({ name, isNew, reason }) => [
    isNew
      ? `Operation ${name} is off: calls are refused with 404 not_sold. ${GOES_ON}`
      : `Operation ${name} was off already. The reason is now: ${reason}`,
  ],
})

const on = action({
  name: 'operations on',
  summary: 'sell an operation again, within a second',
  effect: 'writes',
  positional: ['operation'],
  input: z.object({ operation, reason: onReason }),
  run: (parts, { operation: name, reason }) => turnOn(parts, { kind: 'operation', name }, reason),
  lines: ({ name, isNew, stillOff, modes }) => [
    isNew ? `Operation ${name} is on.` : `Operation ${name} was on already. Nothing was changed.`,
    ...(stillOff === undefined
      ? noUpstream(modes)
      : [`Its category ${stillOff} is off, so it is still not sold: see farebox categories on ${stillOff}.`]),
  ],
})

const categoryOff = action({
  name: 'categories off',
  summary:
    'stop selling every operation of a category, within a second; open tasks and quotes given before are honoured',
  effect: 'writes',
  positional: ['category'],
  input: z.object({ category, reason: offReason }),
  run: (parts, { category: name, reason }) => turnOff(parts, { kind: 'category', name }, reason),
  lines: ({ name, isNew, reason }) => [
    isNew
      ? `Category ${name} is off: calls of its operations are refused with 404 not_sold. ${GOES_ON}`
      : `Category ${name} was off already. The reason is now: ${reason}`,
  ],
})

const categoryOn = action({
  name: 'categories on',
  summary: 'sell the operations of a category again, within a second, but those that are off themselves',
  effect: 'writes',
  positional: ['category'],
  input: z.object({ category, reason: onReason }),
  run: (parts, { category: name, reason }) => turnOn(parts, { kind: 'category', name }, reason),
  lines: ({ name, isNew }) => [
    isNew ? `Category ${name} is on.` : `Category ${name} was on already. Nothing was changed.`,
  ],
})

function noUpstream(modes: readonly string[]): readonly string[] {
  return modes.length > 0 ? [] : ['No upstream can be asked for it, so it is not offered: see farebox upstreams list.']
}

async function turnOff({ pool, by }: OperatorParts, what: Switch, reason: string) {
  return { ...what, reason, isNew: await switchOff(pool, { ...what, reason, by }) }
}

async function turnOn({ pool, by }: OperatorParts, what: Switch, reason: string) {
  const isNew = await switchOn(pool, { ...what, reason, by })
  const found = catalogue.find(what.name)
  const sold = await readSold(pool, catalogue)
  const isStillOff = what.kind === 'operation' && found !== undefined && sold.switches.isOff(found)
  return {
    ...what,
    reason,
    isNew,
    modes: found === undefined ? [] : modesOf(sold, found),
    ...(isStillOff && { stillOff: found.category }),
  }
}

export const operations: readonly Action[] = [list, on, off]
export const categories: readonly Action[] = [listOfCategories, categoryOn, categoryOff]
