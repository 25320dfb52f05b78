import {
  type Choice,
  formed,
  limited,
  type Member,
  memberTable,
  neutral,
  priced,
  refused,
  type Shape,
  type Table,
  typed,
} from '../catalogue/member-table.ts'
import { withBeyond } from './beyond-protocols.ts'
import { CACHE, IN_INPUT, OTHER_MODEL, RUN_UPSTREAM, SUMMARY, TIERS } from './reasons.ts'
import { MODEL, messagesWith, OUTPUT_LIMIT, STREAM } from './typed-members.ts'

/** Messages and the count of their tokens: https://docs.claude.com/en/api/messages. */
const IN_CONVERSATION = 'tools declared within a conversation may be run by the provider, which is not metered.'

const cacheControl = memberTable('cache_control', {
  type: neutral(),
  ttl: limited(['5m'], CACHE, { '1h': 'cache_write_1h' }),
  scope: neutral(),
})
const CACHE_CONTROL = formed(
  'object',
  neutral(() => cacheControl),
)

const BINARY_SOURCES: Choice['kinds'] = {
  base64: memberTable('sources of type base64', {
    type: neutral(),
    media_type: priced('by its kind'),
    data: priced('by its kind'),
  }),
  url: memberTable('sources of type url', { type: neutral(), url: priced('by its kind') }),
  file: memberTable('sources of type file', { type: neutral(), file_id: priced('by its kind') }),
}

const pictureSource: Choice = {
  title: 'sources of a picture',
  by: 'type',
  kindOf: (type) => type,
  kinds: BINARY_SOURCES,
  others: 'a picture has none of another kind. Send text as text.',
}

const documentSource: Choice = {
  title: 'sources of a document',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    ...BINARY_SOURCES,
    text: memberTable('sources of type text', {
      type: neutral(),
      media_type: neutral(),
      data: priced(IN_INPUT),
    }),
    content: memberTable('sources of type content', { type: neutral(), content: priced(IN_INPUT, () => BLOCK) }),
  },
  others: undefined,
}

const transformations = memberTable('transformations', { oversized_image: neutral() })
const citations = memberTable('citations', { enabled: neutral() })
const caller = memberTable('caller', { type: neutral(), tool_id: neutral() })

/** What tools that an upstream ran have left in a conversation. It may fill the context window. */
const RAN_UPSTREAM: Readonly<Record<string, Member>> = {
  type: neutral(),
  id: priced(IN_INPUT),
  tool_use_id: priced(IN_INPUT),
  name: priced(IN_INPUT),
  server_name: priced(IN_INPUT),
  mcp_server_name: priced(IN_INPUT),
  input: priced(IN_INPUT),
  content: priced(IN_INPUT),
  is_error: neutral(),
  tools: priced(IN_INPUT),
  caller: neutral(() => caller),
  cache_control: CACHE_CONTROL,
}
const ranUpstream = memberTable('blocks of tools that an upstream ran', RAN_UPSTREAM)

/** Those whose content has blocks, which may ask for a cache of their own. */
const ranWith = (type: string, within: () => Shape): Table =>
  memberTable(`blocks of type ${type}`, { ...RAN_UPSTREAM, content: priced(IN_INPUT, within) })

const fetched = memberTable('content of a web_fetch_tool_result', {
  type: neutral(),
  url: priced(IN_INPUT),
  content: priced(IN_INPUT, () => BLOCK),
  retrieved_at: priced(IN_INPUT),
  error_code: priced(IN_INPUT),
})
const foundTools = memberTable('content of a tool_search_tool_result', {
  type: neutral(),
  tool_references: priced(IN_INPUT, () => BLOCK),
  error_code: priced(IN_INPUT),
  error_message: priced(IN_INPUT),
})

const ofBlock = (type: string, members: Readonly<Record<string, Member>>): Table =>
  memberTable(`blocks of type ${type}`, { type: neutral(), cache_control: CACHE_CONTROL, ...members })

