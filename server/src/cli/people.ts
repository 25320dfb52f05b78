import type { Command } from 'commander'
import type pg from 'pg'
import type { Config } from '../config.ts'
import { createAttempts } from '../identity/people/attempts.ts'
import { createInvitations } from '../identity/people/invitations.ts'
import { readAddress } from '../identity/people/mailbox.ts'
import { keysDecisionIn } from '../identity/people/member-keys.ts'
import { addMember, changeRole, type Member, membersOf, removeMember, transfer } from '../identity/people/members.ts'
import { factorOff, type ListedPerson, listPeople, type ShownPerson, showPerson } from '../identity/people/operate.ts'
import type { Notices } from '../identity/people/owner-notices.ts'
import { endAllSessions } from '../identity/people/sessions.ts'
import type { Hand } from '../identity/people/workspace-lock.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import { Fault } from '../kernel/fault.ts'
import { ROLES, type Role } from '../kernel/role.ts'
import { createSendMail } from '../storage/mail.ts'
import { accountIdOf, idOf, ids, operator, plain, print, reading, running, withPools, writing } from './command.ts'
import { sealFor } from './seal-for.ts'

export function addPeopleCommands(program: Command): void {
  const people = program.command('people').description('manage the people who can sign in')
  reading(people, 'list')
    .description('list people, newest first')
    .option('--after <id>', 'only people after this one, for the next page (default: from the newest)')
    .action(({ after }: { after?: string }) => running((config) => list(config, after)))
  reading(people, 'show <person>')
    .description('show a person by id or e-mail address: workspaces, sessions, second factor')
    .action((who: string) => running((config) => show(config, who)))
  writing(people, 'close-sessions <person>')
    .description('sign a person out everywhere')
    .action((who: string) => running((config) => closeSessions(config, who)))
  writing(people, 'factor-off <person>')
    .description('turn off the second factor of a person who lost it; verify their identity first')
    .action((who: string) => running((config) => takeOff(config, who)))

  const members = program.command('members').description('manage the members of a customer account')
  reading(members, 'list <account>')
    .description('list the members of an account')
    .action((account: string) => running((config) => listMembers(config, account)))
  writing(members, 'add <account> <email> <role>')
    .description(`add an address as a member at once, with the role ${ROLES.join(', ')}; a new person joins at sign-up`)
    .action((account: string, email: string, role: string) => running((config) => add(config, account, email, role)))
  writing(members, 'role <account> <member> <role>')
    .description('change the role of a member')
    .action((account: string, member: string, role: string) =>
      running((config) => setRole(config, account, member, role)),
    )
  writing(members, 'remove <account> <member>')
    .description('remove a member')
    .option('--keys <decision>', 'what becomes of their API keys: revoke, keep, or to:<member> (required if any work)')
    .action((account: string, member: string, { keys }: { keys?: string }) =>
      running((config) => remove(config, account, member, keys)),
    )
  writing(members, 'transfer <account> <from> <to>')
    .description('transfer ownership of an account to another member; the former owner becomes an admin')
    .action((account: string, from: string, to: string) => running((config) => handOver(config, account, from, to)))
  writing(members, 'invite <account> <email> <role>')
    .description('invite an address by mail; it becomes a member when the invitation is accepted')
    .action((account: string, email: string, role: string) => running((config) => invite(config, account, email, role)))
}

const LISTED = 100

async function list(config: Config, after: string | undefined): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const people = await listPeople(pool, { after: after === undefined ? null : idOf(after), most: LISTED })
    if (people.length === 0) return print('There are no people.')
    for (const person of people) print(plain(`${person.id}  ${person.email}  ${person.name}  ${stateOf(person)}`))
    if (people.length === LISTED) print(`More: farebox people list --after ${people.at(-1)?.id}`)
  })
}

function stateOf({ verifiedAt, hasSecondFactor }: ListedPerson): string {
  if (verifiedAt === null) return 'address not confirmed'
  return `since ${verifiedAt.toISOString()}${hasSecondFactor ? '  with a second factor' : ''}`
}

async function show(config: Config, who: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const person = await personOf(pool, who)
    const { id, email, name, hasPassword, issuers, workspaces, sessions } = person
    print(plain(`${id}  ${email}  ${name}  ${stateOf(person)}`))
    const ways = [...(hasPassword ? ['password'] : []), ...issuers]
    print(`Sign-in: ${ways.length === 0 ? 'none yet' : ways.join(', ')}`)
    for (const { id: workspaceId, name: called, role } of workspaces)
      print(plain(`Member of ${workspaceId}  ${called}  as ${role}`))
    for (const { seenAt, address, agent, isComplete } of sessions)
      print(
        plain(
          `Session from ${address}  last seen ${seenAt.toISOString()}  ${isComplete ? '' : 'waits for the second factor  '}${agent}`,
        ),
      )
  })
}

async function closeSessions(config: Config, who: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await personOf(pool, who)
    print(`${await endAllSessions(pool, operator(), id)} sessions of ${id} closed.`)
  })
}

