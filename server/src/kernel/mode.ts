/** Whether money is real: two worlds that never touch. */
export type Mode = 'live' | 'test'

export function isMode(text: string): text is Mode {
  return text === 'live' || text === 'test'
}
