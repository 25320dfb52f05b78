import { GROUPS, type GroupName, type LimitName } from '../catalogue/limit-groups.ts'
import type { Operation } from '../catalogue/operation.ts'
import { nearest } from '../kernel/nearest.ts'

/**
 * What a key may use: operations by their ids, by category or by limit group, and models by their names. Scopes add up: a call needs
 * one of them. A key that may use an operation may use it with every model, also with those that come later.
 */
export type Scopes = {
  /** Ids of operations, categories and limit groups. */
  readonly names: ReadonlySet<string>
  readonly models: ReadonlySet<string>
}

/** What is asked for, as far as scopes see it. */
export type Sought = {
  readonly id: string
  readonly category?: string
  readonly limits: readonly LimitName[]
}

const MODEL = 'model:'
/** Of the request by which a user of a platform lets a key act for it. */
export const LINKING = { id: 'auth_link', category: 'social' } as const

/** To read the tasks and request records of every key of the account. It has to be named: no key has it because it may use everything. */
export const ACCOUNT_READ = 'account.read'

export function mayReadAccount({ names }: Scopes): boolean {
  return names.has(ACCOUNT_READ)
}

/** Reads scopes as they are stored. */
export function scopesIn(texts: readonly string[]): Scopes {
  const isModel = (text: string) => text.startsWith(MODEL)
  return {
    names: new Set(texts.filter((text) => !isModel(text))),
    models: new Set(texts.filter(isModel).map((text) => text.slice(MODEL.length))),
  }
}

/** Whether it may be used, whatever its model. */
export function allowsOperation({ names }: Scopes, { id, category, limits }: Sought): boolean {
  if (names.has(id) || (category !== undefined && names.has(category))) return true
  return limits.some((name) => isGroup(name) && names.has(name))
}

export function allowsModel({ models }: Scopes, model: string | undefined): boolean {
  return model !== undefined && models.has(model)
}

/** Whether it depends on the model that a request names. */
export function mayAllowModel({ models }: Scopes, { category }: Sought): boolean {
  return models.size > 0 && (category === 'models' || category === 'video')
}

function isGroup(name: LimitName): name is GroupName {
  return Object.hasOwn(GROUPS, name)
}

/** What there is to name in scopes, when they are given to a key. */
export type Known = {
  readonly operations: readonly Operation[]
  readonly models: readonly string[]
  /** Where models are listed, as whoever asks knows it. */
  readonly modelsAt?: string
}

const MOST_SCOPES = 100

/** Checks scopes that somebody wants a key to have: each is there to be used, and stands once. Throws with what is near and what is known. */
export function checkScopes(texts: readonly string[], known: Known): readonly string[] {
  if (texts.length === 0) throw new RangeError('a key needs at least one scope: name one, or revoke the key')
  if (texts.length > MOST_SCOPES)
    throw new RangeError(`a key can have at most ${MOST_SCOPES} scopes, and you named ${texts.length}`)
  for (const text of texts) requireKnown(text, known)
  return [...new Set(texts)]
}

function requireKnown(text: string, { operations, models, modelsAt = 'farebox models list' }: Known): void {
  if (text.startsWith(MODEL)) {
    const name = text.slice(MODEL.length)
    if (models.includes(name)) return
    const near = nearest(name, models)
    const hint = near === undefined ? '.' : `: did you mean ${MODEL}${near}?`
    throw new RangeError(`${quoted(text)} is not a model${hint} See ${modelsAt}`)
  }
  const categories = [...new Set(operations.map(({ category }) => category))]
  const ids = [...new Set([...operations.map(({ id }) => id), LINKING.id, ...Object.keys(GROUPS), ACCOUNT_READ])]
  const names = [...categories, ...ids]
  if (names.includes(text)) return
  const near = models.includes(text) ? `${MODEL}${text}` : nearest(text, names)
  throw new RangeError(
    `${quoted(text)} is not a scope${near === undefined ? '.' : `: did you mean ${near}?`} There are the categories ${categories.join(', ')}; ` +
      `the operations ${ids.join(', ')}; and ${MODEL}<name> for a model`,
  )
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 60))
}
