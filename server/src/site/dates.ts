const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]

/** As `15 November 2026`, in UTC. */
export function dayOf(time: Date): string {
  return `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()]} ${time.getUTCFullYear()}`
}

/** As `15 November 2026, 14:05 UTC`. */
export function minuteOf(time: Date): string {
  return `${dayOf(time)}, ${time.toISOString().slice(11, 16)} UTC`
}
