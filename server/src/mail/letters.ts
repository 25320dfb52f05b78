import { may, type Permission, type Role } from '../kernel/role.ts'
import type { Mail } from '../storage/mail.ts'
import { type Block, type Letter, strong, words } from './letter.ts'
import { nameOf } from './names.ts'
import { dayOf, momentOf } from './times.ts'

/** The words of every letter. Each says what happened, what to do, and what if it was not you. */

export function letterOf(mail: Mail): Letter {
  switch (mail.what) {
    case 'verify':
      return verify(mail)
    case 'registered':
      return registered(mail)
    case 'reset':
      return reset(mail)
    case 'password_changed':
      return passwordChanged(mail)
    case 'factor_changed':
      return factorChanged(mail)
    case 'factor_guessed':
      return factorGuessed(mail)
    case 'invitation':
      return invitation(mail)
    case 'admin_added':
      return adminAdded(mail)
    case 'member_removed':
      return memberRemoved(mail)
    case 'charge_refunded':
      return chargeRefunded(mail)
    case 'link_refused':
      return linkRefused(mail)
    case 'grant_reused':
      return grantReused(mail)
    case 'mandate_used':
      return mandateUsed(mail)
    case 'budget_used':
      return budgetUsed(mail)
    case 'balance_low':
      return balanceLow(mail)
    case 'quota_asked':
      return quotaAsked(mail)
    case 'quota_decided':
      return quotaDecided(mail)
    case 'closure_asked':
      return closureAsked(mail)
    case 'closure_canceled':
      return closureCanceled(mail)
    case 'workspace_suspended':
      return workspaceSuspended(mail)
    case 'workspace_resumed':
      return workspaceResumed(mail)
    case 'closure_done':
      return closureDone(mail)
  }
}

type Of<What extends Mail['what']> = Extract<Mail, { what: What }>

function verify({ to, link, until, credit }: Of<'verify'>): Letter {
  return {
    subject: 'Verify your address',
    title: 'Verify your address',
    blocks: [
      paragraph`Somebody, we hope you, has created an account for ${strong(to)}. Open the link to confirm that this mailbox is yours.`,
      button('Verify this address', link),
      credit === null
        ? paragraph`It works once, until ${strong(momentOf(until))}. Then the account can be used.`
        : paragraph`It works once, until ${strong(momentOf(until))}. Then the account can be used, and ${strong(`$${credit}`)} of credit is there.`,
      small`If it was not you, do nothing: the account is deleted after a day.`,
    ],
  }
}

function registered({ to, signInUrl, resetUrl, at, address }: Of<'registered'>): Letter {
  return {
    subject: 'You already have an account',
    title: 'You already have an account',
    blocks: [
      paragraph`Somebody, we hope you, wanted to create an account for ${strong(to)}, on ${momentOf(at)}, from ${address}. It already exists, so nothing has changed.`,
      button('Sign in', signInUrl),
      { kind: 'link', label: 'If you forgot the password, choose a new one', url: resetUrl },
      small`If it was not you, do nothing. Nobody has learned that you have an account.`,
    ],
  }
}

function reset({ to, link, until, at, address }: Of<'reset'>): Letter {
  return {
    subject: 'Choose a new password',
    title: 'Choose a new password',
    blocks: [
      paragraph`Somebody has asked for a new password for ${strong(to)}, on ${momentOf(at)}, from ${address}.`,
      button('Choose a new password', link),
      paragraph`It works once, until ${strong(momentOf(until))}. When you set a new password, all your sessions end. Your keys stay as they are, and your second factor is still required.`,
      small`If it was not you, do nothing: your password stays. If it happens again, check your sessions and turn the second factor on.`,
    ],
  }
}

