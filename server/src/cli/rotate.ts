import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { SEALED_IN_TASKS } from '../gateway/plans/video-tasks.ts'
import { sealOf } from '../kernel/seal.ts'
import { VERIFIERS } from '../links/attempts.ts'
import { TOKEN_KEYS } from '../links/tokens.ts'
import { SEALED_MESSAGES } from '../storage/outbox.ts'
import { reseal } from '../storage/reseal.ts'
import { CREDENTIALS } from '../upstreams/credential.ts'
import { print, running, withPools } from './command.ts'

/** Everything that is under the master key. */
const ALL = [CREDENTIALS, TOKEN_KEYS, VERIFIERS, ...SEALED_IN_TASKS, SEALED_MESSAGES]

export function addSecretCommands(program: Command): void {
  const secrets = program.command('secrets').description('look after what is kept sealed')
  secrets
    .command('rotate')
    .description(
      'seal everything anew with secrets.master_key that was sealed with secrets.previous_master_key; nothing has to stop for it',
    )
    .action(() => running(rotate))
}

async function rotate(config: Config): Promise<void> {
  const seal = sealOf(config.secrets)
  if (seal === null) throw new Error('there is no master key: set secrets.master_key (FAREBOX_SECRETS_MASTER_KEY)')
  await withPools(config, async ({ rest: pool }) => {
    const lost: string[] = []
    for (const sealed of ALL) {
      const { done, failed } = await reseal(pool, seal, sealed)
      print(`${done} ${sealed.what} were sealed anew.`)
      lost.push(...failed.map((key) => `${sealed.table} ${key}`))
    }
    if (lost.length > 0)
      throw new Error(`neither key opens these, which stay as they are: ${lost.slice(0, 20).join(', ')}`)
    print(
      'Everything is under secrets.master_key now: secrets.previous_master_key can be left out once every process has it.',
    )
  })
}
