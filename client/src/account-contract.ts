// Written by scripts/client-types.ts from docs/releases/contracts/account.json. Do not edit.

/** What members do: what each operation takes, and what it answers. */
export interface AccountOperations {
  /** Who is signed in. */
  get_me: { input: Record<string, never>; answer: GetMeAnswer }
  /** Revoke a secret that somebody found. */
  revoke_secret: { input: RevokeSecretRequest; answer: RevokeSecretAnswer }
  /** What a ticket has left, for whoever holds it. */
  read_ticket: { input: ReadTicketRequest; answer: ReadTicketAnswer }
  /** Workspaces that you are a member of, the oldest first. */
  list_workspaces: { input: { cursor?: string; limit?: number }; answer: ListWorkspacesAnswer }
  /** Make a workspace, of which you are the owner. */
  create_workspace: { input: CreateWorkspaceRequest; answer: CreateWorkspaceAnswer }
  /** A workspace, with its tier and its limits. */
  get_workspace: { input: { workspace_id: string }; answer: GetWorkspaceAnswer }
  /** Rename a workspace. */
  update_workspace: { input: { workspace_id: string } & UpdateWorkspaceRequest; answer: UpdateWorkspaceAnswer }
  /** Who changed what, the newest first. */
  list_audit: {
    input: {
      workspace_id: string
      action?: string
      cursor?: string
      end?: string
      limit?: number
      start?: string
      subject?: string
    }
    answer: ListAuditAnswer
  }
  /** What a workspace can spend now. */
  get_balance: { input: { workspace_id: string; mode?: 'live' | 'test' }; answer: GetBalanceAnswer }
  /** Budgets of a workspace, its members, tags and end users, with what is left. */
  list_budgets: {
    input: {
      workspace_id: string
      cursor?: string
      kind?: 'workspace' | 'member' | 'tag' | 'end_user'
      limit?: number
      mode?: 'live' | 'test'
    }
    answer: ListBudgetsAnswer
  }
  /** Set a budget, or change the one of the same subject and period. */
  set_budget: { input: { workspace_id: string; mode?: 'live' | 'test' } & SetBudgetRequest; answer: SetBudgetAnswer }
  /** A budget. */
  get_budget: { input: { budget_id: string; workspace_id: string }; answer: GetBudgetAnswer }
  /** Change the amount of a budget; a lower one holds from the answer on. */
  update_budget: {
    input: { budget_id: string; workspace_id: string } & UpdateBudgetRequest
    answer: UpdateBudgetAnswer
  }
  /** Remove a budget. */
  remove_budget: { input: { budget_id: string; workspace_id: string }; answer: RemoveBudgetAnswer }
  /** Whether the workspace is being closed, and when. */
  get_closure: { input: { workspace_id: string }; answer: GetClosureAnswer }
  /** Close the workspace, after a grace period. */
  ask_closure: { input: { workspace_id: string } & AskClosureRequest; answer: AskClosureAnswer }
  /** Cancel the closure, within the grace period. */
  cancel_closure: { input: { workspace_id: string }; answer: CancelClosureAnswer }
  /** Exports that were asked for, the newest first. */
  list_exports: { input: { workspace_id: string; cursor?: string; limit?: number }; answer: ListExportsAnswer }
  /** Ask for all data of the workspace. */
  create_export: { input: { workspace_id: string }; answer: CreateExportAnswer }
  /** An export, and whether it can be downloaded. */
  get_export: { input: { export_id: string; workspace_id: string }; answer: GetExportAnswer }
  /** Invitations that nobody has decided on yet, the oldest first. */
  list_invitations: { input: { workspace_id: string; cursor?: string; limit?: number }; answer: ListInvitationsAnswer }
  /** Invite an address, by a mail with a link that works for a week. */
  create_invitation: { input: { workspace_id: string } & CreateInvitationRequest; answer: CreateInvitationAnswer }
  /** Take an invitation back. */
  revoke_invitation: { input: { invitation_id: string; workspace_id: string }; answer: RevokeInvitationAnswer }
  /** What keys have left, when they were last used, and how often they were refused. */
  list_key_states: {
    input: { workspace_id: string; keys: string; mode?: 'live' | 'test' }
    answer: ListKeyStatesAnswer
  }
  /** Keys of a workspace, the newest first. */
  list_keys: {
    input: {
      workspace_id: string
      cursor?: string
      kind?: 'key' | 'ticket'
      limit?: number
      member_id?: string
      mode?: 'live' | 'test'
      state?: 'active' | 'expired' | 'revoked'
    }
    answer: ListKeysAnswer
  }
  /** Make a key; its secret is told once. */
  create_key: { input: { workspace_id: string; mode?: 'live' | 'test' } & CreateKeyRequest; answer: CreateKeyAnswer }
  /** A key. */
  get_key: { input: { key_id: string; workspace_id: string }; answer: GetKeyAnswer }
  /** Change what a key may do; what is left out stays as it is. */
  update_key: { input: { key_id: string; workspace_id: string } & Partial<UpdateKeyRequest>; answer: UpdateKeyAnswer }
  /** Revoke a key; from the answer on, no paid call begins with it. */
  revoke_key: { input: { key_id: string; workspace_id: string }; answer: RevokeKeyAnswer }
  /** End a linked account of a key, here and at the platform. */
  remove_link: { input: { key_id: string; link_id: string; workspace_id: string }; answer: RemoveLinkAnswer }
  /** Give a key a new secret, which is told once. */
  rotate_key: { input: { key_id: string; workspace_id: string } & Partial<RotateKeyRequest>; answer: RotateKeyAnswer }
  /** Linked accounts of all keys, by the newest key first. */
  list_links: {
    input: { workspace_id: string; cursor?: string; limit?: number; mode?: 'live' | 'test' }
    answer: ListLinksAnswer
  }
  /** Members of a workspace, the oldest first. */
  list_members: {
    input: {
      workspace_id: string
      cursor?: string
      limit?: number
      role?: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
    }
    answer: ListMembersAnswer
  }
  /** A member. */
  get_member: { input: { member_id: string; workspace_id: string }; answer: GetMemberAnswer }
  /** Change the role of a member. */
  update_member: {
    input: { member_id: string; workspace_id: string } & UpdateMemberRequest
    answer: UpdateMemberAnswer
  }
  /** Remove a member, or leave. */
  remove_member: { input: { member_id: string; workspace_id: string; keys?: string }; answer: RemoveMemberAnswer }
  /** Quota requests of a workspace, the newest first. */
  list_quota_requests: {
    input: {
      workspace_id: string
      cursor?: string
      limit?: number
      state?: 'open' | 'approved' | 'refused' | 'withdrawn'
    }
    answer: ListQuotaRequestsAnswer
  }
  /** Ask for higher limits. */
  create_quota_request: {
    input: { workspace_id: string } & CreateQuotaRequestRequest
    answer: CreateQuotaRequestAnswer
  }
  /** A quota request, and what was decided. */
  get_quota_request: { input: { quota_request_id: string; workspace_id: string }; answer: GetQuotaRequestAnswer }
  /** Withdraw a quota request that is open. */
  withdraw_quota_request: {
    input: { quota_request_id: string; workspace_id: string }
    answer: WithdrawQuotaRequestAnswer
  }
  /** Calls of all keys and grants, the latest first. */
  list_requests: {
    input: {
      workspace_id: string
      cursor?: string
      end?: string
      end_user?: string
      key?: string
      limit?: number
      max_cost_usd?: string
      min_cost_usd?: string
      mode?: 'live' | 'test'
      model?: string
      operation?: string
      outcome?: 'posted' | 'voided' | 'refused' | 'open'
      start?: string
      tag?: string
    }
    answer: ListRequestsAnswer
  }
  /** One call: what it cost, why, and how it went. */
  get_request: { input: { request_id: string; workspace_id: string; mode?: 'live' | 'test' }; answer: GetRequestAnswer }
  /** What changed the balance, the latest first. */
  get_statement: {
    input: {
      workspace_id: string
      cursor?: string
      format?: 'json' | 'csv'
      from?: string
      limit?: number
      mode?: 'live' | 'test'
      to?: string
    }
    answer: GetStatementAnswer
  }
  /** Tasks of all keys, the newest first. */
  list_tasks: {
    input: { workspace_id: string; cursor?: string; limit?: number; mode?: 'live' | 'test' }
    answer: ListTasksAnswer
  }
  /** Make another member the owner, and yourself an admin. */
  transfer_workspace: { input: { workspace_id: string } & TransferWorkspaceRequest; answer: TransferWorkspaceAnswer }
  /** What all keys of a workspace have used. */
  get_usage: {
    input: {
      workspace_id: string
      bucket?: 'day' | 'hour'
      end?: string
      end_user?: string
      group_by?: string
      key?: string
      mode?: 'live' | 'test'
      model?: string
      operation?: string
      start: string
      tag?: string
    }
    answer: GetUsageAnswer
  }
  /** Webhooks of the workspace: not available yet. */
  list_webhooks: { input: { workspace_id: string }; answer: ListWebhooksAnswer }
}