function passwordChanged({ to, at, address, resetUrl }: Of<'password_changed'>): Letter {
  return {
    subject: 'Your password was changed',
    title: 'Your password was changed',
    blocks: [
      paragraph`The password of ${strong(to)} was changed on ${momentOf(at)}, from ${address}. If it was you, there is nothing to do.`,
      paragraph`If it was ${strong('not')} you, choose a new password at once. That ends all sessions.`,
      button('Choose a new password', resetUrl),
      small`You get this whenever your password changes.`,
    ],
  }
}

function factorChanged({ to, isOn, at, address, sessionsUrl }: Of<'factor_changed'>): Letter {
  return {
    subject: isOn ? 'Your second factor is on' : 'Your second factor is off',
    title: isOn ? 'Your second factor is on' : 'Your second factor is off',
    blocks: [
      isOn
        ? paragraph`From now on, signing in as ${strong(to)} needs a code from your authenticator as well as the password. The second factor was turned on on ${momentOf(at)}, from ${address}.`
        : paragraph`From now on, signing in as ${strong(to)} needs only the password. The second factor was turned off on ${momentOf(at)}, from ${address}.`,
      paragraph`If it was ${strong('not')} you, check your sessions, end those that you do not know, and change your password.`,
      button('Check your sessions', sessionsUrl),
      small`You get this whenever your second factor is turned on or off.`,
    ],
  }
}

function factorGuessed({ to, failures, isOver, at, address, resetUrl }: Of<'factor_guessed'>): Letter {
  const title = isOver ? 'Choose a new password to sign in' : 'Somebody may know your password'
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${String(failures)} codes in a row were wrong for the second factor of ${strong(to)}, the last on ${momentOf(at)}, from ${address}. Only somebody with your password, or in one of your sessions, is asked for a code.`,
      isOver
        ? paragraph`No code and no recovery code is taken any more until you choose a new password. That ends all sessions. Your second factor stays as it is.`
        : paragraph`If it was ${strong('not')} you, choose a new password at once. That ends all sessions. After 20 wrong codes in a row, no code is taken any more until you do.`,
      button('Choose a new password', resetUrl),
      small`You get this after ten and after twenty wrong codes in a row.`,
    ],
  }
}

function invitation({ to, workspace, by, role, link, until }: Of<'invitation'>): Letter {
  const [place, inviter] = [nameOf(workspace), nameOf(by.name)]
  const [as, name] = ROLE_NAMES[role]
  return {
    subject: `${inviter} invites you to ${place}`,
    title: `Join ${place}`,
    blocks: [
      paragraph`${strong(inviter)} (${by.email}) invites ${strong(to)} ${as} ${strong(name)}.`,
      { kind: 'table', rows: rightsOf(role) },
      button('See the invitation', link),
      small`Valid until ${dayOf(until)}, only for this address. If you do not know ${inviter}, do nothing.`,
    ],
  }
}

function adminAdded({ workspace, member, role, by, siteUrl }: Of<'admin_added'>): Letter {
  const [place, raiser] = [nameOf(workspace), nameOf(by)]
  const [, name] = ROLE_NAMES[role]
  const title = `${place} has a new ${name}`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${strong(member)} is an ${strong(name)} of ${strong(place)} from now on. It was decided by ${strong(raiser)}.`,
      { kind: 'table', rows: rightsOf(role) },
      paragraph`If you did not expect this, remove them and revoke the keys that they have made.`,
      link('The website', siteUrl),
      small`Owners of ${place} get this whenever somebody becomes an admin or an owner.`,
    ],
  }
}

const KEYS_BECAME = {
  revoked: 'were revoked. No call begins with them',
  kept: 'were kept. They go on spending your balance until you revoke them',
  assigned: 'now belong to another member. They go on spending your balance',
}

