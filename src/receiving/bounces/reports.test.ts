/** What a report does to its delivery, on both databases; the forms of reports are tested in src/protocols/reports/dsn. */

import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { NOW_MS, testMessage } from '../../../test/support/events.ts'
import { FAULTS, type Subject } from '../../../test/support/reports/mail.ts'
import { COMPLAINTS, HARMLESS, NO_COMPLAINTS, NO_REPORTS } from '../../../test/support/reports/other-mail.ts'
import { STATUS_FORMATS } from '../../../test/support/reports/status-reports.ts'
import { TEXT_FORMATS } from '../../../test/support/reports/text-reports.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { newId } from '../../base/ids.ts'
import { deliveryToken, returnPathOf } from '../../mail/deliver/attempt/return-path.ts'
import type { KnownDelivery } from '../../mail/stored/known-deliveries.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { insert, type Store, StoreUnavailable } from '../../platform/store/store.ts'
import { createEventRecorder, type EventRecord } from '../../watching/events/event.ts'
import { readReportMail } from '../sessions/read-report-mail.ts'
import { classify } from './classify.ts'
import { createReports, readReturned } from './reports.ts'
import { loadRules } from './rules.ts'

const sealer = createSealer('a secret of at least 32 characters!!')
const mac = (data: Uint8Array) => sealer.mac('return-path', data)
const rules = loadRules(null)
const OWNER = { id: 'domain-1', accountId: 'account-1' }
const DAY_MS = 86_400_000

const DELIVERY: KnownDelivery = {
  deliveryId: newId(NOW_MS),
  accountId: OWNER.accountId,
  domainId: OWNER.id,
  domainName: 'mg.example.com',
  recipient: 'alice@example.org',
  recipientDomain: 'example.org',
  about: testMessage(),
  state: 'delivered',
  deliveredAt: NOW_MS,
  recipientProvider: 'Gmail',
  sendingIp: '203.0.113.9',
  attempts: 3,
  primaryDkim: 'k1._domainkey.mg.example.com',
  listSid: null,
}

const TOKEN = deliveryToken(DELIVERY.deliveryId, mac)

const SUBJECT: Subject = {
  recipient: DELIVERY.recipient,
  returnPath: returnPathOf(TOKEN, 'mg.example.com'),
  header: `From: Shop <shop@mg.example.com>\r\nX-Service-Sid: ${TOKEN}`,
}

function rigOf(store: Store, found: Partial<KnownDelivery> | null = {}) {
  const clock = createTestClock(NOW_MS + 3_600_000)
  const notified: EventRecord[] = []
  const reports = createReports({
    store,
    deliveries: {
      find: async (id) => (id === DELIVERY.deliveryId && found ? { ...DELIVERY, ...found } : null),
    },
    mac,
    classify: (failure) => classify(rules, failure),
    clock,
    recorder: createEventRecorder([
      {
        of: null,
        rows(events) {
          notified.push(...events)
          return []
        },
      },
    ]),
  })
  const take = async (raw: string | undefined, to: string | null = DELIVERY.deliveryId) =>
    reports.take(readReturned(await readReportMail(Buffer.from(raw ?? ''))), to)
  const events = async () => {
    const rows = await store.db.selectFrom('events').select('payload_json').orderBy('seq').execute()
    return rows.map(({ payload_json }) => JSON.parse(payload_json) as Record<string, unknown>)
  }
  const entries = async () => {
    const rows = await store.db.selectFrom('suppressions').select(['kind', 'address', 'code']).execute()
    return rows.map(({ kind, address, code }) => `${kind} ${address} ${code}`.trim())
  }
  return { take, events, entries, notified, clock }
}

const fault = (name: string) => FAULTS.find((one) => one.name === name) as (typeof FAULTS)[number]
const bounce = (name = 'unknown') => STATUS_FORMATS['postfix']?.(SUBJECT, fault(name))

