/** What a tool answers, in the members that both versions of the protocol have. */
export type ToolResult = {
  readonly content: readonly Content[]
  readonly structuredContent: Readonly<Record<string, unknown>>
  readonly isError?: true
  readonly _meta?: Readonly<Record<string, unknown>>
}

export type Content =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }

export const text = (words: string): Content => ({ type: 'text', text: words })
