import { z } from 'zod'
import { leastBudgetFor } from '../kernel/memory-budget.ts'
import { BODY_MOST_BYTES, MIB, MODEL_BODY_MOST_BYTES } from './bytes.ts'
import { section, setting } from './described.ts'
import { address, hostName, integer, list, origin, proxies, publicOrigin, publicUrl } from './kinds.ts'

const listener = (at: string, whose: string, advice: string) =>
  setting(address.prefault(at), `Address that the listener for ${whose} binds to.`, advice)

export const listen = section(
  z
    .strictObject({
      gateway: listener(
        '127.0.0.1:8700',
        'API callers',
        'Change it when the port is taken. Set `0.0.0.0:8700` when a load balancer on another machine connects to it.',
      ),
      site: listener(
        '127.0.0.1:8702',
        'people (website, sign-in, consent)',
        'Put a proxy with TLS in front of it, and set `http.site_url`. Set `0.0.0.0:8702` when that proxy is on another machine.',
      ),
      agent: listener(
        '127.0.0.1:8703',
        'agents (MCP)',
        'Put a proxy with TLS in front of it, and set `http.mcp_url`. Set `0.0.0.0:8703` when that proxy is on another machine.',
      ),
      admin: listener(
        '127.0.0.1:8709',
        'operators (`/metrics`)',
        'Change it when Prometheus is on another machine: set an address of your internal network. Keep it off the internet: it asks for no credential.',
      ),
    })
    .prefault({}),
  'Addresses that a process listens on, one for each of its roles ([listeners.md](listeners.md)). Each needs an address of its own. Port 0 takes a free port.',
)

const limits = {
  body_bytes: setting(
    integer(1_024, BODY_MOST_BYTES).prefault(MIB),
    'Size limit of a request body, except for calls of models. A larger one gets 413 `body_too_large`. Whatever it is, bodies of the tools of agents have at most 1 MiB, and forms of the website 16 KiB.',
    'Raise it only for operations that need larger bodies; a body takes three times its size of `memory.budget_bytes`.',
  ),
  model_body_bytes: setting(
    integer(1_024, MODEL_BODY_MOST_BYTES).optional(),
    'Size limit of a request body at the endpoints of models, which can carry pictures and long conversations. Without it: 32 MiB. If `memory.budget_bytes` is below 427 MiB, there is room for less: a third of (3/8 of the budget − 64 MiB).',
    'Lower it where callers send no pictures or files. A larger body is refused with 413 `body_too_large`.',
  ),
  header_bytes: setting(
    integer(4_096, 65_536).prefault(16_384),
    'Size limit of the request line and all headers together; larger ones get 431 `headers_too_large`.',
    'Raise it where a proxy in front adds large headers.',
  ),
  json_depth: setting(
    integer(8, 512).prefault(64),
    'Limit of levels of nesting of JSON in requests; deeper ones get 400 `body_too_deep`.',
    'Raise it where callers send deeply nested JSON Schemas for tools.',
  ),
  connections: setting(
    integer(10, 100_000).prefault(10_000),
    'Limit of open connections of each listener. At the limit, a new connection takes the place of the one that has been idle longest; if none is idle, the new one is closed. One address has at most 1,000, unless it is in `http.trusted_proxies`.',
    'Raise the limit of open files (`ulimit -n`) with it: a call takes a connection here and one to its upstream.',
  ),
}

