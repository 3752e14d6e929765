import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createTestList } from '../../../test/support/lists.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import { domainOfRow, newDomainRow } from '../domains/domain.ts'
import { decidePost, type InboundPost, judgePost, listHeaders, listIdsOf, type Post } from './expand.ts'
import { ACCESS_LEVELS, defaultHeaderId, type List } from './list.ts'
import { createLists } from './service.ts'

const list: List = {
  id: 'L',
  accountId: 'own',
  domainName: 'mg.example.com',
  address: 'devs@mg.example.com',
  name: 'Devs',
  description: '',
  accessLevel: 'members',
  replyPreference: 'list',
  headerId: 'devs.mg.example.com',
  ...{ title: '', language: 'en', isOptIn: false, isFormOpen: false, formRedirect: null },
  ...{ confirmDays: 7, confirmTemplate: null, pageTemplate: null, mailsDay: 0, mailsCount: 0 },
  membersCount: 0,
  version: 0,
  createdAt: 0,
}
const BY_CALL = { source: 'api', at: 0 } as const
const nothing = { authorIsSubscribed: false, cameThroughList: false }
const inbound: InboundPost = {
  way: 'inbound',
  author: parseMailbox('Ann Lee <a@example.org>'),
  origin: 'proven',
  headers: [],
  envelopeSender: 'a@example.org',
}
const own: Post[] = [
  { way: 'api', accountId: 'own', headers: [] },
  { way: 'smtp', accountId: 'own', headers: [], envelopeSender: 'x@mg.example.com' },
]
const foreign: Post = { way: 'api', accountId: 'other', headers: [] }

test('who may post, by access level', () => {
  const posts: [what: string, post: Post, subscribed: boolean, allowed: readonly string[]][] = [
    ['own API', own[0] as Post, false, ACCESS_LEVELS],
    ['own SMTP', own[1] as Post, false, ACCESS_LEVELS],
    ['API of another account', foreign, false, ['everyone']],
    ['outside, subscribed', inbound, true, ['members', 'everyone']],
    ['outside, no member', inbound, false, ['everyone']],
    ['outside, a forged member', { ...inbound, origin: 'unproven' }, true, ['everyone']],
  ]
  for (const accessLevel of ACCESS_LEVELS) {
    for (const [what, post, authorIsSubscribed, allowed] of posts) {
      const verdict = judgePost({ ...list, accessLevel }, post, { ...nothing, authorIsSubscribed })
      assert.equal(
        verdict.kind,
        allowed.includes(accessLevel) ? 'allowed' : 'refused',
        `${accessLevel}: ${what}`,
      )
    }
  }
  assert.deepEqual(judgePost(list, inbound, nothing), {
    kind: 'refused',
    code: 550,
    reply: '5.7.1 posting to this list is not allowed',
  })
})

test('an author whose domain cannot be checked now may come again, member or not', () => {
  const member = { ...nothing, authorIsSubscribed: true }
  const unsure: InboundPost = { ...inbound, origin: 'unsure' }
  assert.equal(judgePost(list, unsure, member).kind, 'unsure')
  assert.equal(judgePost(list, unsure, nothing).kind, 'unsure', 'the answer does not tell who is a member')
  assert.equal(judgePost({ ...list, accessLevel: 'everyone' }, unsure, nothing).kind, 'allowed')
  assert.equal(judgePost({ ...list, accessLevel: 'readonly' }, unsure, member).kind, 'refused')
  assert.equal(judgePost(list, { ...unsure, envelopeSender: '' }, member).kind, 'loop', 'no reason to wait')
})

test('mail from a list, an automatic sender or a bounce is not distributed', () => {
  const everyone: List = { ...list, accessLevel: 'everyone' }
  const judge = (headers: [string, string][], more: Partial<typeof inbound> = {}, through = false) => {
    const verdict = judgePost(everyone, { ...inbound, headers, ...more } as Post, {
      ...nothing,
      cameThroughList: through,
    })
    return verdict.kind === 'loop' ? verdict.why : verdict.kind
  }
  assert.equal(judge([]), 'allowed')
  assert.equal(judge([], {}, true), 'list-id')
  assert.equal(judge([['Auto-Submitted', 'No (comment)']]), 'allowed')
  assert.equal(judge([['auto-submitted', 'auto-replied; owner-email="a@b.c"']]), 'auto-submitted')
  assert.equal(judge([], { envelopeSender: null }), 'empty-sender')
  assert.equal(judge([], { envelopeSender: '' }), 'empty-sender')
  assert.equal(judge([['X-Loop', ' DEVS@mg.example.com']]), 'x-loop')
  assert.equal(judge([['X-Loop', 'other@mg.example.com']]), 'allowed')
  for (const field of [
    ['Precedence', 'junk'],
    ['precedence', 'auto_reply'],
    ['X-Autorespond', 'yes'],
    ['Content-Type', 'multipart/report; report-type=disposition-notification'],
  ] as [string, string][])
    assert.equal(judge([field]), 'automatic', field[0])
  assert.equal(judge([['Precedence', 'list']]), 'allowed')
  assert.equal(judge([], { envelopeSender: 'MAILER-DAEMON@example.org' }), 'automatic')
  const automatic: Post = { way: 'api', accountId: 'own', headers: [['Auto-Submitted', 'auto-generated']] }
  assert.equal(judgePost(list, automatic, nothing).kind, 'loop')
})

