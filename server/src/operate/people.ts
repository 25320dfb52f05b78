import { z } from 'zod'
import { readAddress } from '../people/mailbox.ts'
import { factorOff, type ListedPerson, listPeople, type ShownPerson, showPerson } from '../people/operate.ts'
import { endAllSessions } from '../people/sessions.ts'
import { action, field, type OperatorParts } from './action.ts'
import { afterField, LISTED } from './fields.ts'

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

function stateOf({ verifiedAt, hasSecondFactor }: ListedPerson): string {
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

const closeSessions = action({
  name: 'people close-sessions',
  summary: 'sign a person out everywhere',
  effect: 'writes',
  positional: ['person'],
  input,
  async run({ pool, by }, { person }) {
    const { id } = await personOf(pool, person)
    return { id, closed: await endAllSessions(pool, by, id) }
  },
  lines: ({ id, closed }) => [`${closed} sessions of ${id} closed.`],
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

export const people = [list, show, closeSessions, takeFactorOff]