function memberRemoved({ workspace, member, by, keys, became, siteUrl }: Of<'member_removed'>): Letter {
  const [place, remover] = [nameOf(workspace), nameOf(by)]
  const title = `A member has left ${place}`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${strong(member)} is no longer a member of ${strong(place)}. It was decided by ${strong(remover)}.`,
      became === null
        ? paragraph`They had no API keys that worked.`
        : paragraph`${strong(`API keys of theirs that worked: ${count(keys)}.`)} These ${KEYS_BECAME[became]}.`,
      link('The website', siteUrl),
      small`Owners of ${place} get this whenever a member leaves or is removed.`,
    ],
  }
}

function chargeRefunded({ workspace, callId, amount, reason, siteUrl }: Of<'charge_refunded'>): Letter {
  const place = nameOf(workspace)
  const title = `${amount} USD were given back to ${place}`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${strong(`${amount} USD`)} of what the call ${callId} was charged are in the balance of ${strong(place)} again.`,
      paragraph`The reason that was given: ${reason}`,
      link('The website', siteUrl),
      small`The statement has it under the day on which it was given back. Owners of ${place} get this.`,
    ],
  }
}

function linkRefused({ workspace, account, keyId, siteUrl }: Of<'link_refused'>): Letter {
  const [place, name] = [
    nameOf(workspace),
    account === null ? 'A linked account' : `The linked account ${nameOf(account)}`,
  ]
  return {
    subject: `A linked account of ${place} was refused`,
    title: 'A linked account was refused',
    blocks: [
      paragraph`${strong(name)} was refused by its platform, for the key ${keyId} of ${strong(place)}. Nothing was done, and nothing was charged.`,
      paragraph`The next call of the key tries once more. If it is refused again, the link ends, and somebody has to link the account anew. If you have taken the access back at the platform, you do not have to do anything.`,
      link('The website', siteUrl),
      small`Owners of ${place} get this the first time that a link is refused.`,
    ],
  }
}

function grantReused({ to, client, workspace, at, address, grantsUrl }: Of<'grant_reused'>): Letter {
  const [app, place] = [nameOf(client), nameOf(workspace)]
  return {
    subject: `We have stopped ${app} from using your account`,
    title: `${app} was stopped`,
    blocks: [
      paragraph`${strong(to)} had let ${strong(app)} act for ${strong(place)}. On ${momentOf(at)} a token of it was used a second time, from ${address}. It may have been copied, so we have revoked it and everything else of that grant.`,
      paragraph`If you use ${strong(app)}, sign in there again. If you do not know why this happened, check what else you allow.`,
      button('See what you allow', grantsUrl),
      small`You get this mail when a token is used again that should no longer exist.`,
    ],
  }
}

function mandateUsed(mail: Of<'mandate_used'>): Letter {
  const { amount, charged, held, left, endsAt, isOver, hasExpired, mandateUrl } = mail
  const [app, place, all] = [nameOf(mail.client), nameOf(mail.workspace), `$${short(amount)}`]
  const title = titleOf(app, isOver, hasExpired)
  return {
    subject: title,
    title,
    blocks: [
      isOver
        ? paragraph`${strong(app)} can spend no more of ${strong(place)}’s money. It never went above ${strong(all)}. You do not have to do anything.`
        : paragraph`${strong(app)} can spend ${strong(place)}’s money up to ${strong(all)} in total, and no more. You do not have to do anything.`,
      {
        kind: 'table',
        rows: [
          ['Charged', `$${charged}`],
          ['Held', `$${held}`],
          ['Left', `$${left}`],
        ],
      },
      ...(endsAt === null || hasExpired ? [] : [paragraph`The mandate itself ends on ${strong(dayOf(endsAt))}.`]),
      ...(hasExpired ? [] : [button(isOver ? 'Raise it, or end it' : 'Raise, lower or pause it', mandateUrl)]),
      isOver
        ? small`You get this once, because you granted the mandate.`
        : small`You get this once, because you granted the mandate. The next message comes at the end.`,
    ],
  }
}

function titleOf(app: string, isOver: boolean, hasExpired: boolean): string {
  if (hasExpired) return `The mandate of ${app} has expired`
  return isOver ? `${app} has used up its mandate` : `${app} has used 80 % of its mandate`
}

