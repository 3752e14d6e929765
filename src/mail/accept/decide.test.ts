import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadRequest } from '../../base/process/errors.ts'
import { type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { DEFAULT_OPTIONS, type MessageOptions } from '../record/options.ts'
import type { Draft } from '../request/draft.ts'
import { type Accepted, decide } from './decide.ts'
import type { SendFacts } from './send-facts.ts'

const NOW = 1_780_315_200_000
const HOUR = 3_600_000
const FROM = parseMailbox('shop@example.com')
const KEY = { domain: 'example.com', selector: 'k2', given: 'example.com/k2' }
const TEMPLATE = { name: 'welcome', version: 'v1', source: '<p></p>', headers: {} }

const domain = (changes: Partial<Domain> = {}) =>
  ({ id: 'd1', accountId: 'a1', name: 'example.com', state: 'active', type: 'custom', ...changes }) as Domain

const addresses = (...texts: string[]): Mailbox[] => texts.map(parseMailbox)

function draftOf({
  options = {},
  ...changes
}: Omit<Partial<Draft>, 'options'> & { options?: object } = {}): Draft {
  return {
    from: [FROM],
    to: addresses('ann@example.org'),
    cc: [],
    recipients: addresses('ann@example.org'),
    subject: 'Hello',
    body: { kind: 'parts', text: 'Hello', html: null, amp: null, files: [] },
    headers: [],
    userVariables: {},
    tags: [],
    template: null,
    recipientVariables: null,
    options: { ...DEFAULT_OPTIONS, ...options } as MessageOptions,
    ...changes,
  }
}

const factsOf = (changes: Partial<SendFacts> = {}): SendFacts => ({
  domain: domain(),
  accountMaySend: true,
  allowUnverified: false,
  queueDisabledUntil: 0,
  limitReached: false,
  foreignAuthor: null,
  recipientsAllowed: true,
  sendingIpAllowed: true,
  archiveAllowed: true,
  poolExists: true,
  relayAllowed: true,
  secondaryKeyExists: true,
  template: null,
  tags: { unknown: new Set(), newMax: 0 },
  lists: new Set(),
  bestTimes: new Map(),
  ...changes,
})

function accepted(draft: Draft, facts: SendFacts): Accepted {
  const decision = decide(draft, facts, NOW)
  assert.ok(decision.kind === 'accepted', String('error' in decision && decision.error))
  return decision
}

const UNKNOWN_TEMPLATE = new BadRequest("template 'welcome' not found")
const ARCHIVE = 'http://10.0.0.1/'
const ELSEWHERE = parseMailbox('x@other.example')

/** In the order of messages.md rule 1; each row is one fault, its error, and what is wrong in draft and facts. */
const FAULTS: [
  fault: string,
  name: string,
  text: RegExp,
  facts: Partial<SendFacts>,
  draft?: Partial<Draft>,
][] = [
  ['domain disabled', 'Forbidden', /The domain is disabled$/, { domain: domain({ state: 'disabled' }) }],
  ['domain unverified', 'Forbidden', /is unverified/, { domain: domain({ state: 'unverified' }) }],
  [
    'queue disabled',
    'TooManyRequests',
    /^Domain example.com is not allowed to send: You have too many messages in queue, try again after 91 seconds$/,
    { queueDisabledUntil: NOW + 90_001 },
  ],
  [
    'monthly limit reached',
    'Forbidden',
    /^Domain example.com is not allowed to send: The custom message limit for this month has been reached.$/,
    { limitReached: true },
  ],
  [
    "another account's From domain",
    'Forbidden',
    /^From domain other.example belongs to another account$/,
    { foreignAuthor: 'other.example' },
    { from: [FROM, ELSEWHERE] },
  ],
  ['sandbox recipient', 'Forbidden', /Sandbox subdomains are for test/, { recipientsAllowed: false }],
  [
    'sending IP',
    'Forbidden',
    /^Rejected: IP 192.0.2.9 can't be used/,
    { sendingIpAllowed: false },
    draftOf({ options: { sendingIp: '192.0.2.9' } }),
  ],
  [
    'pool',
    'BadRequest',
    /^p1 is not a valid IP pool/,
    { poolExists: false },
    draftOf({ options: { sendingIpPool: 'p1' } }),
  ],
  [
    'secondary key',
    'BadRequest',
    /^example.com\/k2 is not a valid secondary dkim domain name$/,
    { secondaryKeyExists: false },
    draftOf({ options: { secondaryDkim: KEY } }),
  ],
  [
    'archive at an inner address',
    'BadRequest',
    /^http:\/\/10\.0\.0\.1\/ is not a valid url \(value of 'o:archive-to'\)$/,
    { archiveAllowed: false },
    draftOf({ options: { archiveTo: ARCHIVE } }),
  ],
  ['template', 'BadRequest', /^template 'welcome' not found$/, { template: UNKNOWN_TEMPLATE }],
  [
    'subject of the template',
    'BadRequest',
    /^subject parameter is missing$/,
    { template: TEMPLATE },
    { subject: null },
  ],
]

const ALL_OPTIONS = { sendingIp: '192.0.2.9', sendingIpPool: 'p1', secondaryDkim: KEY, archiveTo: ARCHIVE }

for (const [at, [fault, name, text, facts, draft]] of FAULTS.entries()) {
  test(`rejected: ${fault}, alone and with all faults that are checked later`, () => {
    const alone = decide({ ...draftOf(), ...draft }, factsOf(facts), NOW)
    // The first rows come last, so that of two rows with one fact the earlier fault is set.
    const later = Object.assign(
      {},
      ...FAULTS.slice(at)
        .map(([, , , each]) => each)
        .reverse(),
    )
    const everything = draftOf({ from: [FROM, ELSEWHERE], subject: null, options: ALL_OPTIONS })
    for (const decision of [alone, decide(everything, factsOf(later), NOW)]) {
      assert.ok(decision.kind === 'rejected')
      assert.deepEqual(
        [decision.error.name, text.test(decision.error.message)],
        [name, true],
        decision.error.message,
      )
    }
  })
}

test('a fact that the draft does not need is no fault', () => {
  const facts = {
    poolExists: false,
    sendingIpAllowed: false,
    secondaryKeyExists: false,
    archiveAllowed: false,
  }
  assert.equal(decide(draftOf(), factsOf(facts), NOW).kind, 'accepted')
  const unverified = factsOf({ domain: domain({ state: 'unverified' }), allowUnverified: true })
  assert.equal(decide(draftOf(), unverified, NOW).kind, 'accepted')
  assert.equal(decide(draftOf(), factsOf({ queueDisabledUntil: NOW }), NOW).kind, 'accepted', 'enabled again')
  const others = addresses('x@other.example', 'y@nowhere.example')
  assert.equal(decide(draftOf({ from: others }), factsOf(), NOW).kind, 'accepted')
  const withSubject = factsOf({ template: { ...TEMPLATE, headers: { Subject: 'S' } } })
  assert.equal(accepted(draftOf({ subject: null }), withSubject).template?.name, 'welcome')
})

test('every recipient has a copy that is due at the time of the message, or at its own', () => {
  const recipients = addresses('ann@example.org', 'Bob@example.org')
  const now = accepted(draftOf({ recipients }), factsOf())
  assert.deepEqual(
    now.direct.map(({ due, variables }) => [due.dueAt, variables]),
    [
      [NOW, null],
      [NOW, null],
    ],
  )
  assert.equal(now.lastDueAt, NOW)
  const options = { deliveryTime: NOW + HOUR, optimizeHours: 24, deliverWithinMs: HOUR }
  const own = factsOf({ bestTimes: new Map([['bob@example.org', NOW + 5 * HOUR]]) })
  const later = accepted(draftOf({ recipients, options }), own)
  assert.deepEqual(
    later.direct.map(({ due }) => [due.dueAt, due.expiresAt]),
    [
      [NOW + HOUR, NOW + 2 * HOUR],
      [NOW + 5 * HOUR, NOW + 6 * HOUR],
    ],
  )
  assert.equal(later.lastDueAt, NOW + 5 * HOUR)
})

test('in a batch each copy has its variables, and a list has none', () => {
  const recipients = addresses('ann@example.org', 'Bob@example.org', 'team@example.com')
  const recipientVariables = new Map([['bob@example.org', { name: 'Bob' }]])
  const facts = factsOf({ lists: new Set(['team@example.com']) })
  const { direct, viaLists } = accepted(draftOf({ recipients, recipientVariables }), facts)
  assert.deepEqual(
    direct.map(({ variables }) => variables),
    [{}, { name: 'Bob' }],
  )
  assert.deepEqual(
    viaLists.map(({ recipient, variables }) => [recipient.local, variables]),
    [['team', null]],
  )
})

test('new tags over the limit are dropped', () => {
  const facts = factsOf({ tags: { unknown: new Set(['b', 'c']), newMax: 1 } })
  const { tags, newTags } = accepted(draftOf({ tags: ['A', 'B', 'c'] }), facts)
  assert.deepEqual([tags, newTags], [['A', 'B'], ['B']])
})
