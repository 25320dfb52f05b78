import type { ClassPricesText } from '../class-prices.ts'
import { FORMAT } from './format.ts'

/** A price list as it stands in its file: what a converter writes. */
export type FileModel = {
  readonly context_window?: number
  readonly output_most?: number
  readonly price: FilePrice
  /** What the upstream charges us. */
  readonly cost?: FilePrice
}

export type FilePrice = {
  readonly input: string
  readonly output: string
  readonly cache_read?: string
  readonly cache_write?: string
  readonly classes?: ClassPricesText
}

/** As YAML, in the order given, to be read and edited by people. */
export function writePriceList(models: Readonly<Record<string, FileModel>>): string {
  const lines = [`format: ${FORMAT}`, 'models:']
  for (const [id, model] of Object.entries(models)) lines.push(`  ${JSON.stringify(id)}:`, ...membersOf(model, '    '))
  return `${lines.join('\n')}\n`
}

function membersOf(value: object, indent: string): readonly string[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    if (Array.isArray(inner)) return [`${indent}${name}:`, ...inner.flatMap((item) => itemOf(item, `${indent}  `))]
    if (typeof inner === 'object') return [`${indent}${name}:`, ...membersOf(inner, `${indent}  `)]
    // Numbers and plain decimals alone come here: they need no quotes.
    return [`${indent}${name}: ${inner}`]
  })
}

function itemOf(item: object, indent: string): readonly string[] {
  const [first = '', ...rest] = membersOf(item, `${indent}  `)
  return [`${indent}- ${first.trimStart()}`, ...rest]
}
