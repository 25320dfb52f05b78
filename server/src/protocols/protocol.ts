import type { Need, PartClass, ServerTool } from '../catalogue/price-classes.ts'
import type { RouteProfile } from './route-profile.ts'

/** What a protocol of model inference looks like, to whoever prices, meters and passes on its calls. */
export type Protocol = {
  /** The model that is asked for, in the body or in the path of the request, or a fault that says that none is. */
  readonly modelOf: (body: unknown, inPath: string | undefined) => string
  /** Reads what is asked for, within what the model has; a fault names what is refused. */
  readonly ask: (request: ModelRequest, model: ModelLimits) => ModelAsk
  /** Where it is served here, as callers are told. */
  readonly path: string
  /** Path and query below the upstream's base URL. */
  readonly target: (upstreamModel: string) => string
  readonly credentialHeader: 'authorization' | 'x-api-key' | 'x-goog-api-key'
  /** Headers of the caller that the upstream has to see, in lower case. */
  readonly passesOn: readonly string[]
  /** What the upstream requires and a caller may leave out, such as one who writes a request by hand. */
  readonly defaultHeaders?: Readonly<Record<string, string>>
  /** What an upstream reported in an answer that came whole. */
  readonly usageOf: (json: unknown, profile?: Pick<RouteProfile, 'reasoning'>) => Reported
  /** What the caller was given with it. */
  readonly formOf: (json: unknown) => ReplyForm
  /** What such an answer gave to the caller, to be counted where nothing was reported. */
  readonly textOf: (json: unknown) => string
  /** Whether it has what is no text, and so can't be counted. Taken for granted of answers that may have it, where left out. */
  readonly hasMedia?: (json: unknown) => boolean
  /** What else of such an answer may be text that nobody expects there: without what it repeats of the request. All where left out. */
  readonly restOf?: (json: unknown) => unknown
  /** Undefined where answers always come whole. */
  readonly stream?: StreamProtocol
}

/** An answer, whose text is all that there is to count; an error or the like; or what has neither form. */
export type ReplyForm = 'answer' | 'nothing' | 'unreadable'

export type StreamProtocol = {
  readonly createReader: (
    ask: Pick<ModelAsk, 'choices' | 'wantsUsage' | 'toolCalls' | 'needs'>,
    profile?: Pick<RouteProfile, 'reasoning'>,
  ) => StreamReader
  /** The last words of a stream that can't end well, of the body that a fault has in this protocol. */
  readonly errorFrame: (body: string) => string
}

/** What an upstream of a model speaks. */
export const PROTOCOL_NAMES = [
  'openai',
  'openai_responses',
  'anthropic',
  'gemini',
  'openai_embeddings',
  'gemini_embeddings',
  'openai_images',
  'video',
] as const
export type ProtocolName = (typeof PROTOCOL_NAMES)[number]

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
  /** What an answer may have whatever the caller asks for, because there is no more for it. */
  readonly outputAtMost?: number | undefined
  /** The most tokens of one part that is no text, by its kind; a kind that is not named may fill the context window. */
  readonly partTokens: Readonly<Partial<Record<PartKind, number>>>
  /** What may be asked for beyond plain tokens, because it has a price; nothing where left out. */
  readonly sold?: Sold | undefined
}

