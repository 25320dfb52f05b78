import type { Log } from '../telemetry/log.ts'

/** Node would print such an error to standard error as it is, with whatever secret its text carries. */
export function endOnUncaught(log: Pick<Log, 'error'>): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.error('ended by an error that nobody caught', { error })
      process.exit(1)
    })
  }
}