async function takeOff(config: Config, who: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await personOf(pool, who)
    const notice = await noticesOf(pool, config)
    if (!(await factorOff(pool, operator(), id, notice))) throw new Error(`${id} has no second factor`)
    print(`The second factor of ${id} is off${notice === null ? '.' : '; the person is informed by mail.'}`)
  })
}

/** Null where nobody can be told, because the website or the master key is missing. */
async function noticesOf(pool: pg.Pool, config: Config): Promise<Notices> {
  const [seal, siteUrl] = [await sealFor(pool, config), config.http.site_url]
  return seal === null || siteUrl === undefined ? null : { sendMail: createSendMail({ ids, seal }), siteUrl }
}

async function personOf(pool: pg.Pool, who: string): Promise<ShownPerson> {
  const person = await showPerson(pool, readAddress(who) ?? who)
  if (person === undefined) throw new Error(`there is no person ${JSON.stringify(who)}`)
  return person
}

async function listMembers(config: Config, account: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await findWorkspace(pool, accountIdOf(account)).catch(inWords(`account ${account}`))
    const members = await membersOf(pool, id)
    if (members.length === 0) return print('There are no members.')
    for (const member of members) print(plain(lineOf(member)))
  })
}

function lineOf({ id, email, name, role, personId, hasSecondFactor }: Member): string {
  const state = personId === null ? 'not signed up yet' : `${name ?? ''}${hasSecondFactor ? '  second factor' : ''}`
  return `${id}  ${role}  ${email}  ${state}`
}

/** An operator needs no role in the workspace. */
const hand = (): Hand => ({ by: operator(), personId: null })

async function add(config: Config, account: string, typed: string, text: string): Promise<void> {
  const [email, role] = [emailOf(typed), roleOf(text)]
  await withPools(config, async ({ rest: pool }) => {
    const parts = { pool, ids, notices: await noticesOf(pool, config) }
    const id = await addMember(parts, hand(), accountIdOf(account), { email, role }).catch(inWords(account))
    print(`Member ${id} added as ${role}.`)
  })
}

async function setRole(config: Config, account: string, member: string, text: string): Promise<void> {
  const role = roleOf(text)
  await withPools(config, async ({ rest: pool }) => {
    const parts = { pool, notices: await noticesOf(pool, config) }
    await changeRole(parts, hand(), accountIdOf(account), idOf(member), role).catch(inWords(account))
    print(`Member ${member} now has the role ${role}.`)
  })
}

async function remove(config: Config, account: string, member: string, text?: string): Promise<void> {
  const keys = text === undefined ? null : keysDecisionIn(text)
  if (keys === null && text !== undefined)
    throw new Error(`--keys is revoke, keep or to:<member>, and not ${JSON.stringify(text)}`)
  await withPools(config, async ({ rest: pool }) => {
    const parts = { pool, notices: await noticesOf(pool, config) }
    await removeMember(parts, hand(), accountIdOf(account), idOf(member), keys).catch(inWords(account))
    print(`Member ${member} removed.`)
  })
}

async function handOver(config: Config, account: string, from: string, to: string): Promise<void> {
  const members = { from: idOf(from), to: idOf(to) }
  await withPools(config, async ({ rest: pool }) => {
    const parts = { pool, notices: await noticesOf(pool, config) }
    await transfer(parts, hand(), accountIdOf(account), members).catch(inWords(account))
    print(`Member ${to} is now the owner; ${from} is now an admin.`)
  })
}

async function invite(config: Config, account: string, typed: string, text: string): Promise<void> {
  const invited = { email: emailOf(typed), role: roleOf(text) }
  const siteUrl = config.http.site_url
  if (siteUrl === undefined)
    throw new Error('http.site_url (FAREBOX_HTTP_SITE_URL) is missing: the link in the mail needs it')
  await withPools(config, async ({ rest: pool }) => {
    const seal = await sealFor(pool, config)
    if (seal === null) throw new Error('secrets.master_key (FAREBOX_SECRETS_MASTER_KEY) is missing: mail needs it')
    const sendMail = createSendMail({ ids, seal })
    const parts = { pool, ids, sendMail, attempts: createAttempts({ pool }), settings: { siteUrl } }
    const id = await createInvitations(parts).invite(hand(), accountIdOf(account), invited).catch(inWords(account))
    print(`Invitation ${id} is being sent. It is valid for 7 days.`)
  })
}

function roleOf(text: string): Role {
  const role = ROLES.find((known) => known === text)
  if (role === undefined) throw new Error(`${JSON.stringify(text)} is not a role: use one of ${ROLES.join(', ')}`)
  return role
}

function emailOf(text: string): string {
  const email = readAddress(text)
  if (email === null) throw new Error(`${JSON.stringify(text)} is not an e-mail address`)
  return email
}

/** What is told to a member on a page is told here in the words of the command line. */
function inWords(account: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Fault)) throw error
    throw new Error(
      error.code === 'resource_not_found' ? `there is no such member or account: ${account}` : error.message,
    )
  }
}
