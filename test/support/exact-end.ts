/** The end of a drill with nodes: nothing waits, and messages, events, counters and webhooks agree with each other. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { DrillReport } from '../../scripts/drill.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from '../../src/watching/metrics/storage/splits.ts'
import { judge } from './crash-rig.ts'
import type { Receiver } from './http-receiver.ts'
import type { Sink, SinkMessage } from './smtp-sink.ts'

const DRAIN_MAX_MS = 300_000

const counter = (database: pg.Client) => async (sql: string) =>
  Number((await database.query(sql)).rows[0].count)

/** Nothing waits, neither mail nor posts nor events that are to be counted. */
export async function settled(database: pg.Client, receiver: Receiver): Promise<void> {
  const count = counter(database)
  const until = performance.now() + DRAIN_MAX_MS
  const waiting = async () => ({
    deliveries: await count(
      `SELECT count(*) FROM deliveries WHERE state IN ('scheduled', 'queued', 'sending')`,
    ),
    posts: await count('SELECT count(*) FROM outgoing_posts'),
    uncounted: await count(`SELECT count(*) FROM events, event_followers
      WHERE name = 'counters' AND (events.tx, events.seq) > (event_followers.tx, event_followers.seq)`),
  })
  for (let posted = -1; ; await sleep(1_000)) {
    const left = await waiting()
    const isStill = receiver.posts.length === posted
    posted = receiver.posts.length
    if (isStill && Object.values(left).every((number) => number === 0)) return
    assert.ok(performance.now() < until, `still waiting: ${JSON.stringify(left)}`)
  }
}

export interface ExactEnd {
  report: DrillReport
  /** Message-Ids with brackets of what was accepted. */
  ledger: ReadonlySet<string>
  /** How many messages may have been delivered twice. */
  repeatedMax: number
  messages: readonly SinkMessage[]
  /** Of the webhooks for accepted and delivered. */
  receiver: Receiver
  database: pg.Client
}

/** Every message has one recipient, who takes it. */
export async function judgeExact(end: ExactEnd): Promise<void> {
  const { report, ledger, repeatedMax, messages, receiver, database } = end
  const { lost, repeated } = judge(ledger, { messages } as Sink)
  const rows = await counter(database)('SELECT count(*) FROM messages')
  report.figure('accepted, and in the database', `${ledger.size} and ${rows}`)
  report.figure('lost, repeated', `${lost.length}, ${repeated.length}`)
  assert.deepEqual(lost, [])
  assert.ok(repeated.length <= repeatedMax, `${repeated.length} repeated, at most ${repeatedMax}`)

  const events = (await database.query(`SELECT id, event FROM events`)).rows as {
    id: string
    event: string
  }[]
  const of = (name: string) => events.filter(({ event }) => event === name)
  const [accepted, delivered] = [of('accepted'), of('delivered')]
  const kinds = [...new Set(events.map(({ event }) => event))].sort()
  report.figure('events: accepted, delivered', `${accepted.length}, ${delivered.length}`)
  assert.deepEqual(kinds, ['accepted', 'delivered'])
  assert.deepEqual([accepted.length, delivered.length], [rows, rows])

  const sums = (
    await database.query(
      `SELECT sum(accepted_outgoing) AS accepted, sum(delivered_smtp) AS delivered FROM figures
        JOIN figure_scopes ON figure_scopes.no = figures.scope
        WHERE domain_name = '' AND split = $1 AND unit = $2`,
      [SPLIT_NUMBERS.none, UNIT_NUMBERS.hour],
    )
  ).rows[0]
  report.figure('counters: accepted, delivered', `${sums.accepted}, ${sums.delivered}`)
  assert.deepEqual([Number(sums.accepted), Number(sums.delivered)], [rows, rows])

  const posts = receiver.posts.map(({ body }) => body['event-data'].id as string)
  const posted = new Set(posts)
  const unposted = events.filter(({ id }) => !posted.has(id))
  report.figure('events posted, posts repeated', `${posted.size}, ${posts.length - posted.size}`)
  assert.deepEqual(unposted, [], 'events that were not posted')
  assert.equal(posted.size, events.length, 'nothing else was posted')
}
