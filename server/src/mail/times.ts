/** A mail is read in any place and on any day, so times are whole and in UTC. */

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' })
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' })

/** 15 November 2026 */
export function dayOf(iso: string): string {
  return DAY.format(new Date(iso))
}

/** 15 November 2026 at 20:58 UTC */
export function momentOf(iso: string): string {
  return `${dayOf(iso)} at ${TIME.format(new Date(iso))} UTC`
}
