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

export const text = (words: string): Content => ({ type: 'text', text: words })