function budgetUsed(mail: Of<'budget_used'>): Letter {
  const { isTest, percent, period, amount, charged, held, left, resetsAt, siteUrl } = mail
  const [place, whose] = [nameOf(mail.workspace), nameOf(mail.budget)]
  const all = `$${short(amount)} ${period === 'total' ? 'in total' : `per ${period}`}`
  const isOver = percent >= 100
  const title = isOver ? `A budget of ${place} is used up` : `A budget of ${place} is used to ${percent} %`
  return {
    subject: title,
    title,
    blocks: [
      isOver
        ? paragraph`The budget of ${strong(whose)} is used up: ${strong(all)}${isTest ? ' of test money' : ''}. Calls that count against it are refused. It never went above the amount.`
        : paragraph`The budget of ${strong(whose)} is used to ${strong(`${percent} %`)}: ${strong(all)}${isTest ? ' of test money' : ''}. Calls go on until it is used up, and not further.`,
      {
        kind: 'table',
        rows: [
          ['Charged', `$${charged}`],
          ['Held', `$${held}`],
          ['Left', `$${left}`],
        ],
      },
      ...(resetsAt === null ? [] : [paragraph`It begins anew on ${strong(momentOf(resetsAt))}.`]),
      link('The website', siteUrl),
      small`Owners and admins of ${place} get this once at 50, 80 and 100 % in each period.`,
    ],
  }
}

function balanceLow({ workspace, balance, low, siteUrl }: Of<'balance_low'>): Letter {
  const place = nameOf(workspace)
  const title = `The balance of ${place} is low`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${strong(place)} has ${strong(`$${short(balance)}`)} left, which is below ${strong(`$${short(low)}`)}. Add credit before calls are refused.`,
      link('The website', siteUrl),
      small`Owners and admins get this once, and again after the balance was above $${short(low)}.`,
    ],
  }
}

function quotaAsked(mail: Of<'quota_asked'>): Letter {
  const { workspaceId, requestId, requestsPerMinute, tokensPerMinute, targets, useCase, siteUrl } = mail
  const place = nameOf(mail.workspace)
  const title = `${place} asks for higher limits`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${strong(place)} (${workspaceId}) expects a peak above its limits.`,
      {
        kind: 'table',
        rows: [
          ['Requests per minute', count(requestsPerMinute)],
          ['Tokens per minute', count(tokensPerMinute)],
        ],
      },
      paragraph`For: ${targets}.`,
      paragraph`Use case: ${useCase}`,
      paragraph`Decide with ${strong('farebox quota approve')} or ${strong('farebox quota refuse')}, and the id ${strong(requestId)}.`,
      link('The website', siteUrl),
      small`You get this because this address is the support address of the website.`,
    ],
  }
}

function quotaDecided({ workspace, isApproved, note, limits, siteUrl }: Of<'quota_decided'>): Letter {
  const place = nameOf(workspace)
  const title = `Your quota request for ${place} was ${isApproved ? 'approved' : 'refused'}`
  return {
    subject: title,
    title,
    blocks: [
      isApproved
        ? paragraph`${strong(place)} has higher limits from now on. The headers of your next calls show them.`
        : paragraph`The limits of ${strong(place)} stay as they are.`,
      ...(limits === null
        ? []
        : [
            {
              kind: 'table' as const,
              rows: [
                ['Requests per minute', count(limits.requestsPerMinute)],
                ['Tokens per minute', count(limits.tokensPerMinute)],
                ['Concurrent calls', count(limits.concurrency)],
              ] as const,
            },
          ]),
      ...(note === '' ? [] : [paragraph`The operator says: ${note}`]),
      link('The website', siteUrl),
      small`You get this because you made the request.`,
    ],
  }
}

