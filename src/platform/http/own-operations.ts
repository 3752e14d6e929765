/** Operations of the server itself: health and the machine description. */
import { anyJson, map, nothing, object, oneOf, optional, text } from '../../base/shape.ts'
import type { FixedAnswer } from './answer/fixed-answer.ts'
import { fixedReply, jsonReply } from './answer/reply.ts'
import { type Operation, operation } from './operation.ts'

export interface OwnOperationsParts {
  isReady: () => Promise<{ ready: boolean; reason?: string }>
  /** The machine description; made once. */
  describe: () => Promise<FixedAnswer>
}

const COMMON = { method: 'GET', tag: 'System', auth: 'public' } as const
const WORKING = object('Working', { status: oneOf('That it works', ['ok']) })
const NOT_READY = object('Not able to work', {
  message: text('The text', { example: 'Service Unavailable' }),
  reason: optional(text('What is not ready; absent: the service is too busy to find out')),
})

export function ownOperations({ isReady, describe }: OwnOperationsParts): Operation[] {
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