export type Sold = {
  readonly needs: ReadonlySet<Need>
  /** How many calls of tools that an upstream runs are held for, and sent, where a request for a response does not say. */
  readonly toolCalls?: number
  /** The most tokens that one of them brings into the input; the context window where left out. */
  readonly toolInput?: number
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
  /** What no table knows of the body and the headers: only routes that pass it on may be asked. */
  readonly unknownMembers: readonly string[]
  /** The caller's bytes, but for the model's name upstream, the output limit, and the usage in a stream. */
  readonly bodyFor: (upstreamModel: string, profile?: RouteProfile) => Buffer
  /** The most bytes that a reply has by what is asked for, where that is no text. */
  readonly replyBytes?: number
  /** What a reply repeats of its request, beside that. */
  readonly repeatedBytes?: number
  /** To be counted where the upstream reports nothing. */
  readonly inputText: () => string
  /** What its parts that are no text come to as a rule, beside its text. */
  readonly inputParts?: InputParts
  /** Inputs beside it that may be longer than what an upstream reads of each: some leave out the rest without a word. */
  readonly longInputs?: { readonly texts: readonly string[]; readonly mostOfEach: number }
  /** Of pictures that are asked for, where a model sells them by the piece: `<size>/<quality>`, `auto` for what is not said. */
  readonly imageKind?: string
  /** What it asks for that has a price of its own, beyond plain tokens. */
  readonly needs?: ReadonlySet<Need>
  /** Of the bound of the input, how much is in parts that are no text: pictures, and whatever may have sound. */
  readonly partsMost?: { readonly image: number; readonly any: number }
  /** The service tier that is asked for, by its name here; `auto` where the upstream chooses. */
  readonly tier?: string
  /** How many calls of tools that the upstream runs it may make, of all tools that are asked for together. */
  readonly toolCalls?: number
}

/** Tokens of pictures, of sound, and of what may have either or is text: files, and what nobody knows. */
export type InputParts = { readonly image: number; readonly audio: number; readonly other: number }

/** Tokens in classes that do not overlap: what was read from a cache or written to one is not in `input`. */
export type TokenUsage = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** What is told at the end of an answer that was cut because there was no more to hold for it. */
export type LimitEnd = {
  /** What the call was charged. */
  readonly cost: string
  /** Which limit there was no more of. */
  readonly endedBy: string
  readonly usage: TokenUsage
}

/** What is told with the error that ends a stream. */
export type ErrorEnd = {
  /** What the call was charged. */
  readonly cost: string
  readonly requestId: string
}

/** As far as an upstream has said it. An explicit zero is a report; what is missing, negative or no number is none. */
export type Reported = Partial<TokenUsage> & {
  /** Of those classes, what is in a part of one that may have a price of its own. Never more than its class. */
  readonly parts?: Parts
  /** How often tools of the upstream's own were called. */
  readonly calls?: Calls
  /** The service tier that it was answered in, by its name here. */
  readonly tier?: string
  /** In place of `output`: what was said of it before more was generated. */
  readonly outputSoFar?: number
  /** What came of sound, by its length. Nobody has said it; it counts where nobody says better. */
  readonly soundTokens?: number
}

export type Parts = Readonly<Partial<Record<PartClass, number>>>
export type Calls = Readonly<Partial<Record<ServerTool, number>>>

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
  /** Whether frames are being held back: the answer has ended, and the stream perhaps not yet. */
  readonly isHolding: () => boolean
  /** Whether a connection that breaks while frames are held back has broken after the end of the answer. */
  readonly hasStopOfItsOwn: boolean
  readonly reported: () => Reported
  /** What was given to be passed on so far: what was generated, apart from the protocol around it. */
  readonly deliveredText: () => string
  /** That, and what is held back. */
  readonly wholeText: () => string
  /** How many bytes of text were generated so far, also those beyond what is kept to be counted. */
  readonly textBytes: () => number
  /** How much of the process's memory it takes. */
  readonly keptBytes: () => number
  /** What was held back, with what the call cost written where the protocol has room for it. */
  readonly release: (cost: string) => readonly Buffer[]
  /** Lets so many bytes of text pass in all, and gives what has waited for that. Before anything is said, all may pass. */
  readonly allow: (textBytes: number) => readonly Buffer[]
  /** Whether a frame waits that has more text than may pass, and everything behind it. */
  readonly isWaiting: () => boolean
  /** The upstream's own error, which is held back until the call is settled; undefined where it told of none that can be read. */
  readonly endInError: (end: ErrorEnd) => Buffer | undefined
  /** In place of what waits, and of all that would come: the end that an answer has at its output limit. */
  readonly endAtLimit: (end: LimitEnd) => readonly Buffer[]
}