function closureAsked({ workspace, closesAt, siteUrl }: Of<'closure_asked'>): Letter {
  const place = nameOf(workspace)
  const title = `${place} will be closed`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`An owner has asked to close ${strong(place)}. Its API keys and grants are refused from now on. Calls and tasks that are running end as usual, and are charged.`,
      paragraph`On ${strong(momentOf(closesAt))} it is closed for good: keys and grants are revoked, and names, e-mail addresses and labels of end users are erased. If you belong to no other workspace, your sign-in is erased too. Charges and payments are kept, because the law asks for them.`,
      paragraph`Closing pays nothing out: ask the operator about a balance that is left. Export the data that you want to keep before that day.`,
      paragraph`Until then, any owner can cancel it. Then keys and grants work as before.`,
      link('The website', siteUrl),
      small`You get this because you are a member of ${place}.`,
    ],
  }
}

function closureCanceled({ workspace, siteUrl }: Of<'closure_canceled'>): Letter {
  const place = nameOf(workspace)
  const title = `${place} will not be closed`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`An owner has canceled the closure of ${strong(place)}. Its API keys and grants work again, and nothing was erased.`,
      link('The website', siteUrl),
      small`You get this because you are a member of ${place}.`,
    ],
  }
}

function workspaceSuspended({ workspace, reason, siteUrl }: Of<'workspace_suspended'>): Letter {
  const place = nameOf(workspace)
  const title = `${place} is suspended`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`The operator has suspended ${strong(place)}. Its API keys and grants are refused from now on. Tasks that are running go on, and are charged.`,
      paragraph`The operator says: ${reason}`,
      paragraph`You can still sign in, read everything and export your data. Ask the operator what has to be done.`,
      link('The website', siteUrl),
      small`You get this because you are an owner of ${place}.`,
    ],
  }
}

function workspaceResumed({ workspace, reason, siteUrl }: Of<'workspace_resumed'>): Letter {
  const place = nameOf(workspace)
  const title = `${place} is no longer suspended`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`The operator has ended the suspension of ${strong(place)}. Its API keys and grants work as before.`,
      paragraph`The operator says: ${reason}`,
      link('The website', siteUrl),
      small`You get this because you are an owner of ${place}.`,
    ],
  }
}

function closureDone({ workspace, siteUrl }: Of<'closure_done'>): Letter {
  const place = nameOf(workspace)
  const title = `${place} is closed`
  return {
    subject: title,
    title,
    blocks: [
      paragraph`${strong(place)} is closed for good. Its keys and grants are revoked. Names, e-mail addresses and labels of end users are erased. Charges and payments are kept without them.`,
      paragraph`If you belonged to no other workspace, your sign-in is erased too. You can sign up again at any time.`,
      link('The website', siteUrl),
      small`You get this because you were a member of ${place}. It is the last mail about it.`,
    ],
  }
}

const count = (number: number) => number.toLocaleString('en-US')

/** As it was set: with two places at the least. */
function short(amount: string): string {
  return amount.replace(/0{1,7}$/, '')
}

const ROLE_NAMES: Readonly<Record<Role, readonly [as: string, name: string]>> = {
  owner: ['as an', 'owner'],
  admin: ['as an', 'admin'],
  developer: ['as a', 'developer'],
  billing: ['to manage', 'billing'],
  viewer: ['as a', 'viewer'],
}

function rightsOf(role: Role): readonly (readonly [string, string])[] {
  const right = (permission: Permission, allowed: string, otherwise = 'no') =>
    may(role, permission) ? allowed : otherwise
  return [
    ['Keys and playground', right('keys.manage', 'use and create')],
    ['Mandates for agents', right('mandates.give', 'give')],
    ['Requests and usage', right('workspace.read', 'read')],
    ['Balance and statements', right('billing.read', 'read')],
    ['Credit', right('billing.manage', 'add')],
    ['Members', right('members.manage', 'invite and remove')],
  ]
}

function paragraph(...text: Parameters<typeof words>): Block {
  return { kind: 'paragraph', words: words(...text) }
}

function small(...text: Parameters<typeof words>): Block {
  return { kind: 'small', words: words(...text) }
}

function link(label: string, url: string): Block {
  return { kind: 'link', label, url }
}

function button(label: string, url: string): Block {
  return { kind: 'button', label, url }
}
