/** Test helpers: messages, events and page requests with defaults. */

import type { Statement } from '../../src/platform/store/store.ts'
import {
  type AttemptFacts,
  createEventRecorder,
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  type MessageSummary,
} from '../../src/watching/events/event.ts'
import type { PageRequest } from '../../src/watching/events/search/page-request.ts'
import type { EventReader, Page } from '../../src/watching/events/search/query.ts'

export const NOW_MS = Date.UTC(2026, 5, 1, 12)

/** Nobody has an interest in what it records. */
export const bareRecorder = createEventRecorder()
export const eventStatements = (events: readonly EventRecord[]) => bareRecorder.statements(events)
/** The row of one event. */
export const eventStatement = (event: EventRecord) => eventStatements([event])[0] as Statement

export function testMessage(
  summary: Partial<MessageSummary> = {},
  more: Partial<EventMessage> = {},
): EventMessage {
  return {
    accountId: 'account-1',
    domainName: 'mg.example.com',
    messageId: '20260601120000.4be1a07c@mg.example.com',
    storageKey: 'key-1',
    storageUrl: 'https://api.example.net/v3/domains/mg.example.com/messages/key-1',
    summary: {
      from: 'Shop <shop@mg.example.com>',
      to: 'Alice <alice@example.org>',
      subject: 'Welcome',
      sender: 'shop@mg.example.com',
      recipients: ['alice@example.org'],
      attachments: [],
      sizeBytes: 1204,
      tags: ['welcome'],
      userVariables: { order: '17' },
      testMode: false,
      method: 'http',
      originatingIp: '198.51.100.7',
      keyId: '1f0c2d3e-5a6b7c8d',
      template: null,
      ...summary,
    },
    ...more,
  }
}

export const DELIVERED: AttemptFacts = {
  sendingIp: '203.0.113.9',
  primaryDkim: 'k1._domainkey.mg.example.com',
  recipientProvider: 'Gmail',
  status: { code: 250, 'attempt-no': 1, message: 'OK', description: '', 'session-seconds': 0.4 },
}

/** A delivered event to `recipient`, `atMs` after noon. */
export function deliveredAt(
  atMs: number,
  recipient = 'alice@example.org',
  summary: Partial<MessageSummary> = {},
  more: Partial<EventMessage> = {},
): EventRecord {
  const to = { recipient, recipientDomain: recipient.slice(recipient.indexOf('@') + 1) }
  return deliveredEvent(testMessage(summary, more), to, DELIVERED, NOW_MS + atMs)
}

export function request(more: Partial<PageRequest> = {}): PageRequest {
  const ascending = more.ascending ?? true
  return {
    accountId: 'account-1',
    domainName: 'mg.example.com',
    lowUs: null,
    highUs: null,
    limit: 100,
    filters: [],
    gap: null,
    start: null,
    ...more,
    ascending,
    up: more.up ?? ascending,
  }
}

export const idsOf = (page: Page): string[] => page.items.map((item) => item['id'] as string)

/** All ids from the request `from` on, following `next` until a page is empty; and the last page's `next`. */
export async function follow(
  reader: EventReader,
  from: PageRequest,
  nowMs: number,
  link: 'next' | 'previous' = 'next',
): Promise<{ ids: string[]; next: PageRequest }> {
  const ids: string[] = []
  let at = from
  for (;;) {
    const page = await reader.page(at, nowMs)
    at = page.links[link]
    if (page.items.length === 0) return { ids, next: at }
    ids.push(...idsOf(page))
  }
}