/** Where each operation is. */
export const ACCOUNT_OPERATIONS = {
  get_me: 'GET /account/v1/me',
  revoke_secret: 'POST /account/v1/revoke-secret',
  read_ticket: 'POST /account/v1/ticket',
  list_workspaces: 'GET /account/v1/workspaces',
  create_workspace: 'POST /account/v1/workspaces',
  get_workspace: 'GET /account/v1/workspaces/{workspace_id}',
  update_workspace: 'PATCH /account/v1/workspaces/{workspace_id}',
  list_audit: 'GET /account/v1/workspaces/{workspace_id}/audit',
  get_balance: 'GET /account/v1/workspaces/{workspace_id}/balance',
  list_budgets: 'GET /account/v1/workspaces/{workspace_id}/budgets',
  set_budget: 'POST /account/v1/workspaces/{workspace_id}/budgets',
  get_budget: 'GET /account/v1/workspaces/{workspace_id}/budgets/{budget_id}',
  update_budget: 'PATCH /account/v1/workspaces/{workspace_id}/budgets/{budget_id}',
  remove_budget: 'DELETE /account/v1/workspaces/{workspace_id}/budgets/{budget_id}',
  get_closure: 'GET /account/v1/workspaces/{workspace_id}/closure',
  ask_closure: 'POST /account/v1/workspaces/{workspace_id}/closure',
  cancel_closure: 'DELETE /account/v1/workspaces/{workspace_id}/closure',
  list_exports: 'GET /account/v1/workspaces/{workspace_id}/exports',
  create_export: 'POST /account/v1/workspaces/{workspace_id}/exports',
  get_export: 'GET /account/v1/workspaces/{workspace_id}/exports/{export_id}',
  list_invitations: 'GET /account/v1/workspaces/{workspace_id}/invitations',
  create_invitation: 'POST /account/v1/workspaces/{workspace_id}/invitations',
  revoke_invitation: 'DELETE /account/v1/workspaces/{workspace_id}/invitations/{invitation_id}',
  list_key_states: 'GET /account/v1/workspaces/{workspace_id}/key-states',
  list_keys: 'GET /account/v1/workspaces/{workspace_id}/keys',
  create_key: 'POST /account/v1/workspaces/{workspace_id}/keys',
  get_key: 'GET /account/v1/workspaces/{workspace_id}/keys/{key_id}',
  update_key: 'PATCH /account/v1/workspaces/{workspace_id}/keys/{key_id}',
  revoke_key: 'DELETE /account/v1/workspaces/{workspace_id}/keys/{key_id}',
  remove_link: 'DELETE /account/v1/workspaces/{workspace_id}/keys/{key_id}/links/{link_id}',
  rotate_key: 'POST /account/v1/workspaces/{workspace_id}/keys/{key_id}/rotate',
  list_links: 'GET /account/v1/workspaces/{workspace_id}/links',
  list_members: 'GET /account/v1/workspaces/{workspace_id}/members',
  get_member: 'GET /account/v1/workspaces/{workspace_id}/members/{member_id}',
  update_member: 'PATCH /account/v1/workspaces/{workspace_id}/members/{member_id}',
  remove_member: 'DELETE /account/v1/workspaces/{workspace_id}/members/{member_id}',
  list_quota_requests: 'GET /account/v1/workspaces/{workspace_id}/quota-requests',
  create_quota_request: 'POST /account/v1/workspaces/{workspace_id}/quota-requests',
  get_quota_request: 'GET /account/v1/workspaces/{workspace_id}/quota-requests/{quota_request_id}',
  withdraw_quota_request: 'DELETE /account/v1/workspaces/{workspace_id}/quota-requests/{quota_request_id}',
  list_requests: 'GET /account/v1/workspaces/{workspace_id}/requests',
  get_request: 'GET /account/v1/workspaces/{workspace_id}/requests/{request_id}',
  get_statement: 'GET /account/v1/workspaces/{workspace_id}/statement',
  list_tasks: 'GET /account/v1/workspaces/{workspace_id}/tasks',
  transfer_workspace: 'POST /account/v1/workspaces/{workspace_id}/transfer',
  get_usage: 'GET /account/v1/workspaces/{workspace_id}/usage',
  list_webhooks: 'GET /account/v1/workspaces/{workspace_id}/webhooks',
} as const

