import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { DEFAULT_OPTIONS } from '../record/options.ts'
import type { Draft } from '../request/draft.ts'
import { loadFacts, type SendFactsParts } from './send-facts.ts'

const DOMAIN = { id: 'd1', accountId: 'a1', name: 'example.com', type: 'custom' } as Domain
const OTHER = { id: 'd2', accountId: 'a2', name: 'other.example', type: 'custom' } as Domain
const DRAFT = {
  from: [parseMailbox('a@example.com')],
  recipients: [parseMailbox('b@example.org')],
  tags: [],
  template: null,
  options: DEFAULT_OPTIONS,
} as unknown as Draft

const partsOf = (changes: Partial<SendFactsParts> = {}): SendFactsParts => ({
  accounts: { byId: () => null },
  domains: { byName: (name) => [DOMAIN, OTHER].find((domain) => domain.name === name) ?? null },
  allowUnverified: false,
  queueLimits: { disabledUntil: () => 0 },
  limits: { refuses: () => false },
  sandbox: { mayReceive: () => assert.fail('not a sandbox domain') },
  sources: { mayUse: () => false, hasPool: () => false },
  relays: { mayAsk: () => assert.fail('no relay requested') },
  secondaryKeys: { find: () => assert.fail('no key requested') },
  templates: { choose: () => assert.fail('no template requested') },
  tags: { known: () => ({ unknown: new Set(), newMax: 0 }) },
  listDomains: { get: () => new Set() },
  lists: { listsAmong: () => assert.fail('no lists') },
  habits: {
    timeZones: () => assert.fail('no time zone requested'),
    bestTimes: () => assert.fail('no time requested'),
  },
  httpClient: { fault: () => assert.fail('no archive requested') },
  ...changes,
})

test('facts that are in memory are there at once, and nothing else is looked up', () => {
  const facts = loadFacts(partsOf(), DRAFT, DOMAIN, 0)
  assert.ok(!(facts instanceof Promise))
  assert.deepEqual([facts.domain, facts.recipientsAllowed, facts.template], [DOMAIN, true, null])
})

test('facts that have to be loaded are waited for together', async () => {
  const from = ['a@example.com', 'b@other.example', 'c@nowhere.example'].map(parseMailbox)
  const template = { name: 'x', version: null, text: false, variables: {} }
  const chosen = { name: 'x', version: 'v1', source: '', headers: {} }
  const version = { id: 'i', tag: 'v1', engine: 'handlebars', content: '', headers: {} } as const
  const found = { templateName: 'x', version, source: { key: 'k', content: '', headers: {} } }
  const parts = partsOf({
    queueLimits: { disabledUntil: async () => 7 },
    templates: { choose: async () => found },
  })
  const facts = await loadFacts(parts, { ...DRAFT, from, template }, DOMAIN, 0)
  assert.deepEqual([facts.queueDisabledUntil, facts.template], [7, chosen])
  assert.equal(facts.foreignAuthor, 'other.example')
  const others = ['a@example.com', 'c@nowhere.example'].map(parseMailbox)
  assert.equal((await loadFacts(partsOf(), { ...DRAFT, from: others }, DOMAIN, 0)).foreignAuthor, null)
})

test('a template that does not exist is a fact; a database that is away is not', async () => {
  const draft = { ...DRAFT, template: { name: 'x', version: null, text: false, variables: {} } }
  const missing = new BadRequest("template 'x' not found")
  const loaded = await loadFacts(
    partsOf({ templates: { choose: () => Promise.reject(missing) } }),
    draft,
    DOMAIN,
    0,
  )
  assert.equal(loaded.template, missing)
  const broken = partsOf({ templates: { choose: () => Promise.reject(new Error('away')) } })
  await assert.rejects(async () => loadFacts(broken, draft, DOMAIN, 0), /away/)
})

test('a domain that was deleted, or made again, while the request was read is not found', () => {
  for (const current of [null, { ...DOMAIN, id: 'd9' }]) {
    const parts = partsOf({ domains: { byName: () => current } })
    assert.throws(() => loadFacts(parts, DRAFT, DOMAIN, 0), NotFound)
  }
})
