import { ConfigError } from '../config.ts'
import type { Secret } from '../kernel/secret.ts'
import { problemText } from '../operate/action.ts'
import { PriceListError } from '../pricing/price-list/problems.ts'
import { createScrubber, secretsOf } from '../telemetry/scrubber.ts'

/** What PostgreSQL, the network or the driver says, and what an operator can do about it. */
const REMEDIES: Readonly<Record<string, readonly [problem: (at: string) => string, remedy: string]>> = {
  ECONNREFUSED: [unreachable, 'start PostgreSQL or correct the address'],
  ENOENT: [unreachable, 'start PostgreSQL or correct the folder of its socket'],
  ENOTFOUND: [unreachable, 'the host is unknown: correct its name'],
  EAI_AGAIN: [unreachable, 'the DNS lookup failed: correct the name of the host, or fix DNS'],
  EHOSTUNREACH: [unreachable, 'correct the address, or fix the network'],
  ENETUNREACH: [unreachable, 'correct the address, or fix the network'],
  ETIMEDOUT: [unreachable, 'it does not answer: correct the address, or open the firewall'],
  ECONNRESET: [unreachable, 'it closed the connection: see its log, or correct the address'],
  '28P01': [(at) => `PostgreSQL at ${at} rejected the user name or the password`, 'correct them'],
  '28000': [(at) => `PostgreSQL at ${at} rejected this user`, 'correct the user, or allow it in pg_hba.conf'],
  '3D000': [(at) => `PostgreSQL at ${at} has no database of that name`, 'create it, or correct the name'],
  '53300': [
    (at) => `PostgreSQL at ${at} has no free connection`,
    'raise its max_connections, or lower database.money_connections and database.rest_connections',
  ],
  '57P03': [(at) => `PostgreSQL at ${at} is starting or stopping`, 'try again when it is up'],
}

/** The driver gives these no code. */
const CODES_OF_TEXTS: readonly (readonly [text: RegExp, code: string])[] = [
  [/^timeout expired$|connection timeout|timeout exceeded when trying to connect/i, 'ETIMEDOUT'],
  [/^Connection terminated unexpectedly$/, 'ECONNRESET'],
  [/^SASL: .*password must be/, '28P01'],
]

/** Lines for an operator: what is wrong and what to change, with nothing secret in them. */
export function explain(error: unknown, databaseUrl: Secret | undefined): readonly string[] {
  if (error instanceof ConfigError || error instanceof PriceListError) return error.problems
  if (databaseUrl === undefined) return [textOf(error)]
  const code = codesOf(error).find((one) => Object.hasOwn(REMEDIES, one))
  const [problem, remedy] = (code !== undefined && REMEDIES[code]) || []
  if (problem !== undefined) return [`database.url: ${problem(placeOf(databaseUrl))} (${code}): ${remedy}`]
  return [createScrubber(secretsOf(databaseUrl))(textOf(error))]
}

function unreachable(at: string): string {
  return `can't reach ${at}`
}

/** A host of several addresses fails with an error for each, under one that has no text. */
function codesOf(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return []
  // A file of our own can be missing too, which says nothing about the database.
  const isAboutFile = 'syscall' in error && error.syscall !== 'connect' && 'path' in error
  const own = 'code' in error && typeof error.code === 'string' && !isAboutFile ? [error.code] : []
  const told = CODES_OF_TEXTS.filter(([text]) => text.test(error.message)).map(([, code]) => code)
  return [...own, ...told, ...(error instanceof AggregateError ? error.errors.flatMap(codesOf) : [])]
}

function textOf(error: unknown): string {
  return problemText(error) || codesOf(error)[0] || (error instanceof Error ? error.name : '')
}

function placeOf(databaseUrl: Secret): string {
  const { hostname, port, searchParams } = new URL(databaseUrl.reveal())
  return `${searchParams.get('host') ?? hostname}:${searchParams.get('port') ?? (port || '5432')}`
}
