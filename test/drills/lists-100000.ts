/**
 * A list of 100,000 members: uploaded through the API in 100 calls, then one post expanded to a delivery each.
 * The second part works on the database itself, with delivery rows like those of a real post.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { systemClock } from '../../src/base/clock.ts'
import { newId } from '../../src/base/ids.ts'
import { listHeaders } from '../../src/lists/expand.ts'
import {
  createExpansionJob,
  expansionStatement,
  type InsertDeliveries,
} from '../../src/lists/expansion-job.ts'
import type { List } from '../../src/lists/list.ts'
import { createListStore } from '../../src/lists/store.ts'
import type { DeliveryRow, MessageRow } from '../../src/store/schema.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { insert, type Store } from '../../src/store/store.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'A list of 100,000 members: upload in 100 calls, one post to all'

const CALLS = 100
const PER_CALL = 1_000
const MEMBERS = CALLS * PER_CALL
const UPLOAD_AIM_MS = 60_000
const ACCEPTANCE_AIM_MS = 1_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  try {
    const service = await startProcess(ownAddress(), {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_RATE_LIMIT: 'off',
    })
    const address = `all@${service.domain}`
    await upload(service, address, report).finally(() => service.end('SIGTERM'))
    const store = await openSqlite(folder)
    await expand(store, address, report).finally(() => store.close())
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function call(service: ServiceProcess, path: string, form?: Record<string, string>) {
  const response = await fetch(`${service.url}/v3/lists${path}`, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.equal(response.status, 200)
  return (await response.json()) as { list: { members_count: number } }
}

async function upload(service: ServiceProcess, address: string, report: DrillReport): Promise<void> {
  await call(service, '', { address })
  const begun = performance.now()
  for (let at = 0; at < CALLS; at++) {
    const members = Array.from({ length: PER_CALL }, (_, n) => ({
      address: `m${at * PER_CALL + n}@example.org`,
      name: `Member ${n}`,
      vars: { number: n },
    }))
    await call(service, `/${address}/members.json`, { members: JSON.stringify(members) })
  }
  report.figure('100 calls answered', performance.now() - begun, 'ms')
  while ((await call(service, `/${address}`)).list.members_count < MEMBERS) await sleep(50)
  const tookMs = performance.now() - begun
  report.figure('all members in the list', tookMs, 'ms')
  assert.ok(tookMs < UPLOAD_AIM_MS, `the upload took ${tookMs} ms, aim ${UPLOAD_AIM_MS}`)
}

async function expand(store: Store, address: string, report: DrillReport): Promise<void> {
  const lists = createListStore(store)
  const list = (await lists.byKey(address)) as List
  const headers = listHeaders(list, { way: 'api', headers: [] })
  const begun = performance.now()
  const post = { domainId: 'domain', messagePk: 'post', list, headers, exclude: [] }
  await store.commit([insert('messages', messageRow(list)), expansionStatement(post, Date.now())])
  const acceptedMs = performance.now() - begun
  report.figure('post accepted', acceptedMs, 'ms')
  assert.ok(acceptedMs < ACCEPTANCE_AIM_MS, `acceptance took ${acceptedMs} ms, aim ${ACCEPTANCE_AIM_MS}`)
  const job = createExpansionJob({
    store,
    lists,
    clock: systemClock,
    owner: 'drill',
    insertDeliveries,
    inserted: () => {},
  })
  while (await job.runOne());
  report.figure('a delivery for everyone', performance.now() - begun, 'ms')
  const { count, different } = await store.db
    .selectFrom('deliveries')
    .select((of) => [
      of.fn.countAll<number>().as('count'),
      of.fn.count<number>('recipient').distinct().as('different'),
    ])
    .executeTakeFirstOrThrow()
  assert.deepEqual([Number(count), Number(different)], [MEMBERS, MEMBERS])
}

const messageRow = (list: List): MessageRow => ({
  id: 'post',
  account_id: list.accountId,
  domain_id: 'domain',
  domain_name: list.domainName,
  message_id: 'post@example.com',
  summary_json: '{}',
  options_json: '{}',
  content_kind: 'parts',
  content: Buffer.alloc(10_000, 'x'),
  content_blob: null,
  blobs_json: '[]',
  created_at: Date.now(),
})

/** A delivery and an event of usual size. */
const insertDeliveries: InsertDeliveries = (expansion, members) =>
  members.flatMap((member) => {
    const now = Date.now()
    const delivery: DeliveryRow = {
      id: newId(now),
      account_id: expansion.accountId,
      domain_id: expansion.domainId,
      message_pk: expansion.messagePk,
      recipient: member.address,
      recipient_domain: member.domain,
      recipient_header: `${member.name} <${member.address}>`,
      variables_json: JSON.stringify(member.vars),
      list_json: null,
      state: 'queued',
      due_at: now,
      expires_at: now,
      attempts: 0,
      lease_owner: null,
      lease_token: null,
      lease_until: null,
      reason: 'new',
      last_code: null,
      last_reply: null,
      created_at: now,
      updated_at: now,
    }
    const event = {
      id: newId(now),
      account_id: expansion.accountId,
      domain_name: 'drill',
      event: 'accepted',
      timestamp_us: now * 1000,
      recipient: member.address,
      message_id: 'post@example.com',
      payload_json: 'x'.repeat(900),
    }
    return [insert('deliveries', delivery), insert('events', event)]
  })