const times = {
  headers_timeout_ms: setting(
    integer(1_000, 60_000, '1000 to 60000, and at most `http.request_timeout_ms`').prefault(10_000),
    'Timeout for the headers of a request; slower ones get 408 `request_timeout`.',
    'Leave it; a short timeout is what ends slow attacks (Slowloris).',
  ),
  request_timeout_ms: setting(
    integer(1_000, 600_000).prefault(60_000),
    'Timeout for a whole request with its body; a slower one gets 408 `request_timeout`. The answer may take longer.',
    'Raise it where callers send large bodies over slow connections.',
  ),
  drain_ms: setting(
    integer(0, 600_000).prefault(60_000),
    'Graceful shutdown: how long accepted requests may take to finish after SIGTERM. What still runs then is cut off: a stream costs its caller the input and what was delivered, any other call costs nothing.',
    'Give the process manager a longer stop timeout than this (`TimeoutStopSec`, `terminationGracePeriodSeconds`).',
  ),
  drain_pause_ms: setting(
    integer(0, 60_000, '0 to 60000, and at most `http.drain_ms`').prefault(0),
    'How long a stopping process goes on accepting while `/readyz` already says 503. It is a part of `http.drain_ms`.',
    'Behind a load balancer, set it to more than the balancer takes to notice ([reliability.md](reliability.md#rolling-restarts)).',
  ),
  abandoned_stream_ms: setting(
    integer(0, 600_000).prefault(30_000),
    'How long we go on reading a stream from its upstream after the caller has disconnected, to learn what was used. It does not apply to a stream that is canceled: that is the default of keys (`X-Farebox-On-Disconnect: cancel`), at an upstream whose meter stops when we disconnect ([models.md](models.md#calling-one)).',
    'Raise it when your upstreams bill the whole answer even if we disconnect. Usage that they do not report in this time is counted from the text.',
  ),
}

const names = {
  cors_origins: setting(
    list(origin).prefault([]),
    'Cross-origin requests (CORS): web pages of these origins may call the API and the tools of agents from a browser.',
    'List your own web apps. `*` allows every origin, and stands alone.',
  ),
  trusted_proxies: setting(
    proxies.optional(),
    "Load balancers whose `X-Forwarded-For` is believed. Without them, a caller's address is the other end of the connection. Required as soon as `http.public_url`, `http.site_url` or `http.mcp_url` begins with https, because something in front ends TLS.",
    'List every proxy in front: behind one that is not listed, everybody has the same address, and one attacker locks all out of sign-in. Say `none` if callers connect directly. Keys with addresses need the real one too ([keys.md](keys.md#addresses)).',
  ),
  public_url: setting(
    publicOrigin('https://api.example.com').optional(),
    'Origin under which callers reach the gateway. It is the audience of access tokens for the API. Without it, the API accepts no access tokens (API keys work), and accounts of platforms cannot be linked.',
    'Set it before users link accounts or clients get tokens.',
  ),
  site_url: setting(
    publicOrigin('https://www.example.com').optional(),
    'Origin under which people reach the website. It is also the issuer of the authorization server, and links in e-mails lead to it. Without it, the website answers only under `localhost`, `127.0.0.1` and `[::1]`, and nobody can sign up.',
    'Set it once and keep it: a change ends the trust of all OAuth clients.',
  ),
  mcp_url: setting(
    publicUrl.optional(),
    'URL under which agents reach the MCP tools. Its path is where they are served. Without it, the tools answer at `/mcp` under names of this machine alone.',
    'Set it to what people paste into their agent ([agents.md](agents.md)).',
  ),
  admin_hosts: setting(
    list(hostName).prefault([]),
    'Host names under which operators reach their listener, beside addresses, `localhost` and single words.',
    'List the name that Prometheus asks for, if it has dots; others are refused with 421.',
  ),
}

export const http = section(
  z.strictObject({ ...limits, ...times, ...names }).prefault({}),
  'Limits and timeouts of HTTP, shutdown, and the URLs by which others reach the listeners.',
)

/** The least depends on the bodies, so whoever gives less is told by what is checked together. */
const MEMORY_MOST_BYTES = 65_536 * MIB
const MEMORY_BOUNDS = `${leastBudgetFor(MIB)} to ${MEMORY_MOST_BYTES} with bodies of the default sizes; more is needed for larger ones`

export const memory = section(
  z
    .strictObject({
      budget_bytes: setting(
        integer(MIB, MEMORY_MOST_BYTES, MEMORY_BOUNDS).prefault(448 * MIB),
        'Memory budget for requests, replies and unread answers together, beside what the program itself needs. A call without room waits for up to a second, then it is refused with 503 `overloaded`. The largest call has to fit: the budget is at least 8/3 of (64 MiB + three times the larger of `http.body_bytes` and `http.model_body_bytes`). That is 179 MiB if neither is set.',
        'Give the container this and about 400 MiB more. Raise it when `farebox_memory_refusals_total` grows.',
      ),
    })
    .prefault({}),
  'Load shedding by memory.',
)
