import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { FromRacer, Job, Race, Result, Shape, ToRacer } from './racer.ts'

/** Processes that race each other, each with connections of its own. They end with us, whatever ends us. */
export type Team = {
  /** Runs a race in every process, begun by all at once; what each of them was told. */
  readonly race: (shape: Shape, raceOf: (place: number) => Race) => Promise<readonly (readonly Result[])[]>
  /** The same for a race that goes on until it is stopped, and tells then. */
  readonly start: (shape: Shape, raceOf: (place: number) => Race) => Promise<Running>
  readonly close: () => Promise<void>
}

export type Running = { readonly stop: () => Promise<readonly (readonly Result[])[]> }

const PROGRAM = path.join(import.meta.dirname, 'racer.ts')
export const PROCESSES = 3

export function startTeam(url: string, processes = PROCESSES): Team {
  const racers = Array.from({ length: processes }, () => new Racer())

  async function begin(shape: Shape, raceOf: (place: number) => Race): Promise<Promise<readonly Result[]>[]> {
    await Promise.all(racers.map((racer, place) => racer.prepare({ url, shape, race: raceOf(place) })))
    return racers.map((racer) => racer.go())
  }

  return {
    race: async (shape, raceOf) => Promise.all(await begin(shape, raceOf)),
    async start(shape, raceOf) {
      const running = await begin(shape, raceOf)
      return {
        stop() {
          for (const racer of racers) racer.stop()
          return Promise.all(running)
        },
      }
    },
    async close() {
      await Promise.all(racers.map((racer) => racer.close()))
    },
  }
}

class Racer {
  readonly #process: ChildProcess
  #expected: PromiseWithResolvers<FromRacer> | undefined

  constructor() {
    this.#process = fork(PROGRAM, { serialization: 'advanced', execArgv: [] })
    this.#process.on('message', (message: FromRacer) => this.#expected?.resolve(message))
    this.#process.on('exit', (code, signal) =>
      this.#expected?.reject(new Error(`a racer exited with ${signal ?? code}`)),
    )
  }

  async prepare(job: Job): Promise<void> {
    const answer = await this.#ask(job)
    if (answer !== 'ready') throw new Error(`a racer is not ready: ${JSON.stringify(answer)}`)
  }

  async go(): Promise<readonly Result[]> {
    const answer = await this.#ask('go')
    if (typeof answer === 'string' || 'error' in answer) throw new Error(`a racer failed: ${JSON.stringify(answer)}`)
    return answer.results
  }

  stop(): void {
    this.#process.send('stop')
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null) return
    const exited = once(this.#process, 'exit')
    this.#process.disconnect()
    await exited
  }

  #ask(message: ToRacer): Promise<FromRacer> {
    this.#expected = Promise.withResolvers()
    this.#process.send(message)
    return this.#expected.promise
  }
}
