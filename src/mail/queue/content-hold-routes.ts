/** What the content check keeps for a person (content-check.md section 3). */

import { NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { limitParam, skipParam } from '../../platform/http/request/inputs.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Decision, HeldContent, Holds } from '../../sending/content-check/holds.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import { CONTENT_DECISION, CONTENT_HOLDS, type ContentHoldView } from './shapes.ts'

interface ContentHoldRouteParts extends Pick<Core, 'store' | 'clock'> {
  holds: Holds
  /** The operator's: its callers see those of all accounts, and decide. */
  firstAccountId: string
  /** A decision was written. */
  decided(): void
}

const PATH = '/sendwright/v1/content-holds'
const api = operationsOf({ tag: 'Queue', auth: { area: 'domains', only: 'first' } })

export function contentHoldRoutes(parts: ContentHoldRouteParts): Operation[] {
  const { holds, clock, firstAccountId, decided } = parts

  async function decide(digest: string, decision: Decision) {
    const messages = await holds.decide(digest, decision, clock.now())
    if (messages === 0) throw new NotFound('No message with this content is held')
    decided()
    return { messages }
  }

  return [
    api.get(PATH, {
      id: 'listContentHolds',
      summary: 'Mail that the content check keeps until the operator decides',
      auth: { area: 'events', access: 'read' },
      params: { limit: limitParam(100, 1000), skip: skipParam() },
      answers: { 200: CONTENT_HOLDS },
      async handler({ input, caller }) {
        const scope = caller.accountId === firstAccountId ? null : caller.accountId
        const { limit, skip } = input()
        return { items: await views(parts.store, await holds.list(scope, limit, skip)) }
      },
    }),
    api.post(`${PATH}/{id}/release`, {
      id: 'releaseContentHold',
      summary: 'Send what has this content, now and for a week',
      description: 'For the first account only.',
      answers: { 200: CONTENT_DECISION, 404: 'Nothing with this content is held' },
      handler: ({ path }) => decide(path.id, 'released'),
    }),
    api.delete(`${PATH}/{id}`, {
      id: 'dropContentHold',
      summary: 'Drop what has this content, now and for a week',
      description: 'For the first account only.',
      answers: { 200: CONTENT_DECISION, 404: 'Nothing with this content is held' },
      handler: ({ path }) => decide(path.id, 'dropped'),
    }),
  ]
}

async function views(store: Store, held: readonly HeldContent[]): Promise<ContentHoldView[]> {
  if (held.length === 0) return []
  const rows = await store.db
    .selectFrom('messages')
    .select(['id', 'message_id', 'summary_json'])
    .where(
      'id',
      'in',
      held.map(({ messagePk }) => messagePk),
    )
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return held.map(({ digest, accountId, domainName, messagePk, messages, reason, heldAt }) => {
    const row = byId.get(messagePk)
    const { from = '', subject = '' }: Partial<MessageSummary> = row ? JSON.parse(row.summary_json) : {}
    return {
      id: digest,
      ...{ account_id: accountId, domain: domainName, message_id: row?.message_id ?? '', from, subject },
      ...{ messages, reason, held_at: new Date(heldAt).toISOString() },
    }
  })
}
