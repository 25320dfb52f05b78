/** In the largest unit that leaves no rest. Of a day one says 24 hours. */
export function durationText(seconds: number): string {
  const [size, unit] = seconds % 3_600 === 0 ? [3_600, 'hour'] : seconds % 60 === 0 ? [60, 'minute'] : [1, 'second']
  const count = seconds / size
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/

/** A time as an operator writes it. JavaScript takes many a text for one, `5` among them. A day is its beginning in UTC. */
export function timeOf(text: string): Date {
  const time = new Date(TIME.test(text) ? text : Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new Error(`${JSON.stringify(text)} is not a time: use the form 2027-01-31T00:00:00Z`)
  return time
}
