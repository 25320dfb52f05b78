import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { median } from '../bench.ts'
import { ownCpuMicroseconds, treeCpuMicroseconds, watchOthers } from '../cpu.ts'
import type { Load, LoadReport } from './load.ts'

/**
 * A program that sends requests and measures: raw sockets, because whatever it costs is taken from what it measures. It
 * reads the CPU time of the processes that are measured itself, at the first and the last moment of the window.
 */
const { values } = parseArgs({ options: { load: { type: 'string', default: '{}' } } })
const load = JSON.parse(values.load) as Load
const secrets = readFileSync(load.secretsFile, 'utf8').trim().split('\n')
const CRLF2 = '\r\n\r\n'
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const FIRST_ANSWER_MS = 30_000
const BODY = Buffer.byteLength(load.body)
const HEAD = `POST ${load.path} HTTP/1.1\r\nHost: 127.0.0.1:${load.port}\r\nContent-Type: application/json\r\nContent-Length: ${BODY}\r\n${load.headers}Authorization: Bearer `

type Line = {
  socket: Socket | undefined
  /** When it was due; later than that by its wait for a free connection. */
  sentAtMs: number
  wroteAtMs: number
  /** Bytes of the answer that are still to come; -1 before its head, Infinity where it ends by a last chunk. */
  left: number
  tail: Buffer
  status: string
  bytes: number
}

const report = { statuses: {} as Record<string, number>, broken: 0, bytes: 0, wholeBytes: 0 }
let latencies: number[] = []
const servedMs: number[] = []
const refusedMs: number[] = []
const idle: Line[] = []
const due: number[] = []
let isOver = false

function open(line: Line, number: number): void {
  // A gateway takes so many connections from one address.
  const localAddress = `127.0.0.${2 + Math.floor(number / 500)}`
  const socket = connect({ host: '127.0.0.1', port: load.port, localAddress, noDelay: true })
  line.socket = socket
  socket.on('data', (piece) => receive(line, piece))
  socket.on('error', () => {})
  socket.on('close', () => {
    if (isOver) return
    if (line.sentAtMs !== 0) {
      report.broken += 1
      line.sentAtMs = 0
      line.left = -1
    }
    open(line, number)
    free(line)
  })
}

function send(line: Line, dueMs = performance.now()): void {
  const secret = secrets[Math.floor(Math.random() * secrets.length)] ?? ''
  line.sentAtMs = dueMs
  line.wroteAtMs = performance.now()
  line.left = -1
  line.bytes = 0
  line.socket?.write(`${HEAD}${secret}${CRLF2}${load.body}`, 'latin1')
}

function receive(line: Line, given: Buffer): void {
  let piece = given
  report.bytes += piece.length
  line.bytes += piece.length
  if (line.left === -1) {
    if (line.tail.length > 0) piece = Buffer.concat([line.tail, piece])
    const end = piece.indexOf(CRLF2)
    if (end === -1) {
      line.tail = piece
      return
    }
    const head = piece.toString('latin1', 0, end)
    line.status = head.slice(9, 12)
    line.tail = Buffer.alloc(0)
    line.left = lengthIn(head)
    piece = piece.subarray(end + CRLF2.length)
  }
  if (line.left === Number.POSITIVE_INFINITY) {
    const last = piece.length >= 5 ? piece : Buffer.concat([line.tail, piece])
    if (last.length >= 5 && last.subarray(-5).equals(LAST_CHUNK)) answered(line)
    else line.tail = last.subarray(-5)
    return
  }
  line.left -= piece.length
  if (line.left <= 0) answered(line)
}

const LENGTH = /content-length: (\d+)/i

function lengthIn(head: string): number {
  const length = LENGTH.exec(head)?.[1]
  return length === undefined ? Number.POSITIVE_INFINITY : Number(length)
}

function answered(line: Line): void {
  const nowMs = performance.now()
  const tookMs = nowMs - line.sentAtMs
  if (line.status === '200') {
    latencies.push(tookMs)
    servedMs.push(nowMs - line.wroteAtMs)
    report.wholeBytes += line.bytes
  } else refusedMs.push(nowMs - line.wroteAtMs)
  report.statuses[line.status] = (report.statuses[line.status] ?? 0) + 1
  line.sentAtMs = 0
  line.left = -1
  line.tail = Buffer.alloc(0)
  free(line)
}

