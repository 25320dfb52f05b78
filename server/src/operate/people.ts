import { z } from 'zod'
import { blockPerson, unblockPerson } from '../people/blocks.ts'
import { readAddress } from '../people/mailbox.ts'
import { factorOff, type ListedPerson, listPeople, type ShownPerson, showPerson } from '../people/operate.ts'
import { endAllSessions } from '../people/sessions.ts'
import { action, field, type OperatorParts } from './action.ts'
import { afterField, LISTED, reasonOf } from './fields.ts'

const list = action({
  name: 'people list',
  summary: 'list people, newest first',
  effect: 'reads',
  positional: [],
  input: z.object({ after: afterField('people') }),
  run: ({ pool }, { after = null }) => listPeople(pool, { after, most: LISTED }),
  lines: (all) => [
    ...(all.length === 0 ? ['There are no people.'] : []),
    ...all.map((person) => `${person.id}  ${person.email}  ${person.name}  ${stateOf(person)}`),
    ...(all.length === LISTED ? [`More: farebox people list --after ${all.at(-1)?.id}`] : []),
  ],
})

function stateOf({ verifiedAt, hasSecondFactor, blockedAt }: ListedPerson): string {
  if (blockedAt !== null) return `blocked since ${blockedAt.toISOString()}`
  if (verifiedAt === null) return 'address not confirmed'
  return `since ${verifiedAt.toISOString()}${hasSecondFactor ? '  with a second factor' : ''}`
}

const input = z.object({ person: field('person', 'id or e-mail address of the person', String) })

const show = action({
  name: 'people show',
  summary: 'show a person by id or e-mail address: workspaces, sessions, second factor',
  effect: 'reads',
  positional: ['person'],
  input,
  run: ({ pool }, { person }) => personOf(pool, person),
  lines(person) {
    const { id, email, name, hasPassword, issuers, workspaces, sessions } = person
    const ways = [...(hasPassword ? ['password'] : []), ...issuers]
    return [
      `${id}  ${email}  ${name}  ${stateOf(person)}`,
      `Sign-in: ${ways.length === 0 ? 'none yet' : ways.join(', ')}`,
      ...workspaces.map((one) => `Member of ${one.id}  ${one.name}  as ${one.role}`),
      ...sessions.map(
        ({ seenAt, address, agent, isComplete }) =>
          `Session from ${address}  last seen ${seenAt.toISOString()}  ${isComplete ? '' : 'waits for the second factor  '}${agent}`,
      ),
    ]
  },
})

async function personOf(pool: OperatorParts['pool'], who: string): Promise<ShownPerson> {
  const person = await showPerson(pool, readAddress(who) ?? who)
  if (person === undefined) throw new Error(`there is no person ${JSON.stringify(who)}`)
  return person
}

const endSessions = action({
  name: 'people end-sessions',
  summary: 'sign a person out everywhere',
  effect: 'writes',
  positional: ['person'],
  input,
  async run({ pool, by }, { person }) {
    const { id } = await personOf(pool, person)
    return { id, ended: await endAllSessions(pool, by, id) }
  },
  lines: ({ id, ended }) => [`${ended} sessions of ${id} ended.`],
})

const reasonedInput = input.extend({ reason: field('text', 'why: the audit log has it', reasonOf) })

const block = action({
  name: 'people block',
  summary:
    'block a person: they cannot sign in, and their sessions and grants end within a second, with all tokens of those',
  effect: 'writes',
  positional: ['person'],
  input: reasonedInput,
  async run({ pool, by }, { person, reason }) {
    const { id } = await personOf(pool, person)
    const blocked = await blockPerson(pool, by, id, reason)
    return { id, isChanged: blocked !== null, ...(blocked ?? { sessions: 0, grants: 0 }) }
  },
  lines: ({ id, isChanged, sessions, grants }) =>
    isChanged
      ? [
          `${id} is blocked. Ended: ${sessions} sessions, ${grants} grants. To end it: farebox people unblock ${id}`,
          'API keys belong to a workspace and still work: farebox keys revoke, or farebox accounts suspend.',
        ]
      : [`${id} is already blocked. Nothing was changed.`],
})

const unblock = action({
  name: 'people unblock',
  summary: 'let a blocked person sign in again; their grants stay ended',
  effect: 'writes',
  positional: ['person'],
  input: reasonedInput,
  async run({ pool, by }, { person, reason }) {
    const { id } = await personOf(pool, person)
    return { id, isChanged: await unblockPerson(pool, by, id, reason) }
  },
  lines: ({ id, isChanged }) =>
    isChanged ? [`${id} can sign in again.`] : [`${id} is not blocked. Nothing was changed.`],
})

const takeFactorOff = action({
  name: 'people factor-off',
  summary: 'turn off the second factor of a person who lost it; verify their identity first',
  effect: 'writes',
  positional: ['person'],
  input,
  async run({ pool, by, letters }, { person }) {
    const { id } = await personOf(pool, person)
    const notice = await letters()
    if (!(await factorOff(pool, by, id, notice))) throw new Error(`${id} has no second factor`)
    return { id, isTold: notice !== null }
  },
  lines: ({ id, isTold }) => [`The second factor of ${id} is off${isTold ? '; the person is informed by mail.' : '.'}`],
})

export const people = [list, show, block, unblock, endSessions, takeFactorOff]
