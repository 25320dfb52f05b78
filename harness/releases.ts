import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { ROOT } from './root.ts'

const Release = z.object({
  version: z.string(),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  migrations: z.record(z.string(), z.string()),
  functions: z.record(z.string(), z.string()),
  /** What each said, as a checksum. */
  function_files: z.record(z.string(), z.string()),
  /** How many more migrations than its own its processes accept. */
  ahead: z.int(),
})
/** What docs/releases/ says of a version. */
export type Release = z.output<typeof Release>

const FOLDER = path.join(ROOT, 'docs/releases')
/** From which there is no way up. */
const BEFORE = '0.1.0.json'
const byVersion = new Intl.Collator('en', { numeric: true }).compare

/** Every version from which there is a way up, the last one at the end. */
export function releases(): readonly Release[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json') && file !== BEFORE)
    .sort(byVersion)
    .map((file) => Release.parse(JSON.parse(readFileSync(path.join(FOLDER, file), 'utf8'))))
}