/** With a rate, the next request waits for its time, or has been due for a while; without one, it follows at once. */
function free(line: Line): void {
  if (isOver) return
  if (load.rate === undefined) send(line)
  else {
    const dueMs = due.shift()
    if (dueMs === undefined) idle.push(line)
    else send(line, dueMs)
  }
}

const DUE_LIMIT = 100_000

/** Requests come whether or not those before were answered; who finds no free connection waits, and that counts. */
function pace(rate: number): void {
  const startedMs = performance.now()
  let sent = 0
  const tick = () => {
    if (isOver) return
    const wanted = Math.floor(((performance.now() - startedMs) * rate) / 1_000)
    for (; sent < wanted; sent += 1) {
      const line = idle.shift()
      if (line !== undefined) send(line)
      else if (due.length < DUE_LIMIT) due.push(performance.now())
    }
    setTimeout(tick, 1)
  }
  tick()
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs))
}

function cpuOf(pids: Load['pids']): Record<string, number> {
  return Object.fromEntries(
    Object.entries(pids).map(([name, own]) => [name, own.reduce((sum, pid) => sum + treeCpuMicroseconds(pid), 0)]),
  )
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

const lines: Line[] = Array.from({ length: load.connections }, () => ({
  socket: undefined,
  sentAtMs: 0,
  wroteAtMs: 0,
  left: -1,
  tail: Buffer.alloc(0),
  status: '',
  bytes: 0,
}))
for (const [number, line] of lines.entries()) open(line, number)
await Promise.all(lines.map(({ socket }) => new Promise((resolve) => socket?.once('connect', resolve))))
if (load.rate === undefined) for (const line of lines) send(line)
else {
  idle.push(...lines)
  pace(load.rate)
}

const others = { usedUs: watchOthers(load.runnerPid), fromMs: performance.now() }
await sleep(load.warmUpMs)
report.statuses = {}
report.broken = 0
report.bytes = 0
report.wholeBytes = 0
latencies = []
servedMs.length = 0
refusedMs.length = 0
const before = { cpu: cpuOf(load.pids), ownUs: ownCpuMicroseconds(), atMs: performance.now() }
const seconds: { answered: number; p50Ms: number }[] = []
let seen = 0
const look = setInterval(() => {
  const last = latencies.slice(seen)
  seen = latencies.length
  seconds.push({ answered: last.length, p50Ms: last.length === 0 ? 0 : median(last) })
}, 1_000)
await sleep(load.measureMs)
// A short window on a busy machine may end before the first answer, and then it has measured nothing.
while (latencies.length === 0 && performance.now() - before.atMs < FIRST_ANSWER_MS) await sleep(50)
clearInterval(look)
const measuredMs = performance.now() - before.atMs
const after = { cpu: cpuOf(load.pids), ownUs: ownCpuMicroseconds() }
const othersCores = others.usedUs() / ((performance.now() - others.fromMs) * 1_000)
isOver = true
for (const { socket } of lines) socket?.destroy()

const sorted = latencies.toSorted((a, b) => a - b)
const served = servedMs.toSorted((a, b) => a - b)
const refused = refusedMs.toSorted((a, b) => a - b)
const told: LoadReport = {
  answered: sorted.length,
  refused: refused.length,
  statuses: report.statuses,
  broken: report.broken,
  bytes: report.bytes,
  bytesOfOne: report.wholeBytes / sorted.length,
  measuredMs,
  perSecond: (sorted.length * 1_000) / measuredMs,
  p50Ms: quantile(sorted, 0.5),
  p99Ms: quantile(sorted, 0.99),
  servedP50Ms: quantile(served, 0.5),
  servedP99Ms: quantile(served, 0.99),
  refusedP50Ms: quantile(refused, 0.5),
  refusedP99Ms: quantile(refused, 0.99),
  seconds,
  cpuUs: Object.fromEntries(Object.entries(after.cpu).map(([name, us]) => [name, us - (before.cpu[name] ?? 0)])),
  generatorShare: (after.ownUs - before.ownUs) / (measuredMs * 1_000),
  othersCores,
}
process.stdout.write(`${JSON.stringify(told)}\n`, () => process.exit())
