import { after, describe, it } from 'node:test'
import { CALL_ATTACKS } from './attacks/calls.ts'
import { CLIENT_ATTACKS } from './attacks/clients.ts'
import { LIMIT_ATTACKS } from './attacks/limits.ts'
import { MEMBER_ATTACKS } from './attacks/members.ts'
import { SIGN_IN_ATTACKS } from './attacks/sign-in.ts'
import { type Attack, startWorld } from './attacks/world.ts'

/** Ways in that an attacker tried, written by somebody who did not write what refuses them. */
const SECTIONS: Readonly<Record<string, readonly Attack[]>> = {
  'members, keys and tokens': MEMBER_ATTACKS,
  'sign-in, second factors and mail': SIGN_IN_ATTACKS,
  'clients and links': CLIENT_ATTACKS,
  limits: LIMIT_ATTACKS,
  calls: CALL_ATTACKS,
}

const world = await startWorld()
after(world.stop)

for (const [section, attacks] of Object.entries(SECTIONS))
  describe(section, () => {
    for (const [refusal, attempt] of attacks) it(refusal, () => attempt(world))
  })
