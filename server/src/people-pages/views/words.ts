import { formatUsd, type Nanos } from '../../kernel/money.ts'
import type { Role } from '../../kernel/role.ts'

/** Words that several pages share. Times are UTC, and say so: a page without a script does not know its reader's. */
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
const TIME = new Intl.DateTimeFormat('en-GB', {
  ...{ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZone: 'UTC' },
})
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: 'UTC' })

const SHORT_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })
const SECONDS = new Intl.DateTimeFormat('en-GB', {
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZone: 'UTC' },
})

/** Where there is little room. */
export function shortDayOf(at: Date): string {
  return SHORT_DAY.format(at)
}

const TODAY_MS = 20 * 3_600_000

/** In a list of calls: of those of the last hours when, and of others on which day. */
export function momentOf(at: Date, now = new Date()): string {
  return now.getTime() - at.getTime() < TODAY_MS ? SECONDS.format(at) : SHORT_DAY.format(at).replace(/ \d+$/, '')
}

export function dayOf(at: Date): string {
  return DAY.format(at)
}

/** Within the last days, where the year goes without saying. */
export function timeOf(at: Date): string {
  return `${TIME.format(at)} UTC`
}

/** Within the next hours, where the day goes without saying. */
export function clockOf(at: Date): string {
  return `${CLOCK.format(at)} UTC`
}

/** How long to wait, as a person says it. */
export function waitOf(seconds: number): string {
  if (seconds < 90) return many(Math.max(1, Math.ceil(seconds)), 'second')
  const minutes = Math.ceil(seconds / 60)
  return minutes < 90 ? many(minutes, 'minute') : many(Math.ceil(minutes / 60), 'hour')
}

/** Such as $2.00, or $0.005. */
export function dollars(amount: Nanos): string {
  return `$${formatUsd(amount).replace(/0{1,7}$/, '')}`
}

const ROLE_NAMES: Readonly<Record<Role, string>> = {
  owner: 'an owner',
  admin: 'an admin',
  developer: 'a developer',
  billing: 'a billing member',
  viewer: 'a viewer',
}

export function roleName(role: Role): string {
  return ROLE_NAMES[role]
}

export function many(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`
}
