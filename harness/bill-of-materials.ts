import { readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { ROOT } from './root.ts'
import type { BundledPackage } from './third-party-notices.ts'

const Lockfile = z.object({
  packages: z.record(z.string(), z.object({ version: z.string().optional(), integrity: z.string().optional() })),
})
type Package = Omit<BundledPackage, 'folder'>

/**
 * What a build contains, as CycloneDX: each package in the bundle with its license and the checksum that the lockfile has of it, and the Node
 * that runs it. It has no time and no random number, so that two builds of one commit have the same bytes.
 */
export function billOfMaterials(version: string, packages: readonly Package[]): string {
  const checksums = readChecksums()
  const program = {
    type: 'application',
    'bom-ref': 'farebox',
    name: 'farebox',
    version,
    licenses: licensesOf('Apache-2.0'),
  }
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: program },
    components: packages.map((one) => componentOf(one, checksums)),
    dependencies: [{ ref: 'farebox', dependsOn: packages.map(purlOf) }],
  }
  return written(bill)
}

const purlOf = ({ name, version }: Package) => `pkg:npm/${name.replace(/^@/, '%40')}@${version}`
const licensesOf = (expression: string) => [{ expression }]

function componentOf(one: Package, checksums: ReadonlyMap<string, string>) {
  const { name, version, license } = one
  const checksum = checksums.get(`${name} ${version}`)
  if (checksum === undefined) throw new Error(`package-lock.json has no checksum of ${name} ${version}`)
  const purl = purlOf(one)
  const hashes = [{ alg: 'SHA-512', content: checksum }]
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses: licensesOf(license), hashes }
}

/** The same of the program together with its Node, as it is delivered. */
export function withNode(text: string, { name, version }: { readonly name: string; readonly version: string }): string {
  const bill = JSON.parse(text)
  const node = componentOf({ name, version, license: 'MIT' }, readChecksums())
  bill.components.push(node)
  bill.dependencies[0].dependsOn.push(node.purl)
  return written(bill)
}

const written = (bill: object) => `${JSON.stringify(bill, null, 2)}\n`

/** SHA-512 of each package as npm fetches it, by name and version. */
export function readChecksums(): ReadonlyMap<string, string> {
  const { packages } = Lockfile.parse(JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')))
  const rows = Object.entries(packages).flatMap(([place, { version, integrity = '' }]): [string, string][] => {
    const name = place.split('node_modules/').at(-1)
    const [algorithm, sum] = integrity.split('-')
    return algorithm === 'sha512' ? [[`${name} ${version}`, Buffer.from(sum ?? '', 'base64').toString('hex')]] : []
  })
  return new Map(rows)
}
