/** Faults of the built-in inbox over HTTP. They apply to the whole installation, so they are the operator's: the first account's. */
import { Forbidden } from '../base/errors.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation } from '../http/operation.ts'
import { jsonReply } from '../http/reply.ts'
import { type Faults, STAGES } from './faults.ts'

const PATH = '/sendwright/v1/inbox/faults'
const TAG = 'Captured mail'
const LIST = {
  type: 'array',
  items: {
    type: 'object',
    required: ['stage'],
    properties: {
      recipient: { type: 'string', description: 'Address; * stands for anything', default: '*' },
      stage: { type: 'string', enum: STAGES },
      reply: { type: 'string', description: 'Such as 450 4.2.2 mailbox full; empty: only the delay' },
      probability: { type: 'number', minimum: 0, maximum: 1, default: 1 },
      delay_ms: { type: 'integer', minimum: 0, maximum: 60_000, default: 0 },
    },
  },
} as const

export function faultRoutes(faults: Faults, firstAccountId: string): Operation[] {
  const checkOperator = ({ accountId }: Caller) => {
    if (accountId !== firstAccountId) throw new Forbidden()
  }
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'readInboxFaults',
      tag: TAG,
      summary: 'Replies on demand of the built-in inbox',
      auth: { area: 'messages:stored', access: 'read', only: 'first' },
      params: [],
      responses: { 200: { description: 'The list', schema: LIST } },
      async handler({ caller }) {
        checkOperator(caller)
        return jsonReply(await faults.list())
      },
    }),
    operation({
      method: 'PUT',
      path: PATH,
      id: 'replaceInboxFaults',
      tag: TAG,
      summary: 'Replace the replies on demand; an empty list ends them',
      auth: { area: 'domains', access: 'write', only: 'first' },
      params: [],
      body: { description: 'The list; the first fault that fits counts', schema: LIST },
      responses: { 200: { description: 'The list', schema: LIST } },
      async handler({ params, caller }) {
        checkOperator(caller)
        return jsonReply(await faults.replace(params.json()))
      },
    }),
  ]
}
