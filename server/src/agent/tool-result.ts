/** What a tool answers, in the members that both versions of the protocol have. */
export type ToolResult = {
  readonly content: readonly Content[]
  readonly structuredContent: Readonly<Record<string, unknown>>
  readonly isError?: true
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** In place of a result: the client is to lead its person to a page of ours, and then to make the same call again. */
export type InputRequired = {
  readonly resultType: 'input_required'
  readonly inputRequests: Readonly<Record<string, InputRequest>>
  readonly requestState: string
}

type InputRequest = {
  readonly method: 'elicitation/create'
  readonly params: { readonly mode: 'url'; readonly message: string; readonly url: string }
}

export function isInputRequired(result: ToolResult | InputRequired): result is InputRequired {
  return 'inputRequests' in result
}

export type Content =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }

/** Clients that show their model the structured result, and of an error its words. Others are sent both, as the protocol advises. */
const READ_STRUCTURED = /^(?:claude-code\/(?:2\.[1-9]|[3-9])|codex-mcp-client\/)/

/** A result as its client reads it: what it would leave unread is not sent a second time. */
export function sentOnce(result: ToolResult, userAgent: string | undefined): ToolResult {
  if (result.isError || !READ_STRUCTURED.test(userAgent ?? '')) return result
  const pictures = result.content.filter(({ type }) => type === 'image')
  return { ...result, content: [...pictures, text('The result is in structuredContent.')] }
}

export const text = (words: string): Content => ({ type: 'text', text: words })