export const BLOCK: Choice = {
  title: 'blocks of a content',
  by: 'type',
  kindOf: (type) => type,
  kinds: {
    text: ofBlock('text', { text: priced(IN_INPUT), citations: priced(IN_INPUT) }),
    image: ofBlock('image', {
      source: priced('as a picture, or as a file where its data are none', () => pictureSource),
      transformations: neutral(() => transformations),
    }),
    document: ofBlock('document', {
      source: priced('as text or as a file', () => documentSource),
      citations: neutral(() => citations),
      context: priced(IN_INPUT),
      title: priced(IN_INPUT),
    }),
    search_result: ofBlock('search_result', {
      content: priced(IN_INPUT, () => BLOCK),
      source: priced(IN_INPUT),
      title: priced(IN_INPUT),
      citations: neutral(() => citations),
    }),
    thinking: ofBlock('thinking', { thinking: priced(IN_INPUT), signature: priced(IN_INPUT) }),
    redacted_thinking: ofBlock('redacted_thinking', { data: priced(IN_INPUT) }),
    tool_use: ofBlock('tool_use', {
      id: priced(IN_INPUT),
      name: priced(IN_INPUT),
      input: priced(IN_INPUT),
      caller: neutral(() => caller),
      toolset_name: priced(IN_INPUT),
    }),
    tool_result: ofBlock('tool_result', {
      tool_use_id: priced(IN_INPUT),
      content: priced(IN_INPUT, () => BLOCK),
      is_error: neutral(),
      toolset_name: priced(IN_INPUT),
    }),
    tool_reference: ofBlock('tool_reference', { tool_name: priced(IN_INPUT) }),
    browser_state: ofBlock('browser_state', { tabs: priced(IN_INPUT), state_changes: priced(IN_INPUT) }),
    server_tool_use: ranUpstream,
    web_search_tool_result: ranUpstream,
    web_fetch_tool_result: ranWith('web_fetch_tool_result', () => fetched),
    code_execution_tool_result: ranUpstream,
    bash_code_execution_tool_result: ranUpstream,
    text_editor_code_execution_tool_result: ranUpstream,
    tool_search_tool_result: ranWith('tool_search_tool_result', () => foundTools),
    advisor_tool_result: ranUpstream,
    mcp_tool_use: ranUpstream,
    mcp_tool_result: ranWith('mcp_tool_result', () => BLOCK),
    mcp_tool_listing: ranUpstream,
    container_upload: RUN_UPSTREAM,
    tool_addition: IN_CONVERSATION,
    tool_removal: IN_CONVERSATION,
    compaction: SUMMARY,
    fallback: OTHER_MODEL,
  },
  others: undefined,
}

const turnOutput = memberTable('output_config of a message', { effort: neutral() })
const message = memberTable('messages', {
  role: priced(IN_INPUT),
  content: priced(IN_INPUT, () => BLOCK),
  clear_at: neutral(),
  output_config: neutral(() => turnOutput),
})

const ofTool = (title: string, members: Readonly<Record<string, Member>>): Table =>
  memberTable(title, {
    type: neutral(),
    name: priced(IN_INPUT),
    allowed_callers: neutral(),
    cache_control: CACHE_CONTROL,
    defer_loading: neutral(),
    input_examples: priced(IN_INPUT),
    strict: neutral(),
    ...members,
  })

/** A tool that the upstream runs as often as its `max_uses` says, at a price for each call. */
const serverTool = (name: 'web_search' | 'web_fetch', members: Readonly<Record<string, Member>>): Table =>
  memberTable(
    `tools of type ${name}`,
    {
      type: neutral(),
      name: priced(IN_INPUT),
      max_uses: typed({ type: 'integer', minimum: 1 }, priced('as many calls are held')),
      allowed_domains: priced(IN_INPUT),
      blocked_domains: priced(IN_INPUT),
      allowed_callers: neutral(),
      cache_control: CACHE_CONTROL,
      defer_loading: neutral(),
      response_inclusion: neutral(),
      strict: neutral(),
      ...members,
    },
    { needs: { need: `tool:${name}`, why: RUN_UPSTREAM } },
  )

/** Tools whose definition the upstream has and which the caller runs; their dates are left out. */
const tool: Choice = {
  title: 'tools',
  by: 'type',
  kindOf: (type) => (type === undefined || type === null ? 'custom' : undated(type)),
  isDated: true,
  whenLeftOut: 'custom',
  kinds: {
    custom: ofTool('tools of type custom, or without a type', {
      description: priced(IN_INPUT),
      input_schema: priced(IN_INPUT),
      eager_input_streaming: neutral(),
    }),
    bash: ofTool('tools of type bash', {}),
    text_editor: ofTool('tools of type text_editor', { max_characters: neutral() }),
    memory: ofTool('tools of type memory', {}),
    computer: ofTool('tools of type computer', {
      display_height_px: neutral(),
      display_width_px: neutral(),
      display_number: neutral(),
      enable_zoom: neutral(),
    }),
    web_search: serverTool('web_search', { user_location: neutral() }),
    web_fetch: serverTool('web_fetch', {
      max_content_tokens: priced('within what a call is held to bring'),
      citations: neutral(() => citations),
      url_sources: neutral(),
      use_cache: neutral(),
    }),
    computer_toolset: memberTable('tools of type computer_toolset', {
      type: neutral(),
      cache_control: CACHE_CONTROL,
      configs: priced(IN_INPUT),
    }),
  },
  others: RUN_UPSTREAM,
}