eachStore(
  'a bounce is an event of its delivery, with its followers notified, and an entry if the mailbox is gone',
  async (store) => {
    const rig = rigOf(store)
    assert.equal(await rig.take(bounce()), 'bounced')
    const [event] = await rig.events()
    assert.deepEqual(
      rig.notified.map(({ id }) => id),
      [event?.['id']],
    )
    // Field by field: as the delivered event, with what a failure adds (events.md section 2).
    const { id, timestamp, ...fields } = event ?? {}
    const { summary } = DELIVERY.about
    assert.match(String(id), /^[-\w]{22}$/)
    assert.equal(timestamp, NOW_MS / 1000 + 3_600)
    assert.deepEqual(fields, {
      event: 'failed',
      'log-level': 'error',
      severity: 'permanent',
      reason: 'generic',
      'i-classification-rule-id': 'generic-no-user',
      recipient: DELIVERY.recipient,
      'recipient-domain': 'example.org',
      'recipient-provider': 'Gmail',
      tags: summary.tags,
      campaigns: [],
      'user-variables': summary.userVariables,
      message: {
        headers: {
          to: summary.to,
          from: summary.from,
          subject: summary.subject,
          'message-id': DELIVERY.about.messageId,
        },
        attachments: summary.attachments,
        size: summary.sizeBytes,
      },
      storage: {
        key: DELIVERY.about.storageKey,
        url: DELIVERY.about.storageUrl,
        region: 'default',
        env: 'production',
      },
      envelope: {
        sender: 'shop@mg.example.com',
        targets: DELIVERY.recipient,
        transport: 'smtp',
        'sending-ip': '203.0.113.9',
      },
      flags: {
        'is-authenticated': true,
        'is-routed': false,
        'is-big': false,
        'is-system-test': false,
        'is-test-mode': false,
        'is-delayed-bounce': true,
      },
      'primary-dkim': 'k1._domainkey.mg.example.com',
      'delivery-status': {
        code: 550,
        'attempt-no': 3,
        message: '5.1.1 <alice@example.org>: Recipient address rejected: User unknown in local table',
        description: '',
        'session-seconds': 0,
        'enhanced-code': '5.1.1',
        'mx-host': 'mx.example.org',
        'bounce-type': 'hard',
      },
    })
    assert.deepEqual(await rig.entries(), ['bounces alice@example.org 550'])
  },
)

eachStore('full mailboxes, policy and size make an event and no entry', async (store) => {
  const rig = rigOf(store)
  for (const name of ['full', 'spam', 'large']) assert.equal(await rig.take(bounce(name)), 'bounced', name)
  const types = (await rig.events()).map(
    ({ 'delivery-status': status }) => (status as Record<string, unknown>)['bounce-type'],
  )
  assert.deepEqual(types, ['soft', 'soft', 'soft'])
  assert.deepEqual(await rig.entries(), [])
})

eachStore(
  'without a status the words decide; a mail given up after days is no word against the mailbox',
  async (store) => {
    const rig = rigOf(store)
    assert.equal(
      await rig.take(TEXT_FORMATS['notes']?.(SUBJECT, '450 4.4.7 delivery time expired')),
      'bounced',
    )
    assert.deepEqual(await rig.entries(), [])
    assert.equal(await rig.take(TEXT_FORMATS['notes']?.(SUBJECT, 'No such user here')), 'bounced')
    assert.deepEqual(await rig.entries(), ['bounces alice@example.org 550'])
  },
)

eachStore('the allowlist keeps an address off the bounces', async (store) => {
  const row = insert('suppressions', {
    domain_id: OWNER.id,
    kind: 'whitelists',
    address: 'example.org',
    account_id: OWNER.accountId,
    code: '',
    detail: '',
    created_at: 1,
  })
  await store.commit([row])
  const rig = rigOf(store)
  assert.equal(await rig.take(bounce()), 'bounced')
  assert.deepEqual(await rig.entries(), ['whitelists example.org'])
})

eachStore(
  'a report counts once, also when two come at the same moment, and four failures at the most',
  async (store) => {
    const rig = rigOf(store)
    const verdicts = await Promise.all([rig.take(bounce()), rig.take(bounce()), rig.take(bounce())])
    assert.deepEqual(verdicts.sort(), ['bounced', 'repeated', 'repeated'])
    const rest = []
    for (const name of ['closed', 'full', 'spam', 'large', 'nodns']) rest.push(await rig.take(bounce(name)))
    assert.deepEqual(rest, ['bounced', 'bounced', 'bounced', 'repeated', 'repeated'])
    assert.equal((await rig.events()).length, 4)
    assert.equal(await rig.take(COMPLAINTS['minimal']?.(SUBJECT)), 'complained')
    assert.equal(await rig.take(COMPLAINTS['fraud']?.(SUBJECT), null), 'repeated')
    assert.equal((await rig.events()).length, 5)
  },
)

