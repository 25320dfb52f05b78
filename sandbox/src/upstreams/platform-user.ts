import { hash } from 'node:crypto'

/** Somebody who has an account on the platform. Whoever is named has one. */
export type User = { readonly id: string; readonly name: string; readonly username: string }

const USERNAME = /^[A-Za-z0-9_]{1,50}$/
const ID_SPACE = 10n ** 18n

/** The same user always has the same id of 19 digits, and another one with another seed. */
export function userNamed(username: string, seed: number): User {
  const digits = BigInt(`0x${hash('sha256', `user ${seed} ${username}`).slice(0, 16)}`) % ID_SPACE
  const id = `1${String(digits).padStart(18, '0')}`
  return { id, name: username.charAt(0).toUpperCase() + username.slice(1).replaceAll('_', ' '), username }
}

export function isUsername(value: unknown): value is string {
  return typeof value === 'string' && USERNAME.test(value)
}
