/**
 * A subaccount with 100,000 messages is closed while its neighbour sends 20 messages a second: everything that it had is
 * removed, and no call of the neighbour waits long.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { rowsNaming } from '../support/account-traces.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'

export const title = 'A subaccount with 100,000 messages is removed while its neighbour sends'

const MESSAGES = 100_000
const PER_CALL = 1_000
const NEIGHBOUR_EVERY_MS = 50
const NEIGHBOUR_P99_MAX_MS = 250
const REMOVAL_MAX_MS = 15 * 60_000
/** A removal in one transaction lets one message in, or two; in portions it was 19 to 48 with 500 messages. */
const MEANWHILE_MIN = 5

/**
 * `messages`: how many the subaccount has; `report` gets the figures. `p99MaxMs`: a limit for the neighbour's calls where
 * the machine has nothing else to do.
 */
export async function removeUnderLoad(
  report: DrillReport,
  messages: number,
  p99MaxMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  try {
    const service = await startProcess(ownAddress(), {
      SENDWRIGHT_DATA: folder,
      SENDWRIGHT_RATE_LIMIT: 'off',
    })
    let gone = ''
    try {
      gone = await subaccount(service, 'gone')
      const stays = await subaccount(service, 'stays')
      await fill(service, gone, messages, report)
      await close(service, gone)
      const p99 = await neighbourSends(service, stays, () => isRemoved(folder, gone), report)
      assert.ok(p99 <= p99MaxMs, 'the neighbour is not disturbed')
    } finally {
      await service.end('SIGTERM')
    }
    const store = await openSqlite(folder)
    const left = await rowsNaming(
      store,
      [gone, 'gone.example.com'],
      ['accounts', 'audit', 'account_changes', 'key_requests'],
    )
    await store.close()
    assert.deepEqual([...left.keys()], [])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const run = (report: DrillReport) => removeUnderLoad(report, MESSAGES, NEIGHBOUR_P99_MAX_MS)

async function call(
  service: ServiceProcess,
  method: string,
  path: string,
  { id, form }: { id?: string; form?: Record<string, string> } = {},
) {
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: AUTHORIZATION, ...(id && { 'x-service-on-behalf-of': id }) },
    ...(form && { body: new URLSearchParams(form) }),
  })
  const text = await response.text()
  assert.equal(response.status, 200, `${path}: ${text}`)
  return JSON.parse(text)
}

async function subaccount(service: ServiceProcess, name: string): Promise<string> {
  const made = await call(service, 'POST', '/v5/accounts/subaccounts', { form: { name } })
  const { id } = made.subaccount
  await call(service, 'POST', '/v4/domains', { id, form: { name: `${name}.example.com` } })
  return id
}

const send = (service: ServiceProcess, id: string, name: string, to: string) =>
  call(service, 'POST', `/v3/${name}.example.com/messages`, {
    id,
    form: { from: `a@${name}.example.com`, to, subject: 'Hello', text: 'Hi.', 'o:tag': 'one' },
  })

/** One message for each, in test mode: each has its rows and events, and nothing is delivered. */
async function fill(
  service: ServiceProcess,
  id: string,
  messages: number,
  report: DrillReport,
): Promise<void> {
  const path = '/v3/gone.example.com/messages'
  const form = { from: 'a@gone.example.com', subject: 'Hello', text: 'Hi.', 'o:testmode': 'yes' }
  for (let sent = 0; sent < messages; sent += PER_CALL) {
    const calls = Array.from({ length: Math.min(PER_CALL, messages - sent) }, (_, index) => sent + index)
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let next = calls.pop(); next !== undefined; next = calls.pop())
          await call(service, 'POST', path, { id, form: { ...form, to: `u${next}@example.org` } })
      }),
    )
    if (sent % 10_000 === 0) report.note(`${sent} messages`)
  }
}

const close = (service: ServiceProcess, id: string) =>
  call(service, 'DELETE', '/v5/accounts/subaccounts', { id })

/** The first pass is complete: what remains is to look again. */
async function isRemoved(folder: string, id: string): Promise<boolean> {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true, timeout: 5_000 })
  try {
    const note = database
      .prepare('SELECT due_at - changed_at AS ms FROM account_changes WHERE account_id = ?')
      .get(id)
    return Number(note?.['ms']) === 60_000
  } finally {
    database.close()
  }
}

async function neighbourSends(
  service: ServiceProcess,
  id: string,
  isDone: () => Promise<boolean>,
  report: DrillReport,
): Promise<number> {
  const tookMs: number[] = []
  const begun = performance.now()
  while (!(await isDone())) {
    assert.ok(performance.now() - begun < REMOVAL_MAX_MS, 'the removal ends')
    const at = performance.now()
    await send(service, id, 'stays', 'reader@example.org')
    tookMs.push(performance.now() - at)
    await sleep(NEIGHBOUR_EVERY_MS)
  }
  report.figure('removed in', (performance.now() - begun) / 1_000, 's')
  const sorted = tookMs.toSorted((a, b) => a - b)
  const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0
  report.figure('messages of the neighbour', tookMs.length)
  report.figure('its accept p99', p99, 'ms')
  report.figure('its slowest', sorted.at(-1) ?? 0, 'ms')
  assert.ok(tookMs.length >= MEANWHILE_MIN, 'the neighbour sends meanwhile')
  return p99
}