eachStore('marks of reports are removed when they are old', async (store) => {
  const rig = rigOf(store)
  await rig.take(bounce())
  rig.clock.leap(91 * DAY_MS)
  await rig.take(bounce('full'))
  const marks = await store.db.selectFrom('delivery_reports').select('status').execute()
  assert.deepEqual(marks, [{ status: '5.2.2' }])
})

eachStore('a complaint finds its delivery by what the service wrote, wherever it was sent', async (store) => {
  const cases = Object.entries(COMPLAINTS)
  for (const [name, write] of cases) {
    const rig = rigOf(store)
    assert.equal(
      await rig.take(write(SUBJECT), null),
      name === cases[0]?.[0] ? 'complained' : 'repeated',
      name,
    )
  }
  const rig = rigOf(store)
  assert.deepEqual(await rig.entries(), ['complaints alice@example.org'])
  const forged = {
    ...SUBJECT,
    returnPath: `bounce+${'a'.repeat(39)}@mg.example.com`,
    header: 'X-Service-Sid: abc',
  }
  for (const write of Object.values(COMPLAINTS))
    assert.equal(await rig.take(write(forged), null), 'unknown-delivery')
})

eachStore(
  'a bounce whose address names no delivery finds it by what it returns of the mail, and only by an authentic token',
  async (store) => {
    const rig = rigOf(store)
    const relayed = { ...SUBJECT, returnPath: '0102018f-000000@relay.example' }
    const edit = (raw: string) =>
      raw.replaceAll(
        TOKEN,
        TOKEN.replace(/^./, (first) => (first === 'a' ? 'b' : 'a')),
      )
    const raws = [
      ...Object.values(STATUS_FORMATS).map((write) => write(relayed, fault('unknown'))),
      ...Object.values(TEXT_FORMATS).map((write) => write(relayed, '550 5.1.1 No such user here')),
    ]
    const naming = raws.filter((raw) => raw.includes(TOKEN))
    assert.ok(naming.length >= 30, String(naming.length))
    for (const raw of raws) {
      assert.equal(await rig.take(edit(raw), null), 'unknown-delivery', raw)
      if (!naming.includes(raw)) assert.equal(await rig.take(raw, null), 'unknown-delivery', raw)
    }
    assert.deepEqual([await rig.events(), await rig.entries()], [[], []])
    const verdicts = []
    for (const raw of naming) verdicts.push(await rig.take(raw, null))
    assert.ok(verdicts.every((verdict) => verdict === 'bounced' || verdict === 'repeated'))
    assert.deepEqual(await rig.entries(), ['bounces alice@example.org 550'])
    assert.equal((await rig.events()).length, verdicts.filter((verdict) => verdict === 'bounced').length)
  },
)

eachStore('states of the delivery decide', async (store) => {
  const cases = [
    [{ state: 'sending' }, 'too-early'],
    [{ state: 'bounced' }, 'failed-before'],
    [{ state: 'expired' }, 'failed-before'],
    [{ state: 'suppressed' }, 'failed-before'],
    [null, 'unknown-delivery'],
    // The server took the mail, but its answer was lost: the next attempt is stopped by the entry.
    [{ state: 'queued' }, 'bounced'],
  ] as const
  for (const [found, verdict] of cases) {
    assert.equal(await rigOf(store, found).take(bounce()), verdict, JSON.stringify(found))
  }
})

eachStore('what is no failure and no complaint leaves no trace', async (store) => {
  const rig = rigOf(store)
  for (const [name, write] of Object.entries({ ...HARMLESS, ...NO_COMPLAINTS, ...NO_REPORTS })) {
    const verdict = await rig.take(write(SUBJECT))
    assert.ok(verdict === 'harmless' || verdict === 'no-report', `${name}: ${verdict}`)
  }
  assert.deepEqual([await rig.events(), await rig.entries(), rig.notified], [[], [], []])
})

eachStore('nothing is half written', async (store) => {
  const failing = { ...store, commit: () => Promise.reject(new StoreUnavailable('away')) }
  await assert.rejects(rigOf(failing).take(bounce()), StoreUnavailable)
  assert.equal(await rigOf(store).take(bounce()), 'bounced')
})
