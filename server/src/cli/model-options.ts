import type { Command } from 'commander'
import { PART_CLASS_NAMES, SERVER_TOOLS } from '../catalogue/price-classes.ts'
import { TOKENIZERS } from '../pricing/models.ts'
import { PROTOCOL_NAMES } from '../protocols/protocol.ts'
import { A_TIER } from './class-prices.ts'

/** The options of `farebox models set`, `price` and `route`, with their help. */

const CLASS_NAMES = PART_CLASS_NAMES.join(', ')
const TOOL_NAMES = SERVER_TOOLS.join(', ')

/** For an option that may be given more than once. */
export function oneMore(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

export function withModelOptions(command: Command): Command {
  return command
    .option('--context-window <tokens>', 'maximum tokens of input and output together (required for a new model)')
    .option('--output-cap <tokens>', 'output limit when the caller sends none (required for a new model)')
    .option('--output-most <tokens>', 'maximum output limit that a caller may send (required for a new model)')
    .option('--image-tokens <tokens>', 'maximum tokens of one image, or none if unknown (new model: none)')
    .option('--audio-tokens <tokens>', 'maximum tokens of one audio part, or none if unknown (new model: none)')
    .option('--file-tokens <tokens>', 'maximum tokens of one file, or none if unknown (new model: none)')
    .option(
      '--tokenizer <name>',
      `tokenizer when the provider reports no usage: ${TOKENIZERS.join(', ')} (new model: bytes_3)`,
    )
    .option('--display-name <text>', 'name shown to people (new model: its id)')
    .option('--owned-by <text>', 'maker of the model (new model: the part of its id before /)')
    .option('--off', 'stop selling the model')
    .option('--on', 'sell the model again (new model: on)')
}

export function withPriceOptions(command: Command): Command {
  return command
    .option('--input <usd>', 'price per million input tokens (required without --image and --video)')
    .option('--output <usd>', 'price per million output tokens (required without --image and --video)')
    .option('--cache-read <usd>', 'price per million cache-read tokens (default: --input)')
    .option('--cache-write <usd>', 'price per million cache-write tokens (default: --input)')
    .option(
      '--provider-input <usd>',
      'cost: what the provider charges us per million input tokens (default: as before)',
    )
    .option('--provider-output <usd>', 'cost per million output tokens (default: as before)')
    .option('--provider-cache-read <usd>', 'cost per million cache-read tokens (default: as before)')
    .option('--provider-cache-write <usd>', 'cost per million cache-write tokens (default: as before)')
    .option('--class <class=usd>', `price of a class of tokens, repeatable: ${CLASS_NAMES} (default: none)`, oneMore)
    .option(
      '--above <tokens:class=usd,…>',
      'prices of all classes when the input is longer than this, repeatable (default: none)',
      oneMore,
    )
    .option('--tier <tier=timesx>', `price of a service tier, repeatable: ${A_TIER} (default: none)`, oneMore)
    .option(
      '--tool <tool=usd>',
      `price per call of a tool that the provider runs, repeatable: ${TOOL_NAMES} (default: none)`,
      oneMore,
    )
    .option(
      '--tool-calls <count>',
      'tool calls held for, and sent, when a request (Responses) names no limit (default: the request must)',
    )
    .option('--tool-input <tokens>', 'maximum input tokens that one tool call adds (default: the context window)')
    .option('--no-classes', 'remove all classes, steps, tiers and tools from the price')
    .option('--provider-class <class=usd>', 'cost of a class of tokens, repeatable (default: as before)', oneMore)
    .option(
      '--provider-above <tokens:class=usd,…>',
      'costs when the input is longer than this, repeatable (default: as before)',
      oneMore,
    )
    .option('--provider-tier <tier=timesx>', 'cost of a service tier, repeatable (default: as before)', oneMore)
    .option('--provider-tool <tool=usd>', 'cost per call of a tool, repeatable (default: as before)', oneMore)
    .option(
      '--image <size/quality=usd>',
      'price per image, for models sold by the image, repeatable (default: none)',
      oneMore,
    )
    .option('--provider-image <size/quality=usd>', 'cost per image, repeatable (default: as before)', oneMore)
    .option(
      '--video <resolution=usd>',
      'price per second of video, for models sold by the second, repeatable (default: none)',
      oneMore,
    )
    .option('--provider-video <resolution=usd>', 'cost per second of video, repeatable (default: as before)', oneMore)
    .option('--below-cost', 'allow a price below the cost (default: refuse it)')
}

export function withRouteOptions(command: Command): Command {
  return command
    .requiredOption('--slot <slot>', 'slot whose upstreams are called: see farebox upstreams add')
    .requiredOption('--protocol <name>', `protocol of the upstreams: ${PROTOCOL_NAMES.join(', ')}`)
    .option('--upstream-model <name>', 'name of the model at the provider (default: the model id)')
    .option('--priority <number>', 'routes with the lowest number are tried first (new route: 0)')
    .option('--weight <number>', 'share of calls among routes of the same priority (new route: 1)')
    .option(
      '--output-limit <member>',
      'parameter that carries the output limit, or none to send it as the caller wrote it (new route: none)',
    )
    .option('--unknown <refuse|pass>', 'what to do with unknown parameters (new route: refuse)')
    .option(
      '--reasoning <within|apart>',
      'whether reasoning tokens count within the output or apart from it (new route: within)',
    )
    .option(
      '--on-abort <stops|runs-on>',
      'whether the provider stops billing when we disconnect; not for models with hidden reasoning (new route: runs-on)',
    )
    .option('--output <seen|hidden>', 'whether all billed output is streamed as it is generated (new route: hidden)')
    .option('--token-bytes <bytes>', 'minimum bytes of text per token, 1 to 4 (new route: 1)')
    .option('--top-speed <tokens>', 'maximum tokens per second of the provider, or none (new route: none)')
    .option('--off', 'turn the route off and keep it')
    .option('--on', 'turn the route on (new route: on)')
}
