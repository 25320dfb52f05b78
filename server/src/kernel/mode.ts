/** Whether money is real: two worlds that never touch. */
export type Mode = 'live' | 'test'
