import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { catalogue } from '../catalogue/catalogue.ts'
import type { Config } from '../config.ts'
import { sha256 } from '../contracts/canonical.ts'
import { type Contract, createContract } from '../contracts/contract.ts'
import { diffContracts, refusalToFollow } from '../contracts/diff.ts'
import { soldContract } from '../contracts/sold-contract.ts'
import { gatewayDraft } from '../http/routes/gateway-draft.ts'
import { readSold } from '../pricing/sold.ts'
import { print, reading, running, runningAlone, withPools } from './command.ts'

export function addContractCommands(program: Command): void {
  const contract = program.command('contract').description('show and compare OpenAPI contracts of the gateway')
  reading(contract, 'show')
    .description('print the contract of everything that this program can sell with this configuration')
    .option(
      '--sold',
      'print it as processes serve it now, without what is off or has no upstream (default: everything)',
    )
    .option('--version-only', 'print only contentHash and docsRevision')
    .action((options: ShowOptions) =>
      running(async (config) => {
        const whole = await contractOf(config)
        if (options.sold !== true) return show(whole, options)
        await withPools(config, async ({ rest }) =>
          show(soldContract(whole, catalogue, await readSold(rest, catalogue)), options),
        )
      }),
    )
  reading(contract, 'diff <before> [after]')
    .description('list the changes between two contracts; exits with 1 if they break callers')
    .addHelpText('after', '\nBoth are files. Without <after>, <before> is compared with what this program serves.')
    .action((before: string, after: string | undefined) =>
      after === undefined
        ? running(async (config) => diff(await documentIn(before), parsed((await contractOf(config)).bytes)))
        : runningAlone(async () => diff(await documentIn(before), await documentIn(after))),
    )
}

type ShowOptions = { readonly sold?: true; readonly versionOnly?: true }

async function contractOf({ names, http }: Config): Promise<Contract> {
  return createContract(await gatewayDraft(catalogue), { names, serverUrl: http.public_url })
}

function show({ contentHash, docsRevision, bytes }: Contract, { versionOnly }: ShowOptions): void {
  if (versionOnly === true) print(JSON.stringify({ contentHash, docsRevision }))
  else process.stdout.write(bytes)
}

type Read = { readonly document: unknown; readonly hash: string }

async function documentIn(file: string): Promise<Read> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new Error(`${file} cannot be read`, { cause })
  })
  return parsed(bytes, file)
}

function parsed(bytes: Buffer, file = 'the contract'): Read {
  try {
    return { document: JSON.parse(bytes.toString('utf8')), hash: sha256(bytes) }
  } catch (cause) {
    throw new Error(`${file} is not valid JSON`, { cause })
  }
}

function diff(before: Read, after: Read): void {
  const changes = diffContracts(before.document, after.document)
  for (const { kind, place, what } of changes) print(`${kind}  ${place} ${what}`)
  if (changes.length === 0)
    print(before.hash === after.hash ? 'The contracts are the same.' : 'Only descriptions differ.')
  if (refusalToFollow(before.document, after.document) === undefined) return
  print('These changes break callers: increase the major version.')
  process.exitCode = 1
}