test('List-Id is read with and without words around it', () => {
  const fields: [string, string][] = [
    ['List-Id', 'The Devs <Devs.MG.example.com>'],
    ['list-id', 'bare.example.com'],
    ['List-ID', ' <devs.mg.example.com> '],
    ['Subject', '<x.example.com>'],
  ]
  assert.deepEqual(listIdsOf(fields), ['devs.mg.example.com', 'bare.example.com'])
})

const added = (list: List, post: Pick<Post, 'way' | 'headers'>) =>
  Object.fromEntries(listHeaders(list, post).add)

test('a copy has the header fields of its list', () => {
  assert.deepEqual(added(list, { way: 'inbound', headers: [] }), {
    Sender: 'devs@mg.example.com',
    'List-Id': '<devs.mg.example.com>',
    'List-Post': '<mailto:devs@mg.example.com>',
    'List-Unsubscribe': '<%mailing_list_unsubscribe_url%>, <mailto:%mailing_list_unsubscribe_address%>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    Precedence: 'list',
    'X-Loop': 'devs@mg.example.com',
    'Reply-To': 'devs@mg.example.com',
  })
  const readonly = added({ ...list, accessLevel: 'readonly' }, { way: 'api', headers: [] })
  assert.equal(readonly['List-Post'], undefined)
  assert.equal(readonly['Reply-To'], undefined, 'readonly lists act as if the preference were sender')
})

test('Reply-To follows the preference; one set through the API is kept', () => {
  const headers: [string, string][] = [['Reply-To', 'me@example.org']]
  assert.equal(
    added({ ...list, replyPreference: 'sender' }, { way: 'inbound', headers: [] })['Reply-To'],
    undefined,
  )
  const kept = listHeaders(list, { way: 'api', headers })
  assert.equal(Object.fromEntries(kept.add)['Reply-To'], undefined)
  assert.ok(!kept.remove.includes('reply-to'))
  for (const way of ['smtp', 'inbound'] as const) {
    const replaced = listHeaders(list, { way, headers })
    assert.ok(replaced.remove.includes('reply-to'))
    assert.equal(Object.fromEntries(replaced.add)['Reply-To'], list.address)
  }
})

test("the poster's own List-Unsubscribe is kept for API and SMTP, replaced from outside", () => {
  const headers: [string, string][] = [['List-Unsubscribe', '<https://shop.example/u>']]
  for (const way of ['api', 'smtp'] as const) {
    const { add, remove } = listHeaders(list, { way, headers })
    assert.ok(!add.some(([name]) => name.startsWith('List-Unsubscribe')))
    assert.ok(!remove.includes('list-unsubscribe'))
  }
  assert.ok(listHeaders(list, { way: 'inbound', headers }).remove.includes('list-unsubscribe'))
})

test('the default List-Id is a dot-atom for any address', () => {
  for (const [address, id] of [
    ['Devs@MG.example.com', 'devs.mg.example.com'],
    ['"a b".c@example.com', '-a-b-.c.example.com'],
    ['a<x>@example.com', 'a-x-.example.com'],
    ['ü@example.com', '-.example.com'],
  ] as const) {
    assert.equal(defaultHeaderId(address), id)
  }
})

eachStore('a post is decided by who is subscribed now, and by every list of the service', async (store) => {
  const { lists, list: readonly } = await createTestList(store)
  const domain = domainOfRow(
    newDomainRow({
      id: 'd',
      account_id: 'account',
      name: 'mg.example.com',
      type: 'custom',
      state: 'active',
      created_at: 0,
    }),
    0,
  )
  const domains = { byName: async () => domain, byId: async () => domain, changed: () => {} }
  const rules = createLists({ lists, domains, clock: createTestClock() })
  const open = await rules.update(readonly, { accessLevel: 'members' })
  await rules.addMember(open, { address: 'Ann@example.org' }, false, BY_CALL)
  await rules.addMember(open, { address: 'bob@example.org', subscribed: false }, false, BY_CALL)
  const from = (address: string, headers: [string, string][] = []) =>
    decidePost(lists, open, { ...inbound, author: parseMailbox(address), headers })
  assert.equal((await from('ann@EXAMPLE.org')).kind, 'allowed')
  assert.equal((await from('bob@example.org')).kind, 'refused')
  assert.equal((await from('nobody@example.org')).kind, 'refused')

  const other = await rules.create('account', { address: 'other@mg.example.com' })
  const named = await rules.update(other, { headerId: '<News.example.com>' })
  assert.deepEqual(added(named, { way: 'api', headers: [] })['List-Id'], '<News.example.com>')
  for (const [id, kind] of [
    ['<DEVS.mg.example.com>', 'loop'],
    ['Our news <news.example.com>', 'loop'],
    ['<elsewhere.example.net>', 'allowed'],
  ] as const) {
    assert.equal((await from('ann@example.org', [['List-Id', id]])).kind, kind, id)
  }
  const moved = await rules.update(open, { address: 'moved@mg.example.com' })
  assert.equal(moved.headerId, 'moved.mg.example.com', 'a default List-Id follows the address')
  assert.equal((await rules.update(named, { address: 'n@mg.example.com' })).headerId, 'News.example.com')
})
