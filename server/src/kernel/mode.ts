/** Whether money is real: two worlds that never touch. */
export const MODES = ['live', 'test'] as const
export type Mode = (typeof MODES)[number]

export function isMode(text: string): text is Mode {
  return text === 'live' || text === 'test'
}