export type Money = {
  micros_usd: number
  usd: string
}

export type AskClosureAnswer = {
  asked_at: string | null
  /** The member who asked; null where nobody did, and for who is no member any more. */
  asked_by: string | null
  /** Whether its keys and grants are let in. */
  calls: 'accepted' | 'refused'
  can_be_canceled: boolean
  /** When it is closed for good, or a little later: it waits for calls that run. */
  closes_at: string | null
  /** The closure that was asked for last, also where it was canceled; null where nobody ever asked. */
  id: string | null
  /** open where nobody has asked to close the workspace. */
  state: 'open' | 'closing'
}

export type AskClosureRequest = {
  /** The name of the workspace, by which you confirm that you mean it. */
  name: string
}

export type CancelClosureAnswer = {
  asked_at: string | null
  /** The member who asked; null where nobody did, and for who is no member any more. */
  asked_by: string | null
  /** Whether its keys and grants are let in. */
  calls: 'accepted' | 'refused'
  can_be_canceled: boolean
  /** When it is closed for good, or a little later: it waits for calls that run. */
  closes_at: string | null
  /** The closure that was asked for last, also where it was canceled; null where nobody ever asked. */
  id: string | null
  /** open where nobody has asked to close the workspace. */
  state: 'open' | 'closing'
}

export type CreateExportAnswer = {
  /** Up to when it tells of charges, entries, usage and the audit log. */
  as_of: string
  expires_at: string
  id: string
  /** Null for both. */
  mode: 'live' | 'test' | null
  /** preparing until all changes that were under way when it was asked for have ended: a moment, as a rule. */
  state: 'preparing' | 'ready' | 'expired'
}

