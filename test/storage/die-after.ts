import pg from 'pg'

/**
 * Lets this process end with SIGKILL as soon as its n-th statement from now on has left: before it hears of it, and before the next one. Null to live. How
 * many there were, for whoever lives.
 */
export function dieAfterStatement(dieAfter: number | null): () => number {
  let statements = 0
  const send: (...asked: unknown[]) => unknown = pg.Client.prototype.query
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, ...asked: unknown[]): unknown {
      statements += 1
      const sent = send.apply(this, asked)
      if (statements === dieAfter) process.kill(process.pid, 'SIGKILL')
      return sent
    },
  })
  return () => statements
}
