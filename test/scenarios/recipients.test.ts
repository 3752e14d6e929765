// Both databases: joins over the domains of an account.
/** One recipient over all domains and lists of an account. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { startTestService } from '../support/service.ts'

const PATH = '/sendwright/v1/people/'

eachDatabase((database) =>
  test('an address is found in the suppressions and lists of its account, and of no other', async (t) => {
    const service = await startTestService(t, {}, { database })
    const { call, domain } = service
    const form = async (path: string, fields: Record<string, string>, headers = {}) => {
      const answer = await call('POST', path, { form: fields, headers })
      assert.equal(answer.status, 200, answer.text)
      return answer.body
    }
    await form('/v4/domains', { name: 'second.example' })
    await form(`/v3/${domain}/bounces`, { address: 'Alice@Example.org', code: '550', error: 'no such user' })
    await form('/v3/second.example/unsubscribes', { address: 'alice@example.org', tags: 'news' })
    await form('/v3/second.example/unsubscribes', { address: 'bob@example.org', tags: 'other' })
    await form('/v3/lists', { address: `news@${domain}`, name: 'News' })
    await form(`/v3/lists/news@${domain}/members`, { address: 'alice@example.org', name: 'Alice' })

    const { status, body } = await call('GET', `${PATH}ALICE%40example.org`)
    assert.equal(status, 200)
    for (const record of body.suppressions) assert.ok(Date.parse(record.created_at) > 0)
    const shown = body.suppressions.map((record: { created_at?: string }) => ({ ...record, created_at: '' }))
    const common = { code: '', detail: '', tags: [], created_at: '', expires_at: null }
    assert.deepEqual(
      shown.toSorted((a: { kind: string }, b: { kind: string }) => a.kind.localeCompare(b.kind)),
      [
        { ...common, domain, kind: 'bounces', code: '550', detail: 'no such user' },
        { ...common, domain: 'second.example', kind: 'unsubscribes', tags: ['news'] },
      ],
    )
    assert.equal(body.address, 'alice@example.org')
    const member = { address: `news@${domain}`, title: 'News', member_name: 'Alice' }
    assert.deepEqual(body.lists, [{ ...member, subscribed: true, pending: false }])

    const unknown = await call('GET', `${PATH}nobody%40example.org`)
    assert.deepEqual(unknown.body, { address: 'nobody@example.org', suppressions: [], lists: [] })
    assert.equal((await call('GET', `${PATH}nobody`)).status, 400)
    assert.equal((await call('GET', `${PATH}a%40${'x'.repeat(400)}`)).status, 400)

    const { subaccount } = await form('/v5/accounts/subaccounts', { name: 'Other' })
    const other = await call('GET', `${PATH}alice%40example.org`, {
      headers: { 'X-Service-On-Behalf-Of': subaccount.id },
    })
    assert.deepEqual([other.status, other.body.suppressions, other.body.lists], [200, [], []])
  }),
)
