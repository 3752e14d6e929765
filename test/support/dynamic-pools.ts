/** Mail of a domain as its events, written by the service's own recorder, for checks of dynamic pools. */
import assert from 'node:assert/strict'
import type { Core } from '../../src/core.ts'
import { deliveredEvent, type EventRecord, failedEvent } from '../../src/watching/events/event.ts'
import { complainedEvent } from '../../src/watching/events/later-events.ts'
import { DELIVERED, testMessage } from './events.ts'
import type { CallOptions, TestService } from './service.ts'

export interface MailCounts {
  delivered?: number
  bounced?: number
  complained?: number
  /** Delivered in test mode. */
  tests?: number
}

const AT_ONCE = 200

/** Of now. */
export async function recordMail(core: Core, domainName: string, counts: MailCounts): Promise<void> {
  const domain = await core.domains.byName(domainName)
  assert.ok(domain)
  const about = (testMode: boolean) => testMessage({ testMode }, { accountId: domain.accountId, domainName })
  const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
  const now = core.clock.now()
  const failure = { ...DELIVERED, severity: 'permanent', reason: 'bounce' } as const
  const complaint = { recipientProvider: 'Gmail', sendingIp: null }
  const makers: [number | undefined, () => EventRecord][] = [
    [counts.delivered, () => deliveredEvent(about(false), to, DELIVERED, now)],
    [counts.bounced, () => failedEvent(about(false), to, failure, now)],
    [counts.complained, () => complainedEvent(about(false), to, complaint, now)],
    [counts.tests, () => deliveredEvent(about(true), to, DELIVERED, now)],
  ]
  const events = makers.flatMap(([count = 0, make]) => Array.from({ length: count }, make))
  for (let at = 0; at < events.length; at += AT_ONCE)
    await core.store.commit(core.recorder.statements(events.slice(at, at + AT_ONCE)))
}

type Call = TestService['call']

/** Calls with their expected answer. */
export const callsOf = (call: Call) => ({
  get: async (path: string) => {
    const answer = await call('GET', path)
    assert.equal(answer.status, 200, `GET ${path}: ${answer.text}`)
    return answer.body
  },
  ok: async (method: string, path: string, form?: CallOptions['form']) => {
    const answer = await call(method, path, form && { form })
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
    return answer.body
  },
  refused: async (
    method: string,
    path: string,
    form: CallOptions['form'] | undefined,
    status: number,
    message: string,
  ) => {
    const answer = await call(method, path, form && { form })
    assert.deepEqual([answer.status, answer.body?.message], [status, message], `${method} ${path}`)
  },
})
export type Calls = ReturnType<typeof callsOf>

/** Makes the pools, with one address each unless more are given. */
export const setPools = ({ ok }: Calls, good: string, poor: string, fresh: string) =>
  ok('POST', '/v3/dynamic_pools/all', { good_reputation: good, poor_reputation: poor, new_senders: fresh })
