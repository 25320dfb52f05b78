import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import path from 'node:path'
import type { Hung } from './deliver.ts'
import { finish } from './exchange.ts'
import { closeEntry, type OpenEntry } from './journal.ts'
import { isObject } from './json.ts'
import { readBody } from './read-body.ts'

export const REPLAY = '/replay/'
const FILES_LIMIT = 1_000

type Recorded = {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly pieces: readonly string[]
  /** Whether who recorded it left before its end, so that there is none. */
  readonly isLeft: boolean
}

/** Answers by what the request was: method, path below the name, and body. */
export type Replays = ReadonlyMap<string, ReadonlyMap<string, Recorded>>

/** The recordings of `farebox upstreams probe --record`, by the names of their folders. */
export function readReplays(folders: readonly string[]): Replays {
  return new Map(folders.map((folder) => [path.basename(path.resolve(folder)), readFolder(folder)]))
}

function readFolder(folder: string): ReadonlyMap<string, Recorded> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  if (files.length === 0 || files.length > FILES_LIMIT)
    throw new Error(`${folder} has ${files.length} recordings: 1 to ${FILES_LIMIT} can be replayed`)
  return new Map(files.map((name) => readRecording(path.join(folder, name))))
}

function readRecording(file: string): [key: string, recorded: Recorded] {
  const json: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!isObject(json) || json.format !== 1 || !isObject(json.request) || !isObject(json.reply))
    throw new Error(`${file} is no recording`)
  const { method, path: target, body } = json.request
  const { status, headers, pieces, end } = json.reply
  if (typeof status !== 'number' || !isObject(headers) || !Array.isArray(pieces))
    throw new Error(`${file} has no reply`)
  const recorded = {
    status,
    headers: Object.entries(headers).map(([name, value]) => [name, String(value)] as const),
    pieces: pieces.map((piece) => String(piece.text)),
    isLeft: end === 'left',
  }
  return [keyOf(String(method), String(target), String(body)), recorded]
}

function keyOf(method: string, target: string, body: string): string {
  return `${method} ${target}\n${body}`
}

type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly entry: OpenEntry
  readonly path: string
  readonly query: string
  readonly hung: Hung
}

/** Answers a request that was recorded with the recorded bytes, at once and whatever its credential; others with 404. */
export function answerReplay(replays: Replays, { request, response, entry, path, query, hung }: Exchange): void {
  const end = path.indexOf('/', REPLAY.length)
  const recordings = end < 0 ? undefined : replays.get(path.slice(REPLAY.length, end))
  const target = path.slice(end) + (query === '' ? '' : `?${query}`)
  readBody(request, (body) => {
    if (body === 'left') return closeEntry(entry, 'left')
    const recorded =
      body === 'too-large' ? undefined : recordings?.get(keyOf(request.method ?? '', target, body.toString()))
    if (recorded === undefined) finish(response, entry, 404, { error: 'No recording has this request.' }, 'refused')
    else send(recorded, response, entry, hung)
  })
}

/** What was left is not ended: the client has to leave, as then. */
function send(
  { status, headers, pieces, isLeft }: Recorded,
  response: ServerResponse,
  entry: OpenEntry,
  hung: Hung,
): void {
  entry.status = status
  response.writeHead(status, headers.flat())
  for (const piece of pieces) response.write(piece)
  if (isLeft) {
    hung.add(response)
    response.once('close', () => {
      hung.delete(response)
      closeEntry(entry, 'left')
    })
  } else {
    response.end()
    closeEntry(entry, 'answered')
  }
}
