import { type Member, refused } from '../catalogue/member-table.ts'
import { OTHER_MODEL, SEARCH, SENT_ELSEWHERE } from './reasons.ts'

/**
 * What some servers and gateways act on in a request of any protocol, though none of the protocols has it. It is known by name, so
 * that no route passes it on: a limit that is sent bounds none of this.
 */

const AGAIN = 'each retry is charged again.'
const MORE_OUTPUT = 'it generates more output than requested.'

type Members = Readonly<Record<string, Member>>

/** Whatever is asked for. */
const ELSEWHERE: Members = {
  models: refused(OTHER_MODEL),
  fallbacks: refused(OTHER_MODEL),
  route: refused(OTHER_MODEL),
  provider: refused(SENT_ELSEWHERE),
  preset: refused(SENT_ELSEWHERE),
  transforms: refused(SENT_ELSEWHERE),
  extra_body: refused(SENT_ELSEWHERE),
  extra_headers: refused(SENT_ELSEWHERE),
  api_base: refused(SENT_ELSEWHERE),
  base_url: refused(SENT_ELSEWHERE),
  api_key: refused(SENT_ELSEWHERE),
  num_retries: refused(AGAIN),
  max_retries: refused(AGAIN),
}

/** The members that a protocol has, and those that are refused in any. */
export function withElsewhere(own: Members): Members {
  return { ...own, ...without(own, ELSEWHERE) }
}

/** The same for a conversation whose output is limited by this member. */
export function withBeyond(limit: string, own: Members): Members {
  return { ...own, ...without(own, ofConversations(limit)) }
}

function without(own: Members, others: Members): Members {
  return Object.fromEntries(Object.entries(others).filter(([name]) => !Object.hasOwn(own, name)))
}

function ofConversations(limit: string): Members {
  const anotherLimit = refused(`use "${limit}".`)
  return {
    ...ELSEWHERE,
    web_search_options: refused(SEARCH),
    search_parameters: refused(SEARCH),
    search_options: refused(SEARCH),
    enable_search: refused(SEARCH),
    plugins: refused(SEARCH),
    data_sources: refused(SEARCH),
    max_tokens: anotherLimit,
    max_completion_tokens: anotherLimit,
    max_output_tokens: anotherLimit,
    max_tokens_to_sample: anotherLimit,
    max_new_tokens: anotherLimit,
    n_predict: anotherLimit,
    num_predict: anotherLimit,
    thinking_budget: refused('reasoning may exceed the output limit.'),
    min_tokens: refused(MORE_OUTPUT),
    ignore_eos: refused(MORE_OUTPUT),
    n: refused(MORE_OUTPUT),
    best_of: refused(MORE_OUTPUT),
    use_beam_search: refused(MORE_OUTPUT),
    prediction: refused('wrong predictions are charged beyond the output limit.'),
    chat_template: refused('a template can repeat the prompt without bound.'),
    mm_processor_kwargs: refused('it changes the token count of an image.'),
  }
}
