/** Operations of the server itself: health and the machine description. */
import type { FixedAnswer } from './fixed-answer.ts'
import { type Operation, operation } from './operation.ts'
import { fixedReply, jsonReply } from './reply.ts'

export interface OwnOperationsParts {
  isReady: () => Promise<{ ready: boolean; reason?: string }>
  /** The machine description; made once. */
  describe: () => Promise<FixedAnswer>
}

const COMMON = { method: 'GET', tag: 'System', auth: 'public', params: [] } as const

export function ownOperations({ isReady, describe }: OwnOperationsParts): Operation[] {
  const health = { 200: { description: 'Working' }, 503: { description: 'Not able to work; says why' } }
  const answerReady = async () => {
    const { ready, reason } = await isReady()
    if (ready) return { status: 'ok' }
    return jsonReply(
      { message: 'Service Unavailable', reason: reason ?? 'not ready' },
      { status: 503, headers: { 'retry-after': '5' } },
    )
  }
  return [
    operation({
      ...COMMON,
      path: '/health/live',
      id: 'healthLive',
      summary: 'Answers as long as the process runs',
      responses: { 200: { description: 'Running' } },
      handler: async () => ({ status: 'ok' }),
    }),
    operation({
      ...COMMON,
      path: '/health/ready',
      aliases: ['/health'],
      id: 'healthReady',
      summary: 'Whether the service can do its work now',
      responses: health,
      handler: answerReady,
    }),
    operation({
      ...COMMON,
      path: '/openapi.json',
      id: 'describeApi',
      summary: 'This description',
      responses: {
        200: { description: 'OpenAPI 3.1 document' },
        304: { description: 'The copy named by If-None-Match is the present one' },
      },
      handler: async () => fixedReply(await describe()),
    }),
  ]
}
