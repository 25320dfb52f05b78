import { readdirSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { ownWordOf } from '../harness/new-operation.ts'
import { defaultNames } from '../harness/recorded-contract.ts'
import { sandboxPrefixOf } from '../harness/seed.ts'
import type { Answer } from '../sandbox/src/answer.ts'
import { upstreamAt } from '../sandbox/src/upstreams.ts'
import { isSoldByUnit, type Operation, spell } from '../server/src/catalogue/operation.ts'

/** What has a file of its own, and a line in a list. */
export type Listed<One> = {
  /** From the root of the project. */
  readonly folder: string
  readonly list: string
  readonly entries: readonly One[]
  /** Tells what is meant from whatever else a file exports. */
  readonly isOne: (value: unknown) => value is One
  readonly nameOf: (one: One) => string
}

/** What a folder has and its list forgets, and what the list has and the folder does not: a sentence each. */
export async function unevenIn<One>(root: string, listed: Listed<One>): Promise<readonly string[]> {
  const { folder, list, entries, isOne, nameOf } = listed
  const files = readdirSync(path.join(root, folder)).filter((file) => /(?<!\.test)\.ts$/.test(file))
  const made = await Promise.all(
    files.map(async (file) => {
      const exported: unknown[] = Object.values(await import(pathToFileURL(path.join(root, folder, file)).href))
      return exported.filter(isOne).map((one) => ({ one, file: `${folder}/${file}` }))
    }),
  )
  const all = made.flat()
  const forgotten = all.filter(({ one }) => !entries.includes(one))
  const without = entries.filter((entry) => !all.some(({ one }) => one === entry))
  return [
    ...forgotten.map(({ one, file }) => `${file} makes ${nameOf(one)}, which ${list} does not list: add it there`),
    ...without.map((one) => `${list} lists ${nameOf(one)}, which no file in ${folder}/ makes: give it one`),
  ]
}

const hasTexts = (value: unknown, ...names: readonly string[]) =>
  typeof value === 'object' && value !== null && names.every((name) => typeof Reflect.get(value, name) === 'string')

export function isOperation(value: unknown): value is Operation {
  return hasTexts(value, 'id', 'method', 'path', 'dialect')
}

export function isAnswer(value: unknown): value is Answer {
  return hasTexts(value, 'upstream', 'method', 'path', 'credential')
}

export function answerName({ upstream, method, path: at }: Answer): string {
  return `the answer to ${method} ${at} of ${upstream}`
}

/** First words of paths below /apis/v1 that no setting spells and the list of them forgets, and those that it has for nothing. */
export function unevenWords(paths: readonly string[], reserved: readonly string[]): readonly string[] {
  const words = new Set(paths.flatMap((at) => ownWordOf(at) ?? []))
  const list = 'server/src/config/reserved-segments.ts'
  return [
    ...[...words].filter((word) => !reserved.includes(word)).map((word) => `${list} does not have "${word}": add it`),
    ...reserved.filter((word) => !words.has(word)).map((word) => `${list} has "${word}", which no path begins with`),
  ]
}

/** Answers of the sandbox that no operation asks for. */
export function unusedAnswers(answers: readonly Answer[], operations: readonly Operation[]): readonly string[] {
  const asked = operations
    .filter(isSoldByUnit)
    .map(({ method, upstream }) => `${upstream.slot} ${method} ${upstream.path}`)
  return answers
    .filter(({ upstream, method, path: at }) => !asked.includes(`${upstream} ${method} ${at}`))
    .map((answer) => `No operation asks for ${answerName(answer)}: remove it, or correct its upstream, method or path`)
}

/** Operations sold by the unit to which the sandbox has no answer. */
export function unanswered(operations: readonly Operation[]): readonly string[] {
  const names = { ...defaultNames(), linked_user: '1234567890123456789' }
  return operations.filter(isSoldByUnit).flatMap(({ id, method, upstream }) => {
    const prefix = sandboxPrefixOf(upstream.slot)
    const place = prefix === undefined ? undefined : upstreamAt(prefix + spell(upstream.path, names))
    if (place?.upstream.has(place.rest) && [method, 'either'].includes(place.upstream.methodOf(place.rest))) return []
    return [
      `The sandbox does not answer ${id} (${method} ${upstream.path} of ${upstream.slot}): add a file to sandbox/src/answers/`,
    ]
  })
}
