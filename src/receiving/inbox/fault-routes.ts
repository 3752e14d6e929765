/** Faults of the built-in inbox over HTTP. They apply to the whole installation, so they are the operator's: the first account's. */
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Faults } from './faults.ts'
import { FAULTS, GIVEN_FAULTS } from './shapes.ts'

const PATH = '/sendwright/v1/inbox/faults'
const TAG = 'Captured mail'
export function faultRoutes(faults: Faults): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'readInboxFaults',
      tag: TAG,
      summary: 'Replies on demand of the built-in inbox',
      auth: { area: 'messages:stored', access: 'read', only: 'first' },
      answers: { 200: FAULTS },
      async handler() {
        return faults.list()
      },
    }),
    operation({
      method: 'PUT',
      path: PATH,
      id: 'replaceInboxFaults',
      tag: TAG,
      summary: 'Replace the replies on demand; an empty list ends them',
      auth: { area: 'domains', access: 'write', only: 'first' },
      body: GIVEN_FAULTS,
      answers: { 200: FAULTS },
      async handler({ params }) {
        return faults.replace(params.json())
      },
    }),
  ]
}
