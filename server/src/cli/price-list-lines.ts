import { styleText } from 'node:util'
import type { Change } from '../pricing/price-list/changes.ts'
import type { ImportPlan, PlannedModel } from '../pricing/price-list/import.ts'

/** What an import changes, as lines for people. */
export function planLines(
  plan: ImportPlan,
  { file, isApplied }: { readonly file: string; readonly isApplied: boolean },
): readonly string[] {
  const differing = plan.models.filter(({ state, held }) => state !== 'unchanged' || held.length > 0)
  const width = widthOf(differing.flatMap(({ changes }) => changes))
  return [
    ...differing.flatMap((model) => [...modelLines(model, width), '']),
    summaryOf(plan, file, isApplied),
    ...othersLines(plan.others),
    ...heldLines(plan, isApplied),
  ]
}

function modelLines({ model, state, changes, held }: PlannedModel, width: number): readonly string[] {
  const isHeld = held.length > 0
  const how = isHeld ? styleText('red', `${state}, held back`) : styleText(state === 'new' ? 'green' : 'yellow', state)
  const reasons = held.slice(0, REASONS_SHOWN).map((reason) => styleText('red', `    ! ${reason}`))
  const more = held.length - reasons.length
  return [
    `${isHeld ? '! ' : '  '}${styleText('bold', model)}  ${how}`,
    ...changeLines(changes, { width, isNew: state === 'new' }),
    ...reasons,
    ...(more > 0 ? [styleText('red', `    ! and ${more} more`)] : []),
  ]
}

const REASONS_SHOWN = 5

type Shape = { readonly width?: number; readonly isNew: boolean }

/** Of what was not there before, only what it is. */
export function changeLines(changes: readonly Change[], { width = widthOf(changes), isNew }: Shape): readonly string[] {
  const before = widest(changes.map((change) => valueText(change, change.before)))
  const after = widest(changes.map((change) => valueText(change, change.after)))
  const isAllNew = isNew && changes.every((change) => change.before === null)
  return changes.map((change) => {
    const member = change.member.padEnd(width)
    const [was, is] = [valueText(change, change.before), valueText(change, change.after)]
    if (isAllNew) return `    ${member}  ${is}`
    const line = `    ${member}  ${was.padStart(before)} → ${is.padEnd(after)}`
    return `${line}  ${factorText(change.factor)}`.trimEnd()
  })
}

function widthOf(changes: readonly Change[]): number {
  return widest(changes.map(({ member }) => member))
}

/** Caches cost as input where they have no price of their own. */
function valueText({ member }: Change, value: string | null): string {
  return value ?? (/\.cache_(?:read|write)$/.test(member) ? 'as input' : 'none')
}

function factorText(factor: number | null): string {
  if (factor === null) return ''
  const digits = (value: number) => String(Number(value.toPrecision(3)))
  return factor >= 1 ? `× ${digits(factor)}` : `÷ ${digits(1 / factor)}`
}

function summaryOf({ models }: ImportPlan, file: string, isApplied: boolean): string {
  const free = models.filter(({ held }) => held.length === 0)
  const counts = [
    [free.filter(({ state }) => state === 'new').length, 'new'],
    [free.filter(({ state }) => state === 'changed').length, 'changed'],
    [models.length - free.length, 'held back'],
    [free.filter(({ state }) => state === 'unchanged').length, 'unchanged'],
  ] as const
  const told = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  const toDo = free.some(({ state }) => state !== 'unchanged')
  const end = isApplied
    ? toDo
      ? ' Written.'
      : ' Nothing to write.'
    : toDo
      ? ' Nothing is written yet: add --apply.'
      : ''
  return `${file}: ${told.join(', ') || 'no models'}.${end}`
}

const OTHERS_SHOWN = 10

function othersLines(others: readonly string[]): readonly string[] {
  if (others.length === 0) return []
  const shown = others.slice(0, OTHERS_SHOWN).join(', ')
  const more = others.length > OTHERS_SHOWN ? `, and ${others.length - OTHERS_SHOWN} more` : ''
  return [`Not in the file, and unchanged: ${shown}${more}.`]
}

function heldLines({ models }: ImportPlan, isApplied: boolean): readonly string[] {
  const held = models.filter((one) => one.held.length > 0).map(({ model }) => model)
  if (held.length === 0) return []
  const again = held.map((model) => `--allow ${model}`).join(' ')
  return [
    styleText('red', `Held back${isApplied ? ', not written' : ''}: ${held.join(', ')}.`),
    `Check them. If they are right, run the command again with ${again}.`,
  ]
}

function widest(texts: readonly string[]): number {
  return Math.min(WIDTH_MOST, Math.max(0, ...texts.map(({ length }) => length)))
}

const WIDTH_MOST = 48