export type CreateInvitationAnswer = {
  created_at: string
  email: string
  expires_at: string
  id: string
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type CreateInvitationRequest = {
  email: string
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type CreateKeyAnswer = {
  allowed_addresses: string[] | null
  budget: {
    amount: Money
    period: string
  } | null
  created_at: string
  expires_at: string | null
  /** The grant whose client was told the secret, because it made or rotated the key. */
  grant_id: string | null
  holding: string | null
  id: string
  /** A ticket is a key that was given away: it always has a total and an end. */
  kind: 'key' | 'ticket'
  /** Of a ticket: what its holder opens, with the secret behind the #. Told once, as the secret is. */
  link: string | null
  member_id: string | null
  mode: 'live' | 'test'
  name: string
  on_disconnect: string | null
  /** Until when the secret before the last rotation works. */
  previous_secret_until: string | null
  rates: {
    concurrency: number | null
    requests_per_minute: number | null
    tokens_per_minute: number | null
  }
  revoked_at: string | null
  scopes: string[] | null
  /** Told once. Null where the request is a repetition: rotate the key if you missed it. */
  secret: string | null
  /** What of it the operator has set: only they can change that. */
  set_by_operator: (
    | 'requests_per_minute'
    | 'tokens_per_minute'
    | 'concurrency'
    | 'scopes'
    | 'allowed_addresses'
    | 'tags'
    | 'budget'
    | 'expires_at'
  )[]
  state: 'active' | 'expired' | 'revoked'
  tags: string[] | null
}

export type CreateKeyRequest = {
  /** Addresses and networks that it may be used from; null for any. */
  allowed_addresses?: string[] | null
  /** Null for none. */
  budget?: {
    /** Decimal USD, such as 12.50. */
    amount_usd: string
    period: 'day' | 'week' | 'month' | 'total'
  } | null
  /** In the future; null for never. */
  expires_at?: string | null
  /** Null for what the installation does. */
  holding?: 'full' | 'growing' | null
  /** A ticket takes a budget for "total" and expires_at. */
  kind?: 'key' | 'ticket'
  /** Whose it is, so that their budget bounds it; null for nobody. Of a developer: their own, also where left out. */
  member_id?: string | null
  name: string
  /** Null for what the installation does. */
  on_disconnect?: 'finish' | 'cancel' | null
  /** Within those of the tier; null for those. */
  rates?: {
    concurrency?: number | null
    requests_per_minute?: number | null
    tokens_per_minute?: number | null
  }
  /** Operations, categories and models (model:<name>) that it may use; null for all. */
  scopes?: string[] | null
  /** name=value: what all of its calls are tagged with; null for nothing. */
  tags?: string[] | null
}

export type CreateQuotaRequestAnswer = {
  created_at: string
  decided_at: string | null
  /** The limits of each key from the approval on. */
  granted: {
    concurrency: number
    requests_per_minute: number
    tokens_per_minute: number
  } | null
  id: string
  /** What the operator says to the decision. */
  note: string | null
  /** What is expected at the most. */
  peak: {
    requests_per_minute: number
    tokens_per_minute: number
  }
  state: 'open' | 'approved' | 'refused' | 'withdrawn'
  targets: string[]
  use_case: string
  workspace_id: string
}

export type CreateQuotaRequestRequest = {
  /** The expected peak. */
  requests_per_minute: number
  /** The models or endpoints that it is for. */
  targets: string[]
  /** The expected peak, input and output together. */
  tokens_per_minute: number
  /** What it is for, for the operator to read. */
  use_case: string
}

export type CreateWorkspaceAnswer = {
  /** When it is closed for good, with its keys refused until then; null where nobody has asked for that. */
  closes_at: string | null
  id: string
  /** Of each key, where it has none of its own that are lower. */
  limits: {
    concurrency: number
    requests_per_minute: number
    tokens_per_minute: number
  }
  /** By which you are a member. */
  member_id: string
  name: string
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
  /** Since when the operator has suspended it, and why: its keys and grants are refused. Null where it is not. */
  suspended: {
    reason: string
    since: string
  } | null
  tier: 'free' | 'starter' | 'growth' | 'enterprise'
  /** Whether payments have earned it, or the operator has granted more than payments earn. */
  tier_set_by: 'operator' | 'payments'
}

export type CreateWorkspaceRequest = {
  /** At most 100 characters. */
  name: string
}

export type GetBalanceAnswer = {
  available: Money
  /** In all. */
  charged: unknown
  debt: Money
  /** By calls that run, or whose outcome nobody knows yet. */
  held: unknown
  mode: 'live' | 'test'
  /** As much of it was given, and is spent first. */
  promotional: unknown
}

export type GetBudgetAnswer = {
  amount: Money
  id: string
  /** Whether each value or end user has the amount for itself. */
  is_for_each: boolean
  kind: 'workspace' | 'member' | 'tag' | 'end_user'
  mode: 'live' | 'test'
  period: 'day' | 'week' | 'month' | 'total'
  /** Only the operator can change or remove one that the operator has set. */
  set_by: 'operator' | 'member'
  /** Of which member, tag or end user; null for the whole workspace. */
  subject: string | null
}

export type GetClosureAnswer = {
  asked_at: string | null
  /** The member who asked; null where nobody did, and for who is no member any more. */
  asked_by: string | null
  /** Whether its keys and grants are let in. */
  calls: 'accepted' | 'refused'
  can_be_canceled: boolean
  /** When it is closed for good, or a little later: it waits for calls that run. */
  closes_at: string | null
  /** The closure that was asked for last, also where it was canceled; null where nobody ever asked. */
  id: string | null
  /** open where nobody has asked to close the workspace. */
  state: 'open' | 'closing'
}

export type GetExportAnswer = {
  /** Up to when it tells of charges, entries, usage and the audit log. */
  as_of: string
  expires_at: string
  id: string
  /** Null for both. */
  mode: 'live' | 'test' | null
  /** preparing until all changes that were under way when it was asked for have ended: a moment, as a rule. */
  state: 'preparing' | 'ready' | 'expired'
}

export type GetKeyAnswer = {
  allowed_addresses: string[] | null
  budget: {
    amount: Money
    period: string
  } | null
  created_at: string
  expires_at: string | null
  /** The grant whose client was told the secret, because it made or rotated the key. */
  grant_id: string | null
  holding: string | null
  id: string
  /** A ticket is a key that was given away: it always has a total and an end. */
  kind: 'key' | 'ticket'
  member_id: string | null
  mode: 'live' | 'test'
  name: string
  on_disconnect: string | null
  /** Until when the secret before the last rotation works. */
  previous_secret_until: string | null
  rates: {
    concurrency: number | null
    requests_per_minute: number | null
    tokens_per_minute: number | null
  }
  revoked_at: string | null
  scopes: string[] | null
  /** What of it the operator has set: only they can change that. */
  set_by_operator: (
    | 'requests_per_minute'
    | 'tokens_per_minute'
    | 'concurrency'
    | 'scopes'
    | 'allowed_addresses'
    | 'tags'
    | 'budget'
    | 'expires_at'
  )[]
  state: 'active' | 'expired' | 'revoked'
  tags: string[] | null
}

export type GetMeAnswer = {
  /** Of an access token: what it is for. Null for a browser, which sees all workspaces. */
  access: {
    mode: 'live' | 'test'
    workspace_id: string
  } | null
  email: string
  /** For a browser: what every change has to bring as X-Form-Token. Null for an access token. */
  form_token: string | null
  has_second_factor: boolean
  id: string
  name: string
  /** Those that can be seen, at most 1,000. */
  workspaces: {
    id: string
    name: string
    role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
  }[]
}

export type GetMemberAnswer = {
  email: string
  has_second_factor: boolean
  id: string
  joined_at: string
  /** Null while nobody has signed up with the address. */
  name: string | null
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type GetQuotaRequestAnswer = {
  created_at: string
  decided_at: string | null
  /** The limits of each key from the approval on. */
  granted: {
    concurrency: number
    requests_per_minute: number
    tokens_per_minute: number
  } | null
  id: string
  /** What the operator says to the decision. */
  note: string | null
  /** What is expected at the most. */
  peak: {
    requests_per_minute: number
    tokens_per_minute: number
  }
  state: 'open' | 'approved' | 'refused' | 'withdrawn'
  targets: string[]
  use_case: string
  workspace_id: string
}

export type GetRequestAnswer =
  | {
      begun_at: string | null
      cost: Money
      /** How the call ran; null where that was not kept. */
      detail: {
        /** What the account had left when it had ended; null for a token that may not see it. */
        balance_after: Money | null
        evidence: {
          [name: string]: unknown
        }
        first_byte_ms: number | null
        /** How the price was worked out. */
        formula: string | null
        /** What was held for it when it began, and each time that this grew. */
        hold: {
          amount: Money
          at_ms: number
        }[]
        /** The version of the price that it was charged by. */
        price_version: string | null
        /** By which route of the model the call went, and why. */
        routing: {
          reason: 'sticky' | 'failover' | 'spill' | 'only'
          slot: string
          upstream_model: string
        } | null
        status: number | null
        timeline: {
          [name: string]: unknown
        }
        upstream: {
          began_ms: number | null
          ended_ms: number | null
          outcome: string
          reason: string | null
          slot: string
          status: number | null
        }[]
      } | null
      /** For whom the call was made. */
      end_user: {
        id: string
        label: string | null
      } | null
      ended_at: string
      executed: boolean
      failed: boolean
      /** The most that it could cost: set aside while it ran. */
      held: unknown
      id: string
      ledger: {
        at: string
        charged: Money
        id: string
        kind: string
        promotional?: Money
      }[]
      /** The key, or the grant by the name of its client; null of a call that never began. */
      made_by: {
        id: string
        kind: 'key' | 'grant'
        name: string
      } | null
      model: string | null
      operation: string | null
      outcome: 'posted' | 'voided'
      /** What it used beyond that: the loss of the operator, charged to nobody. */
      overrun: unknown
      /** What it did to the balance, in the order of time. */
      postings: {
        amount: Money
        at: string
        /** Where it went. */
        credit: 'available' | 'held' | 'charged'
        /** Where the amount left. */
        debit: 'available' | 'held' | 'charged'
        /** hold, charge or release; or the kind of a correction. */
        entry: string
      }[]
      published_value: Money
      /** Whom the call went to, by the slot of the upstream. */
      route: string | null
      /** What the call was made for. */
      tags: {
        [name: string]: unknown
      }
      /** The formula by its products, exact. Their sum is rounded once; empty where it has none. */
      terms: {
        cost_usd: string
        count: string
        price_usd: string
        unit: string
      }[]
      tokens: {
        cache_read: number
        cache_write: number
        input: number
        output: number
      }
    }
  | {
      begun_at: string
      /** For whom the call was made. */
      end_user: {
        id: string
        label: string | null
      } | null
      held: Money
      id: string
      /** The key, or the grant by the name of its client; null of a call that never began. */
      made_by: {
        id: string
        kind: 'key' | 'grant'
        name: string
      } | null
      model: string | null
      operation: string | null
      outcome: 'running' | 'unsettled'
      /** What the call was made for. */
      tags: {
        [name: string]: unknown
      }
      unsettled_at: string | null
    }
  | {
      begun_at: string | null
      cost: Money
      /** For whom the call was made. */
      end_user: {
        id: string
        label: string | null
      } | null
      ended_at: string
      failed: boolean
      id: string
      /** The key, or the grant by the name of its client; null of a call that never began. */
      made_by: {
        id: string
        kind: 'key' | 'grant'
        name: string
      } | null
      model: string | null
      operation: string | null
      outcome: 'refused'
      /** Of a refused call: why, and what would have let it through. */
      refusal: {
        /** The tightest budget that was in the way. */
        budget: {
          kind: string
          period: string
          subject: string | null
        } | null
        code: string
        /** What would have let it through. */
        fix: {
          /** With this output limit it would have fitted. */
          output_limit: number | null
          retry_after_seconds: number | null
          /** The page where it is mended. */
          url: string | null
        }
        /** What there was for it; null where its caller was not told. */
        left: Money | null
        /** Whose the limit is: key, tier or endpoint. */
        limited_by: string | null
        /** What such a refusal means, and what to do. */
        message: string
        /** What would have been held. */
        needed: Money | null
        status: number
      }
      /** What the call was made for. */
      tags: {
        [name: string]: unknown
      }
    }

export type GetStatementAnswer = {
  /** At the end of the last day, or now. */
  closing_balance: unknown
  data: {
    /** What the balance was changed by: below zero where it was taken. */
    amount: unknown
    /** Of usage: the day, by its beginning. */
    at: string
    id: string
    /** usage for the calls of a day; payment, promotion, expiry, charge_reversal (a refund) and others one by one. */
    kind: string
    /** Of a payment, as the operator noted it, such as the number of a transfer. */
    reference: string | null
    /** The call that a refund is of; null for other lines. */
    request_id: string | null
  }[]
  from: string
  mode: 'live' | 'test'
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
  /** At the beginning of the first day, with what was held. */
  opening_balance: unknown
  to: string
}

export type GetUsageAnswer = {
  bucket: 'day' | 'hour'
  /** In the order of time. */
  buckets: {
    cache_read_tokens: number
    cache_write_tokens: number
    charged: Money
    end: string
    failed_requests: number
    input_tokens: number
    output_tokens: number
    requests: number
    start: string
    value: Money
  }[]
  end: string
  group_by: string | null
  /** The largest 50 first. They add up to the totals, to the nano. Null where it is not grouped. */
  groups:
    | {
        buckets: {
          cache_read_tokens: number
          cache_write_tokens: number
          charged: Money
          end: string
          failed_requests: number
          input_tokens: number
          output_tokens: number
          requests: number
          start: string
          value: Money
        }[]
        /** A group; the smaller ones together; or what has none of what it is grouped by. */
        kind: 'group' | 'other' | 'none'
        label: string | null
        totals: {
          cache_read_tokens: number
          cache_write_tokens: number
          charged: Money
          failed_requests: number
          input_tokens: number
          output_tokens: number
          requests: number
          value: Money
        }
        value: string | null
      }[]
    | null
  mode: 'live' | 'test'
  /** How many are told as one. Null where it is not grouped, or where they are too many to count. */
  other_groups: number | null
  start: string
  totals: {
    cache_read_tokens: number
    cache_write_tokens: number
    charged: Money
    failed_requests: number
    input_tokens: number
    output_tokens: number
    requests: number
    value: Money
  }
}

export type GetWorkspaceAnswer = {
  /** When it is closed for good, with its keys refused until then; null where nobody has asked for that. */
  closes_at: string | null
  id: string
  /** Of each key, where it has none of its own that are lower. */
  limits: {
    concurrency: number
    requests_per_minute: number
    tokens_per_minute: number
  }
  /** By which you are a member. */
  member_id: string
  name: string
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
  /** Since when the operator has suspended it, and why: its keys and grants are refused. Null where it is not. */
  suspended: {
    reason: string
    since: string
  } | null
  tier: 'free' | 'starter' | 'growth' | 'enterprise'
  /** Whether payments have earned it, or the operator has granted more than payments earn. */
  tier_set_by: 'operator' | 'payments'
}

export type ListAuditAnswer = {
  data: {
    action: string
    /** member <id>, operator, worker or service. */
    actor: string
    /** From where a member changed it. */
    address: string | null
    /** Null for what is no more. */
    after: {
      [name: string]: unknown
    } | null
    at: string
    /** Null for what was not there. */
    before: {
      [name: string]: unknown
    } | null
    /** Through which grant: a client changed it for the member. */
    grant_id: string | null
    id: string
    /** Of the member who changed it; null for others, and for who is no member any more. */
    member_id: string | null
    /** The id or the name of what was changed. */
    subject: string
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListBudgetsAnswer = {
  data: {
    amount: Money
    id: string
    /** Whether each value or end user has the amount for itself. */
    is_for_each: boolean
    kind: 'workspace' | 'member' | 'tag' | 'end_user'
    mode: 'live' | 'test'
    period: 'day' | 'week' | 'month' | 'total'
    /** Only the operator can change or remove one that the operator has set. */
    set_by: 'operator' | 'member'
    /** In the period that is running; spent has what is held. Null where each has its own. */
    state: {
      held: Money
      left: Money
      resets_at: string | null
      spent: Money
    } | null
    /** Of which member, tag or end user; null for the whole workspace. */
    subject: string | null
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListExportsAnswer = {
  data: {
    /** Up to when it tells of charges, entries, usage and the audit log. */
    as_of: string
    expires_at: string
    id: string
    /** Null for both. */
    mode: 'live' | 'test' | null
    /** preparing until all changes that were under way when it was asked for have ended: a moment, as a rule. */
    state: 'preparing' | 'ready' | 'expired'
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListInvitationsAnswer = {
  data: {
    created_at: string
    email: string
    expires_at: string
    id: string
    role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListKeyStatesAnswer = {
  data: {
    /** In the period that is running; spent has what is held. Null where the key has no budget. */
    budget: {
      held: Money
      left: Money
      resets_at: string | null
      spent: Money
    } | null
    id: string
    /** When its last call ended; null where none did within 30 days. */
    last_used_at: string | null
    /** Of the last 30 days, the most frequent reason first; those of the last minute are missing. */
    refusals: {
      count: number
      last_hour: string
      reason: string
    }[]
  }[]
}

export type ListKeysAnswer = {
  data: {
    allowed_addresses: string[] | null
    budget: {
      amount: Money
      period: string
    } | null
    created_at: string
    expires_at: string | null
    /** The grant whose client was told the secret, because it made or rotated the key. */
    grant_id: string | null
    holding: string | null
    id: string
    /** A ticket is a key that was given away: it always has a total and an end. */
    kind: 'key' | 'ticket'
    member_id: string | null
    mode: 'live' | 'test'
    name: string
    on_disconnect: string | null
    /** Until when the secret before the last rotation works. */
    previous_secret_until: string | null
    rates: {
      concurrency: number | null
      requests_per_minute: number | null
      tokens_per_minute: number | null
    }
    revoked_at: string | null
    scopes: string[] | null
    /** What of it the operator has set: only they can change that. */
    set_by_operator: (
      | 'requests_per_minute'
      | 'tokens_per_minute'
      | 'concurrency'
      | 'scopes'
      | 'allowed_addresses'
      | 'tags'
      | 'budget'
      | 'expires_at'
    )[]
    state: 'active' | 'expired' | 'revoked'
    tags: string[] | null
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListLinksAnswer = {
  data: {
    /** The key, or the grant, that acts for it. */
    credential_id: string
    id: string
    linked_at: string
    /** Since when the platform refuses its tokens, until they are taken again. */
    refused_at: string | null
    scopes: string[]
    state: 'linked' | 'expired' | 'revoked' | 'lost' | 'ending'
    username: string | null
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListMembersAnswer = {
  data: {
    email: string
    has_second_factor: boolean
    id: string
    joined_at: string
    /** Null while nobody has signed up with the address. */
    name: string | null
    role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListQuotaRequestsAnswer = {
  data: {
    created_at: string
    decided_at: string | null
    /** The limits of each key from the approval on. */
    granted: {
      concurrency: number
      requests_per_minute: number
      tokens_per_minute: number
    } | null
    id: string
    /** What the operator says to the decision. */
    note: string | null
    /** What is expected at the most. */
    peak: {
      requests_per_minute: number
      tokens_per_minute: number
    }
    state: 'open' | 'approved' | 'refused' | 'withdrawn'
    targets: string[]
    use_case: string
    workspace_id: string
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListRequestsAnswer = {
  data: {
    begun_at: string | null
    cost: Money
    /** For whom the call was made. */
    end_user: {
      id: string
      label: string | null
    } | null
    ended_at: string
    failed: boolean
    id: string
    /** The key, or the grant by the name of its client; null of a call that never began. */
    made_by: {
      id: string
      kind: 'key' | 'grant'
      name: string
    } | null
    model: string | null
    operation: string | null
    outcome: 'posted' | 'voided' | 'refused'
    /** Of a refused call: why, and what would have let it through. */
    refusal?: {
      /** The tightest budget that was in the way. */
      budget: {
        kind: string
        period: string
        subject: string | null
      } | null
      code: string
      /** What would have let it through. */
      fix: {
        /** With this output limit it would have fitted. */
        output_limit: number | null
        retry_after_seconds: number | null
        /** The page where it is mended. */
        url: string | null
      }
      /** What there was for it; null where its caller was not told. */
      left: Money | null
      /** Whose the limit is: key, tier or endpoint. */
      limited_by: string | null
      /** What such a refusal means, and what to do. */
      message: string
      /** What would have been held. */
      needed: Money | null
      status: number
    }
    /** What the call was made for. */
    tags: {
      [name: string]: unknown
    }
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
  open: {
    begun_at: string
    /** For whom the call was made. */
    end_user: {
      id: string
      label: string | null
    } | null
    held: Money
    id: string
    /** The key, or the grant by the name of its client; null of a call that never began. */
    made_by: {
      id: string
      kind: 'key' | 'grant'
      name: string
    } | null
    model: string | null
    operation: string | null
    outcome: 'running' | 'unsettled'
    /** What the call was made for. */
    tags: {
      [name: string]: unknown
    }
    unsettled_at: string | null
  }[]
}

export type ListTasksAnswer = {
  data: {
    cost_usd: string | null
    output: {
      /** Of a task that failed. */
      code?: string
      end_time?: string
      /** Of a task that failed. */
      message?: string
      orig_prompt?: string
      scheduled_time?: string
      submit_time?: string
      task_id: string
      task_status: 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'
      /** Of a task that succeeded. It works for a few hours. */
      video_url?: string
    }
    /** Of a task that succeeded. */
    usage?: {
      SR: number | null
      output_video_duration: number
      video_count: number
    }
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ListWebhooksAnswer = {
  /** Whether webhooks can be set up here. */
  available: boolean
  data: {
    [name: string]: unknown
  }[]
  next_cursor: string | null
}

export type ListWorkspacesAnswer = {
  data: {
    id: string
    name: string
    role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
    /** Since when the operator has suspended it, and why: its keys and grants are refused. Null where it is not. */
    suspended: {
      reason: string
      since: string
    } | null
  }[]
  /** Where the next page begins; null where this is the last. */
  next_cursor: string | null
}

export type ReadTicketAnswer = {
  amount: Money
  charged: Money
  /** No call begins from then on. Calls that run are ended and charged. */
  expires_at: string
  held: Money
  /** Whether the workspace has what is left of it now. A ticket takes nothing from the balance, so that calls can be refused before it is used up. */
  is_covered: boolean
  left: Money
  mode: 'live' | 'test'
  name: string
  /** What it may call; null for everything. */
  scopes: string[] | null
  state: 'active' | 'expired' | 'revoked'
  /** Whose money it is. */
  workspace: string
}

export type ReadTicketRequest = {
  secret: string
}

export type RemoveBudgetAnswer = {
  amount: Money
  id: string
  /** Whether each value or end user has the amount for itself. */
  is_for_each: boolean
  kind: 'workspace' | 'member' | 'tag' | 'end_user'
  mode: 'live' | 'test'
  period: 'day' | 'week' | 'month' | 'total'
  /** Only the operator can change or remove one that the operator has set. */
  set_by: 'operator' | 'member'
  /** Of which member, tag or end user; null for the whole workspace. */
  subject: string | null
}

export type RemoveLinkAnswer = {
  credential_id: string
  id: string
}

export type RemoveMemberAnswer = {
  email: string
  has_second_factor: boolean
  id: string
  joined_at: string
  /** Null while nobody has signed up with the address. */
  name: string | null
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type RevokeInvitationAnswer = {
  created_at: string
  email: string
  expires_at: string
  id: string
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type RevokeKeyAnswer = {
  allowed_addresses: string[] | null
  budget: {
    amount: Money
    period: string
  } | null
  created_at: string
  expires_at: string | null
  /** The grant whose client was told the secret, because it made or rotated the key. */
  grant_id: string | null
  holding: string | null
  id: string
  /** A ticket is a key that was given away: it always has a total and an end. */
  kind: 'key' | 'ticket'
  member_id: string | null
  mode: 'live' | 'test'
  name: string
  on_disconnect: string | null
  /** Until when the secret before the last rotation works. */
  previous_secret_until: string | null
  rates: {
    concurrency: number | null
    requests_per_minute: number | null
    tokens_per_minute: number | null
  }
  revoked_at: string | null
  scopes: string[] | null
  /** What of it the operator has set: only they can change that. */
  set_by_operator: (
    | 'requests_per_minute'
    | 'tokens_per_minute'
    | 'concurrency'
    | 'scopes'
    | 'allowed_addresses'
    | 'tags'
    | 'budget'
    | 'expires_at'
  )[]
  state: 'active' | 'expired' | 'revoked'
  tags: string[] | null
}

export type RevokeSecretAnswer = {
  ended: 'key' | 'previous'
  key_id: string
}

export type RevokeSecretRequest = {
  secret: string
}

export type RotateKeyAnswer = {
  allowed_addresses: string[] | null
  budget: {
    amount: Money
    period: string
  } | null
  created_at: string
  expires_at: string | null
  /** The grant whose client was told the secret, because it made or rotated the key. */
  grant_id: string | null
  holding: string | null
  id: string
  /** A ticket is a key that was given away: it always has a total and an end. */
  kind: 'key' | 'ticket'
  /** Of a ticket: what its holder opens, with the secret behind the #. Told once, as the secret is. */
  link: string | null
  member_id: string | null
  mode: 'live' | 'test'
  name: string
  on_disconnect: string | null
  /** Until when the secret before the last rotation works. */
  previous_secret_until: string | null
  rates: {
    concurrency: number | null
    requests_per_minute: number | null
    tokens_per_minute: number | null
  }
  revoked_at: string | null
  scopes: string[] | null
  /** Told once. Null where the request is a repetition: rotate the key if you missed it. */
  secret: string | null
  /** What of it the operator has set: only they can change that. */
  set_by_operator: (
    | 'requests_per_minute'
    | 'tokens_per_minute'
    | 'concurrency'
    | 'scopes'
    | 'allowed_addresses'
    | 'tags'
    | 'budget'
    | 'expires_at'
  )[]
  state: 'active' | 'expired' | 'revoked'
  tags: string[] | null
}

export type RotateKeyRequest = {
  /** For how long the old secret works, too. */
  overlap_seconds?: number
}

export type SetBudgetAnswer = {
  amount: Money
  id: string
  /** Whether each value or end user has the amount for itself. */
  is_for_each: boolean
  kind: 'workspace' | 'member' | 'tag' | 'end_user'
  mode: 'live' | 'test'
  period: 'day' | 'week' | 'month' | 'total'
  /** Only the operator can change or remove one that the operator has set. */
  set_by: 'operator' | 'member'
  /** Of which member, tag or end user; null for the whole workspace. */
  subject: string | null
}

export type SetBudgetRequest = {
  /** Decimal USD, such as 12.50. */
  amount_usd: string
  /** Of an end user as callers name it, or * for each by itself. */
  end_user?: string
  /** Of a member: their keys and grants. */
  member_id?: string
  period: 'day' | 'week' | 'month' | 'total'
  /** Of calls with a tag: name=value, or name=* for each value by itself. */
  tag?: string
}

export type TransferWorkspaceAnswer = {
  email: string
  has_second_factor: boolean
  id: string
  joined_at: string
  /** Null while nobody has signed up with the address. */
  name: string | null
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type TransferWorkspaceRequest = {
  member_id: string
}

export type UpdateBudgetAnswer = {
  amount: Money
  id: string
  /** Whether each value or end user has the amount for itself. */
  is_for_each: boolean
  kind: 'workspace' | 'member' | 'tag' | 'end_user'
  mode: 'live' | 'test'
  period: 'day' | 'week' | 'month' | 'total'
  /** Only the operator can change or remove one that the operator has set. */
  set_by: 'operator' | 'member'
  /** Of which member, tag or end user; null for the whole workspace. */
  subject: string | null
}

export type UpdateBudgetRequest = {
  /** Decimal USD, such as 12.50. */
  amount_usd: string
}

export type UpdateKeyAnswer = {
  allowed_addresses: string[] | null
  budget: {
    amount: Money
    period: string
  } | null
  created_at: string
  expires_at: string | null
  /** The grant whose client was told the secret, because it made or rotated the key. */
  grant_id: string | null
  holding: string | null
  id: string
  /** A ticket is a key that was given away: it always has a total and an end. */
  kind: 'key' | 'ticket'
  member_id: string | null
  mode: 'live' | 'test'
  name: string
  on_disconnect: string | null
  /** Until when the secret before the last rotation works. */
  previous_secret_until: string | null
  rates: {
    concurrency: number | null
    requests_per_minute: number | null
    tokens_per_minute: number | null
  }
  revoked_at: string | null
  scopes: string[] | null
  /** What of it the operator has set: only they can change that. */
  set_by_operator: (
    | 'requests_per_minute'
    | 'tokens_per_minute'
    | 'concurrency'
    | 'scopes'
    | 'allowed_addresses'
    | 'tags'
    | 'budget'
    | 'expires_at'
  )[]
  state: 'active' | 'expired' | 'revoked'
  tags: string[] | null
}

export type UpdateKeyRequest = {
  /** Addresses and networks that it may be used from; null for any. */
  allowed_addresses?: string[] | null
  /** Null for none. */
  budget?: {
    /** Decimal USD, such as 12.50. */
    amount_usd: string
    period: 'day' | 'week' | 'month' | 'total'
  } | null
  /** In the future; null for never. */
  expires_at?: string | null
  /** Null for what the installation does. */
  holding?: 'full' | 'growing' | null
  /** Whose it is, so that their budget bounds it; null for nobody. Of a developer: their own, also where left out. */
  member_id?: string | null
  /** Null for what the installation does. */
  on_disconnect?: 'finish' | 'cancel' | null
  /** Within those of the tier; null for those. */
  rates?: {
    concurrency?: number | null
    requests_per_minute?: number | null
    tokens_per_minute?: number | null
  }
  /** Operations, categories and models (model:<name>) that it may use; null for all. */
  scopes?: string[] | null
  /** name=value: what all of its calls are tagged with; null for nothing. */
  tags?: string[] | null
}

export type UpdateMemberAnswer = {
  email: string
  has_second_factor: boolean
  id: string
  joined_at: string
  /** Null while nobody has signed up with the address. */
  name: string | null
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type UpdateMemberRequest = {
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
}

export type UpdateWorkspaceAnswer = {
  /** When it is closed for good, with its keys refused until then; null where nobody has asked for that. */
  closes_at: string | null
  id: string
  /** Of each key, where it has none of its own that are lower. */
  limits: {
    concurrency: number
    requests_per_minute: number
    tokens_per_minute: number
  }
  /** By which you are a member. */
  member_id: string
  name: string
  role: 'owner' | 'admin' | 'developer' | 'billing' | 'viewer'
  /** Since when the operator has suspended it, and why: its keys and grants are refused. Null where it is not. */
  suspended: {
    reason: string
    since: string
  } | null
  tier: 'free' | 'starter' | 'growth' | 'enterprise'
  /** Whether payments have earned it, or the operator has granted more than payments earn. */
  tier_set_by: 'operator' | 'payments'
}

export type UpdateWorkspaceRequest = {
  /** At most 100 characters. */
  name: string
}

export type WithdrawQuotaRequestAnswer = {
  created_at: string
  decided_at: string | null
  /** The limits of each key from the approval on. */
  granted: {
    concurrency: number
    requests_per_minute: number
    tokens_per_minute: number
  } | null
  id: string
  /** What the operator says to the decision. */
  note: string | null
  /** What is expected at the most. */
  peak: {
    requests_per_minute: number
    tokens_per_minute: number
  }
  state: 'open' | 'approved' | 'refused' | 'withdrawn'
  targets: string[]
  use_case: string
  workspace_id: string
}
