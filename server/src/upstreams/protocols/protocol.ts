/** What a protocol of model inference looks like, to whoever prices, meters and passes on its calls. */
export type Protocol = {
  /** The model that is asked for, or a fault that says that none is. */
  readonly modelOf: (body: unknown) => string
  /** Reads what is asked for, within what the model has; a fault names what is refused. */
  readonly ask: (request: ModelRequest, model: ModelLimits) => ModelAsk
  /** Below the upstream's base URL. */
  readonly path: string
  readonly credentialHeader: 'authorization' | 'x-api-key'
  /** Headers of the caller that the upstream has to see, in lower case. */
  readonly passesOn: readonly string[]
  /** What an upstream reported in an answer that came whole. */
  readonly usageOf: (json: unknown) => Reported
  /** What such an answer gave to the caller, to be counted where nothing was reported. */
  readonly textOf: (json: unknown) => string
  readonly createReader: (ask: Pick<ModelAsk, 'choices' | 'wantsUsage'>) => StreamReader
  /** The last words of a stream that can't end well, of the body that a fault has in this protocol. */
  readonly errorFrame: (body: string) => string
}

export type ProtocolName = 'openai' | 'anthropic'

export type ModelRequest = {
  readonly body: unknown
  readonly rawBody: Buffer
  /** Those of `passesOn` that the caller sent. */
  readonly headers: Readonly<Record<string, string>>
}

export type ModelLimits = {
  readonly contextWindow: number
  /** What an answer may have where the caller names no limit. */
  readonly outputCap: number
  readonly outputMost: number
  /** The most tokens of one part that is no text, by its kind; a kind that is not named may fill the context window. */
  readonly partTokens: Readonly<Partial<Record<PartKind, number>>>
}

export type PartKind = 'image' | 'audio' | 'file'

/** What a request asks of a model. */
export type ModelAsk = {
  readonly isStream: boolean
  /** Whether the caller wants to see the usage in the stream. */
  readonly wantsUsage: boolean
  readonly choices: number
  /** Of each choice. */
  readonly outputLimit: number
  /** Whether the caller said nothing, so that it is the model's default. */
  readonly isDefaultLimit: boolean
  /** No tokenizer makes more of the input. */
  readonly inputMost: number
  readonly inputEstimate: number
  /** The caller's bytes, but for the model's name upstream, the output limit, and the usage in a stream. */
  readonly bodyFor: (upstreamModel: string) => Buffer
  /** To be counted where the upstream reports nothing. */
  readonly inputText: () => string
}

/** Tokens in classes that do not overlap: what was read from a cache or written to one is not in `input`. */
export type TokenUsage = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** As far as an upstream has said it. An explicit zero is a report; what is missing, negative or no number is none. */
export type Reported = Partial<TokenUsage>

/**
 * Reads a stream of events as it passes. Bytes go on as they came. From the frame on that ends the answer (a stop reason of
 * every choice), everything is held back until the call has been settled.
 */
export type StreamReader = {
  /** Takes a piece as it came; gives what the caller may have now. Throws a RangeError beyond its bounds. */
  readonly push: (piece: Buffer) => readonly Buffer[]
  /** The upstream has ended its body. */
  readonly finish: () => readonly Buffer[]
  /** `failed` where the upstream told of an error in the stream, `open` where it has not come to an end. */
  readonly state: () => 'open' | 'complete' | 'failed'
  readonly reported: () => Reported
  /** Whether the caller has been told of the upstream's error, in the upstream's own words. */
  readonly hasToldError: () => boolean
  /** What was given to be passed on so far: what was generated, apart from the protocol around it. */
  readonly deliveredText: () => string
  /** That, and what is held back. */
  readonly wholeText: () => string
  /** What was held back, with what the call cost written where the protocol has room for it. */
  readonly release: (cost: string) => readonly Buffer[]
}
