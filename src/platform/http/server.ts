/**
 * The HTTP server: listeners, routes made of operations, the machine description, health, the dashboard's files, and
 * what holds for every answer. Nothing here knows a resource; what the parts need is handed in.
 */
import { setMaxListeners } from 'node:events'
import { createFaultLog } from '../../base/process/fault-log.ts'
import { anyJson, map, nothing, object, oneOf, optional, text } from '../../base/shape.ts'
import { type FixedAnswer, fixedReply, jsonReply } from './answer/reply.ts'
import { createDispatch, type DispatchParts } from './dispatch.ts'
import type { ExchangeParts } from './exchange.ts'
import { createInnerCalls } from './inner-calls.ts'
import { createListeners, type ListenersOptions } from './listening/listeners.ts'
import { describeApi, descriptionAnswer } from './openapi.ts'
import { type Operation, operation } from './operation.ts'
import { createOriginPolicy, createRemoteAddresses } from './request/origin.ts'
import { createRouter, type RouterParts } from './router.ts'

export interface HttpServerOptions
  extends ListenersOptions,
    Pick<ExchangeParts, 'strictTransport' | 'observe'>,
    Pick<RouterParts, 'pages' | 'pagesPrefixes' | 'httpsOrigin'>,
    Omit<DispatchParts, 'faults' | 'origin' | 'remote' | 'closing' | 'httpsOnly'> {
  /** Public address, without a final slash: the base of links, and an own origin. */
  baseUrl: string
  /** Further public addresses of ours: tracking, storage. */
  otherBaseUrls: readonly string[]
  corsOrigins: readonly string[]
  /** Calls from other machines that carry secrets must be made over https, to `baseUrl`. */
  httpsOnly: boolean
  /** Whether the service can do its work now; `reason` goes into the answer of `/health/ready`. */
  isReady(): Promise<{ ready: boolean; reason?: string }>
}

export type HttpServer = ReturnType<typeof createHttpServer>

export function createHttpServer(options: HttpServerOptions) {
  const { clock, baseUrl, headerPrefix } = options
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every open stream listens
  const origin = createOriginPolicy({
    baseUrls: [baseUrl, ...options.otherBaseUrls],
    corsOrigins: options.corsOrigins,
  })
  const remote = createRemoteAddresses(options.trustedProxies)
  const common = { ...options, faults: createFaultLog(clock), origin, remote, closing: closing.signal }
  const router = createRouter({
    ...common,
    exchange: { ...common, requestIdName: `${headerPrefix}Request-Id`.toLowerCase() },
    dispatch: createDispatch({ ...common, httpsOnly: options.httpsOnly ? baseUrl : null }),
  })
  const listeners = createListeners(options, router.answer)
  const operations: Operation[] = []
  let description: Promise<FixedAnswer> | undefined
  let ended: Promise<void> | undefined

  /** The machine description of the operations so far. */
  const describe = () => describeApi(operations, { baseUrl, headerPrefix })

  /** Adds operations. Before `listen`. */
  function register(added: readonly Operation[]): void {
    for (const spec of added) {
      operations.push(spec)
      router.add(spec)
    }
    description = undefined
  }

  register(
    ownOperations(options.isReady, () => {
      description ??= descriptionAnswer(describe())
      return description
    }),
  )

  return {
    register,
    describe,
    /** Calls operations from within one. */
    innerCall: createInnerCalls(router.answer, `${headerPrefix}On-Behalf-Of`.toLowerCase()),
    /** Resolves with the ports once every listener is open. */
    listen: listeners.listen,
    /** Refuses new requests, ends event streams, waits for running requests, then cuts the rest. */
    close(): Promise<void> {
      closing.abort()
      ended ??= listeners.close()
      return ended
    },
  }
}

const COMMON = { method: 'GET', tag: 'System', auth: 'public' } as const
const WORKING = object('Working', { status: oneOf('That it works', ['ok']) })
const NOT_READY = object('Not able to work', {
  message: text('The text', { example: 'Service Unavailable' }),
  reason: optional(text('What is not ready; absent: the service is too busy to find out')),
})

/** Health and the machine description; `describe` is called for each request. */
function ownOperations(
  isReady: HttpServerOptions['isReady'],
  describe: () => Promise<FixedAnswer>,
): Operation[] {
  return [
    operation({
      ...COMMON,
      path: '/health/live',
      id: 'healthLive',
      summary: 'Answers as long as the process runs',
      answers: { 200: WORKING },
      handler: async () => ({ status: 'ok' as const }),
    }),
    operation({
      ...COMMON,
      path: '/health/ready',
      aliases: ['/health'],
      id: 'healthReady',
      summary: 'Whether the service can do its work now',
      answers: { 200: WORKING, 503: NOT_READY },
      async handler() {
        const { ready, reason } = await isReady()
        if (ready) return { status: 'ok' as const }
        return jsonReply(
          { message: 'Service Unavailable', reason: reason ?? 'not ready' },
          { status: 503, headers: { 'retry-after': '5' } },
        )
      },
    }),
    operation({
      ...COMMON,
      path: '/openapi.json',
      id: 'describeApi',
      summary: 'This description',
      answers: {
        200: map('OpenAPI 3.1 document', anyJson('')),
        304: nothing('The copy named by If-None-Match is the present one'),
      },
      handler: async () => fixedReply(await describe()),
    }),
  ]
}