/** `bash_20250124` is `bash`; what has no date is itself. */
export function undated(type: unknown): unknown {
  return typeof type === 'string' ? type.replace(/_\d{8}$/, '') : type
}

const toolChoice = memberTable('tool_choice', {
  type: neutral(),
  name: neutral(),
  disable_parallel_tool_use: neutral(),
})

const format = memberTable('format', { type: neutral(), schema: priced(IN_INPUT) })
const taskBudget = memberTable('task_budget', { type: neutral(), total: neutral(), remaining: neutral() })
const outputConfig = memberTable('output_config', {
  effort: neutral(),
  format: priced(IN_INPUT, () => format),
  task_budget: neutral(() => taskBudget),
})

const blockBinding = memberTable('block_binding', { prefix_mismatch_behavior: neutral() })
const thinking = memberTable('thinking', {
  type: neutral(),
  budget_tokens: priced('within the output limit'),
  display: neutral(),
  block_binding: neutral(() => blockBinding),
})

const amount = memberTable('an amount of context', { type: neutral(), value: neutral() })
const edit: Choice = {
  title: 'edits of context_management',
  by: 'type',
  kindOf: undated,
  isDated: true,
  kinds: {
    clear_thinking: memberTable('edits of type clear_thinking', { type: neutral(), keep: neutral(() => amount) }),
    clear_tool_uses: memberTable('edits of type clear_tool_uses', {
      type: neutral(),
      clear_at_least: neutral(() => amount),
      clear_tool_inputs: neutral(),
      exclude_tools: neutral(),
      keep: neutral(() => amount),
      trigger: neutral(() => amount),
    }),
  },
  others: SUMMARY,
}
const contextManagement = memberTable('context_management', {
  edits: formed(
    'list',
    neutral(() => edit),
  ),
})

const metadata = memberTable('metadata', { user_id: neutral() })
const diagnostics = memberTable('diagnostics', { previous_message_id: neutral() })

const MEMBERS: Readonly<Record<string, Member>> = {
  model: MODEL,
  messages: messagesWith(() => message),
  system: priced(IN_INPUT, () => BLOCK),
  max_tokens: OUTPUT_LIMIT,
  stream: STREAM,
  tools: formed(
    'list',
    priced(IN_INPUT, () => tool),
  ),
  tool_choice: neutral(() => toolChoice),
  thinking: neutral(() => thinking),
  output_config: priced(IN_INPUT, () => outputConfig),
  output_format: priced(IN_INPUT, () => format),
  cache_control: CACHE_CONTROL,
  context_management: formed(
    'object',
    neutral(() => contextManagement),
  ),
  diagnostics: neutral(() => diagnostics),
  metadata: neutral(() => metadata),
  stop_sequences: neutral(),
  temperature: neutral(),
  top_p: neutral(),
  top_k: neutral(),
  service_tier: limited(['auto', 'standard_only'], TIERS),
  speed: limited(['standard'], 'other speeds have prices of their own.'),
  inference_geo: limited(['global'], 'a region has a price of its own.'),
  anthropic_beta: refused('send it as the header anthropic-beta.'),
  betas: refused('send them as the header anthropic-beta.'),
  container: refused(RUN_UPSTREAM),
  mcp_servers: refused(RUN_UPSTREAM),
  fallback_credit_token: refused(OTHER_MODEL),
  compaction: refused(SUMMARY),
  thread: refused('a conversation that the provider stores cannot be priced in advance.'),
  user_profile_id: refused('it refers to your own account with the provider, which is not used here.'),
  workspace_id: refused('it refers to your own account with the provider, which is not used here.'),
}
export const MESSAGES = memberTable('messages and their count', withBeyond('max_tokens', MEMBERS), {
  required: ['model', 'messages'],
})
