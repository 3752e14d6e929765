import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  type CallOptions,
  eventually,
  startTestService,
  type TestService,
} from '../../../test/support/service.ts'

/** One service for the file; every test creates lists of its own. */
let service: TestService
let lists = 0

const call = (method: string, path: string, options?: CallOptions) => service.call(method, path, options)
const membersPath = (list: string) => `/v3/lists/${list}/members`

async function newList(fields: Record<string, string> = {}): Promise<string> {
  const address = `list${++lists}@${service.domain}`
  const made = await call('POST', '/v3/lists', { form: { address, ...fields } })
  assert.equal(made.status, 200, made.text)
  return address
}

async function add(list: string, ...addresses: string[]): Promise<void> {
  const members = JSON.stringify(addresses)
  const made = await call('POST', `${membersPath(list)}.json`, { form: { members } })
  assert.equal(made.status, 200, made.text)
}

const csv = (text: string) => new File([text], 'members.csv', { type: 'text/csv' })

/** The events of one upload, once its final event is written. */
async function eventsOf(taskId: string): Promise<Record<string, unknown>[]> {
  return eventually('list_uploaded', async () => {
    const all = (await service.events()).filter((event) => event['task-id'] === taskId)
    return all.some(({ event }) => event === 'list_uploaded') && all
  })
}

const named = (events: Record<string, unknown>[], name: string) =>
  events.filter(({ event }) => event === name)

test('mailing lists over HTTP', async (t) => {
  service = await startTestService(t)
  for (const [name, run] of CASES) await t.test(name, run)
})

const CASES: [name: string, run: (t: TestContext) => Promise<void>][] = [
  [
    'a new list has the defaults, and its name from the address',
    async () => {
      const address = `Devs@${service.domain}`
      const { status, body } = await call('POST', '/v3/lists', {
        form: { address: `Developers <${address}>` },
      })
      assert.equal(status, 200)
      assert.equal(body.message, 'Mailing list has been created')
      const { created_at: createdAt, ...rest } = body.list
      assert.match(createdAt, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d -0000$/)
      assert.deepEqual(rest, {
        address,
        name: 'Developers',
        description: '',
        access_level: 'readonly',
        reply_preference: 'list',
        members_count: 0,
      })
      const read = await call('GET', `/v3/lists/${encodeURIComponent(address.toLowerCase())}`)
      assert.deepEqual(read.body, { list: body.list })
    },
  ],
  [
    'every field of a list is stored, changed alone, and shown',
    async () => {
      const given = { name: 'N', description: 'D', access_level: 'everyone', reply_preference: 'sender' }
      const list = await newList(given)
      const read = async () => (await call('GET', `/v3/lists/${list}`)).body.list
      const before = await read()
      assert.deepEqual({ ...before, ...given }, before)
      for (const [field, value] of [
        ['name', 'Other'],
        ['description', ''],
        ['access_level', 'members'],
        ['reply_preference', 'list'],
      ] as const) {
        const was = await read()
        const { body } = await call('PUT', `/v3/lists/${list}`, { form: { [field]: value } })
        assert.equal(body.message, 'Mailing list has been updated')
        assert.deepEqual(body.list, { ...was, [field]: value })
        assert.deepEqual(await read(), body.list)
      }
      const other = await call('PUT', `/v3/lists/${list}`, { form: { reply_reference: 'sender' } })
      assert.equal(other.body.list.reply_preference, 'sender')
      const headed = await call('PUT', `/v3/lists/${list}`, { form: { list_id: '<news.example.com>' } })
      assert.equal(headed.status, 200)
      assert.equal('list_id' in headed.body.list, false)
    },
  ],
  [
    'a moved list keeps its members, and its old address stops at once',
    async () => {
      const list = await newList()
      await add(list, 'a@example.org')
      const moved = `moved@${service.domain}`
      const { body } = await call('PUT', `/v3/lists/${list}`, { form: { address: moved } })
      assert.equal(body.list.address, moved)
      assert.equal(body.list.members_count, 1)
      assert.equal((await call('GET', `/v3/lists/${list}`)).status, 404)
      const members = await call('GET', membersPath(moved))
      assert.equal(members.body.items[0].address, 'a@example.org')
      const taken = await call('PUT', `/v3/lists/${moved}`, { form: { address: await newList() } })
      assert.deepEqual([taken.status, taken.body], [400, { message: 'Duplicate object' }])
      const foreign = await call('PUT', `/v3/lists/${moved}`, { form: { address: 'a@foreign.example' } })
      assert.deepEqual(foreign.body, { message: 'Domain not found: foreign.example' })
    },
  ],
  [
    'a deleted list is gone with its members',
    async () => {
      const list = await newList()
      await add(list, 'a@example.org')
      const { body } = await call('DELETE', `/v3/lists/${list}`)
      assert.deepEqual(body, { address: list, message: 'Mailing list has been removed' })
      assert.equal((await call('GET', membersPath(list))).status, 404)
      await call('POST', '/v3/lists', { form: { address: list } })
      assert.equal((await call('GET', membersPath(list))).body.total_count, 0)
    },
  ],
  [
    'lists come by address, with limit, skip, exact address and pages',
    async () => {
      for (const name of ['zz-2', 'zz-1', 'zz-3']) {
        await call('POST', '/v3/lists', { form: { address: `${name}@${service.domain}` } })
      }
      const { body } = await call('GET', '/v3/lists?limit=1000')
      const all = body.items.map((list: { address: string }) => list.address)
      assert.deepEqual(
        all,
        [...all].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)),
      )
      assert.equal(body.total_count, all.length)
      const second = await call('GET', '/v3/lists?limit=1&skip=1')
      assert.deepEqual(
        second.body.items.map((list: { address: string }) => list.address),
        [all[1]],
      )
      const exact = await call('GET', `/v3/lists?address=ZZ-1@${service.domain}`)
      assert.equal(exact.body.total_count, 1)

      const last = await call('GET', '/v3/lists/pages?page=last&limit=2')
      assert.deepEqual(
        last.body.items.map((list: { address: string }) => list.address),
        all.slice(-2),
      )
      const before = await call('GET', last.body.paging.previous.slice(service.config.publicUrl.length))
      assert.deepEqual(
        before.body.items.map((list: { address: string }) => list.address),
        all.slice(-4, -2),
      )
    },
  ],
  [
    'pages of members lead from first to an empty one behind the last, and back',
    async () => {
      const list = await newList()
      const all = ['a', 'B', 'c', 'd', 'e'].map((name) => `${name}+x@example.org`)
      await add(list, ...[...all].reverse())
      const follow = async (url: string) => {
        const { body } = await call('GET', url.slice(service.config.publicUrl.length))
        return { paging: body.paging, found: body.items.map((one: { address: string }) => one.address) }
      }
      const base = `${service.config.publicUrl}${membersPath(encodeURIComponent(list))}/pages`
      let page = await follow(`${base}?limit=2`)
      assert.deepEqual(page.found, all.slice(0, 2))
      assert.equal(page.paging.first, `${base}?page=first&limit=2`)
      assert.equal(
        page.paging.next,
        `${base}?page=next&address=${encodeURIComponent('B+x@example.org')}&limit=2`,
      )
      page = await follow(page.paging.next)
      assert.deepEqual(page.found, all.slice(2, 4))
      page = await follow(page.paging.next)
      assert.deepEqual(page.found, all.slice(4))
      page = await follow(page.paging.next)
      assert.deepEqual(page.found, [])
      const { previous, last } = page.paging
      assert.deepEqual((await follow(previous)).found, all.slice(2, 4))
      assert.deepEqual((await follow(last)).found, all.slice(3))
      const bad = await call('GET', `${membersPath(list)}/pages?page=middle`)
      assert.deepEqual(bad.body, { message: 'Invalid format for parameter page: middle' })
    },
  ],
  [
    'members are added, read in both shapes, changed field by field and deleted',
    async () => {
      const list = await newList()
      const form = { address: 'Bob Bar <Bob@example.org>', vars: '{"age": 26}', subscribed: 'no' }
      const added = await call('POST', membersPath(list), { form })
      const member = { address: 'Bob@example.org', name: 'Bob Bar', vars: { age: 26 }, subscribed: false }
      assert.deepEqual(added.body, { member, message: 'Mailing list member has been created' })
      const one = `${membersPath(list)}/bob%40EXAMPLE.org`
      assert.deepEqual((await call('GET', one)).body, { ...member, member })

      let now: Record<string, unknown> = member
      for (const [field, sent, value] of [
        ['name', 'Robert', 'Robert'],
        ['vars', '{"b": [1]}', { b: [1] }],
        ['subscribed', 'yes', true],
        ['address', 'robert@example.org', 'robert@example.org'],
      ] as const) {
        const path = `${membersPath(list)}/${now['address']}`
        const { body } = await call('PUT', path, { form: { [field]: sent } })
        now = { ...now, [field]: value }
        assert.deepEqual(body, { member: now, message: 'Mailing list member has been updated' })
      }
      assert.equal((await call('GET', one)).status, 404)
      const gone = await call('DELETE', `${membersPath(list)}/robert@example.org`)
      assert.deepEqual(gone.body, {
        member: { address: 'robert@example.org' },
        message: 'Mailing list member has been deleted',
      })
      assert.equal((await call('GET', `/v3/lists/${list}`)).body.list.members_count, 0)
    },
  ],
  [
    'upsert updates the given fields only; without it a duplicate is refused and nothing changes',
    async () => {
      const list = await newList()
      await call('POST', membersPath(list), {
        form: { address: 'a@example.org', name: 'A', subscribed: 'no' },
      })
      const twice = await call('POST', membersPath(list), { form: { address: 'A@example.org', name: 'X' } })
      assert.deepEqual(
        [twice.status, twice.body],
        [400, { message: "Address already exists 'A@example.org'" }],
      )
      const form = { address: 'a@example.org', vars: '{"k":1}', upsert: 'yes' }
      const { body } = await call('POST', membersPath(list), { form })
      assert.deepEqual(body.member, {
        address: 'a@example.org',
        name: 'A',
        vars: { k: 1 },
        subscribed: false,
      })
      assert.equal((await call('GET', `/v3/lists/${list}`)).body.list.members_count, 1)
      await add(list, 'b@example.org')
      const taken = await call('PUT', `${membersPath(list)}/b@example.org`, {
        form: { address: 'a@example.org' },
      })
      assert.deepEqual(
        [taken.status, taken.body],
        [400, { message: "Address already exists 'a@example.org'" }],
      )
    },
  ],
  [
    'members are filtered by address and by subscription, with limit and skip',
    async () => {
      const list = await newList()
      await add(list, 'a@example.org', 'b@example.org', 'c@example.org')
      await call('PUT', `${membersPath(list)}/b@example.org`, { form: { subscribed: 'False' } })
      const found = async (query: string) => {
        const { body } = await call('GET', `${membersPath(list)}${query}`)
        return [body.total_count, body.items.map((one: { address: string }) => one.address[0]).join('')]
      }
      assert.deepEqual(await found(''), [3, 'abc'])
      assert.deepEqual(await found('?subscribed=yes'), [2, 'ac'])
      assert.deepEqual(await found('?subscribed=no'), [1, 'b'])
      assert.deepEqual(await found('?limit=1&skip=1'), [3, 'b'])
      assert.deepEqual(await found('?address=C@example.org'), [1, 'c'])
      const page = await call('GET', `${membersPath(list)}/pages?subscribed=yes&limit=1`)
      assert.match(page.body.paging.next, /subscribed=yes/)
      assert.equal(page.body.items.length, 1)
    },
  ],
  [
    'a limit over 100 is cut',
    async () => {
      const list = await newList()
      await add(list, ...Array.from({ length: 100 }, (_, n) => `m${n}@example.org`))
      await add(list, 'z1@example.org')
      const { body } = await call('GET', `${membersPath(list)}?limit=500`)
      assert.deepEqual([body.total_count, body.items.length], [101, 100])
    },
  ],
  [
    'up to 100 JSON entries are worked off before the answer, with their events',
    async () => {
      const list = await newList()
      await call('POST', membersPath(list), {
        form: { address: 'old@example.org', name: 'Old', subscribed: 'no' },
      })
      const members = JSON.stringify([
        'plain@example.org',
        { address: 'obj@example.org', name: 'Obj', vars: { a: 1 }, subscribed: false },
        { address: 'text@example.org', vars: '{"b":2}' },
        { address: 'carol(at)example.org' },
        { address: 'vars@example.org', vars: 'x' },
        'plain@example.org',
        { address: 'old@example.org', name: 'New' },
      ])
      const { body } = await call('POST', `${membersPath(list)}.json`, { form: { members } })
      assert.equal(body.message, 'Mailing list has been updated')
      assert.equal(body.list.members_count, 4)
      const { items } = (await call('GET', membersPath(list))).body
      assert.deepEqual(items, [
        { address: 'obj@example.org', name: 'Obj', vars: { a: 1 }, subscribed: false },
        { address: 'old@example.org', name: 'Old', vars: {}, subscribed: false },
        { address: 'plain@example.org', name: '', vars: {}, subscribed: true },
        { address: 'text@example.org', name: '', vars: { b: 2 }, subscribed: true },
      ])
      const events = await eventsOf(body['task-id'])
      assert.deepEqual(
        named(events, 'list_member_uploaded')
          .map(({ member }) => (member as { address: string }).address)
          .sort(),
        ['obj@example.org', 'plain@example.org', 'text@example.org'],
      )
      const wrong = named(events, 'list_member_upload_error')
      assert.deepEqual(wrong.map((event) => event['member-description']).sort(), [
        'carol(at)example.org',
        'vars@example.org',
      ])
      const invalid = wrong.find((event) => event['member-description'] === 'carol(at)example.org')
      assert.deepEqual(
        [invalid?.['error'], invalid?.['format'], invalid?.['log-level'], invalid?.['mailing-list']],
        [{ message: 'Invalid format' }, 'json', 'error', { address: list }],
      )
      const [end] = named(events, 'list_uploaded')
      assert.deepEqual(
        [
          end?.['upserted-count'],
          end?.['failed-count'],
          end?.['is-upsert'],
          end?.['subscribed'],
          end?.['format'],
        ],
        [3, 2, false, true, 'json'],
      )
    },
  ],
  [
    'with upsert, JSON entries update members, and a missing subscribed means true',
    async () => {
      const list = await newList()
      await call('POST', membersPath(list), {
        form: { address: 'a@example.org', name: 'A', subscribed: 'no' },
      })
      const members = [{ address: 'A@example.org', vars: { k: 1 } }]
      const answer = await call('POST', `${membersPath(list)}.json`, { json: { members, upsert: true } })
      assert.equal(answer.status, 200, answer.text)
      const { body } = await call('GET', `${membersPath(list)}/a@example.org`)
      assert.deepEqual(body.member, { address: 'A@example.org', name: 'A', vars: { k: 1 }, subscribed: true })
      const query = `members=${encodeURIComponent('["q@example.org"]')}`
      await call('POST', `${membersPath(list)}.json?${query}`)
      assert.equal((await call('GET', `${membersPath(list)}/q@example.org`)).status, 200)
    },
  ],
  [
    'over 100 JSON entries go in the background; 1,000 are taken, 1,001 are not',
    async () => {
      const list = await newList()
      const many = Array.from({ length: 1001 }, (_, n) => `m${n}@example.org`)
      const refused = await call('POST', `${membersPath(list)}.json`, {
        form: { members: JSON.stringify(many) },
      })
      const tooMany = { message: 'Too many members, max is 1000 per request' }
      assert.deepEqual([refused.status, refused.body], [400, tooMany])
      const file = await call('POST', `${membersPath(list)}.csv`, { form: { members: csv(many.join('\n')) } })
      assert.deepEqual([file.status, file.body], [400, tooMany])
      assert.equal((await call('GET', `/v3/lists/${list}`)).body.list.members_count, 0)

      const members = JSON.stringify(many.slice(0, 1000))
      const { body } = await call('POST', `${membersPath(list)}.json`, { form: { members } })
      assert.equal(body.message, 'Mailing list upload started in background')
      await eventually('all members', async () => {
        const { list: now } = (await call('GET', `/v3/lists/${list}`)).body
        return now.members_count === 1000
      })
      assert.equal((await call('GET', `${membersPath(list)}?limit=1`)).body.total_count, 1000)
    },
  ],
  [
    'a CSV file goes in the background; rows fall back to the subscribed of the call',
    async () => {
      const list = await newList()
      await add(list, 'old@example.org')
      const text = [
        '\uFEFFname,address,subscribed,vars,other',
        '"Ann, the ""first""",ann@example.org,yes,"{""k"": 1}",x',
        'Bob,bob@example.org,,,',
        'Nobody,bad address,,,',
        'Renamed,old@example.org,,,',
      ].join('\r\n')
      const form = { members: csv(text), subscribed: 'no', upsert: 'yes' }
      const { body } = await call('POST', `${membersPath(list)}.csv`, { form })
      assert.equal(body.message, 'Mailing list upload started in background')
      const events = await eventsOf(body['task-id'])
      assert.deepEqual((await call('GET', membersPath(list))).body.items, [
        { address: 'ann@example.org', name: 'Ann, the "first"', vars: { k: 1 }, subscribed: true },
        { address: 'bob@example.org', name: 'Bob', vars: {}, subscribed: false },
        { address: 'old@example.org', name: 'Renamed', vars: {}, subscribed: false },
      ])
      const [end] = named(events, 'list_uploaded')
      assert.deepEqual(
        [
          end?.['upserted-count'],
          end?.['failed-count'],
          end?.['is-upsert'],
          end?.['subscribed'],
          end?.['format'],
        ],
        [3, 1, true, false, 'csv'],
      )
      assert.equal(named(events, 'list_member_upload_error').length, 1)
    },
  ],
  [
    'a CSV file with rows that cannot be read is refused whole, naming them',
    async () => {
      const list = await newList()
      const refuse = async (text: string) => {
        const { status, body } = await call('POST', `${membersPath(list)}.csv`, {
          form: { members: csv(text) },
        })
        assert.equal(status, 400)
        return body.message
      }
      const good = 'good@example.org,Good,{}'
      assert.equal(
        await refuse(`${good}\na@example.org,A,nonsense\n${good}\nb@example.org,B,{},extra`),
        "CSV file is not valid: row 2: Parameter 'vars' is not a valid JSON object; row 4: it has 4 fields, not 3",
      )
      assert.equal(
        await refuse(`${good}\n"open,B,{}`),
        'CSV file is not valid: row 2: A quoted field does not end',
      )
      assert.equal(
        await refuse('address,subscribed\na@example.org,perhaps'),
        "CSV file is not valid: row 2: 'subscribed' is neither yes nor no",
      )
      assert.match(await refuse('name,vars\nA,{}'), /row 1: there is no column 'address'/)
      assert.equal((await call('GET', `/v3/lists/${list}`)).body.list.members_count, 0)
    },
  ],
  [
    'every documented error has its text',
    async () => {
      const list = await newList()
      await add(list, 'a@example.org')
      const members = membersPath(list)
      const unknown = `nobody@${service.domain}`
      const L = (name: string) => `Mailing list ${name} not found`
      const invalid = 'address parameter is not a valid address. please check documentation'
      const vars = "Parameter 'vars' is not a valid JSON object"
      const array = "Parameter 'members' is not a valid JSON array"
      const table: [
        method: string,
        path: string,
        form: Record<string, string> | null,
        status: number,
        text: string,
      ][] = [
        [
          'POST',
          '/v3/lists',
          { address: unknown, access_level: 'all' },
          400,
          "Invalid access level 'all'. It can be any of: 'readonly', 'members', 'everyone'.",
        ],
        [
          'PUT',
          `/v3/lists/${list}`,
          { access_level: 'all' },
          400,
          "Invalid access level 'all'. It can be any of: 'readonly', 'members', 'everyone'.",
        ],
        [
          'POST',
          '/v3/lists',
          { address: unknown, reply_preference: 'me' },
          400,
          "Invalid reply preference 'me'. It can be any of: 'sender', 'list'",
        ],
        ['POST', '/v3/lists', { name: 'x' }, 400, "Parameter 'address' is missing"],
        ['POST', '/v3/lists', { address: 'no address' }, 400, invalid],
        ['POST', '/v3/lists', { address: 'a@foreign.example' }, 400, 'Domain not found: foreign.example'],
        ['POST', '/v3/lists', { address: list.toUpperCase() }, 400, 'Duplicate object'],
        ['PUT', `/v3/lists/${list}`, { list_id: 'a b' }, 400, "Parameter 'list_id' is not a valid List-Id"],
        ['POST', members, { name: 'x' }, 400, "Parameter 'address' is missing"],
        ['POST', members, { address: '@x' }, 400, invalid],
        ['PUT', `${members}/a@example.org`, { address: 'x' }, 400, invalid],
        ['POST', members, { address: 'b@example.org', vars: '[1]' }, 400, vars],
        ['PUT', `${members}/a@example.org`, { vars: '{' }, 400, vars],
        [
          'POST',
          members,
          { address: 'b@example.org', vars: `{"a":"${'x'.repeat(70_000)}"}` },
          400,
          "Parameter 'vars' is too large, max is 64 KB",
        ],
        [
          'POST',
          members,
          { address: 'b@example.org', subscribed: 'perhaps' },
          400,
          'Invalid format for parameter subscribed: perhaps',
        ],
        ['POST', `${members}.json`, { members: '{"a":1}' }, 400, array],
        ['POST', `${members}.json`, { members: '[' }, 400, array],
        ['POST', `${members}.json`, {}, 400, array],
        ['POST', `${members}.csv`, {}, 400, "Parameter 'members' is missing"],
        ['GET', `/v3/lists/${unknown}`, null, 404, L(unknown)],
        ['PUT', `/v3/lists/${unknown}`, { name: 'x' }, 404, L(unknown)],
        ['DELETE', `/v3/lists/${unknown}`, null, 404, L(unknown)],
        ['GET', membersPath(unknown), null, 404, L(unknown)],
        ['GET', `${membersPath(unknown)}/pages`, null, 404, L(unknown)],
        ['POST', membersPath(unknown), { address: 'a@example.org' }, 404, L(unknown)],
        ['GET', `${membersPath(unknown)}/a@example.org`, null, 404, L(unknown)],
        ['PUT', `${membersPath(unknown)}/a@example.org`, { name: 'x' }, 404, L(unknown)],
        ['DELETE', `${membersPath(unknown)}/a@example.org`, null, 404, L(unknown)],
        [
          'POST',
          `${membersPath(unknown)}.json`,
          { members: '[]' },
          404,
          `Mailing list '${unknown}' not found`,
        ],
        ['POST', `${membersPath(unknown)}.csv`, { members: 'a' }, 404, `Mailing list '${unknown}' not found`],
        [
          'GET',
          `${members}/x@example.org`,
          null,
          404,
          `Member x@example.org of mailing list ${list} not found`,
        ],
        [
          'PUT',
          `${members}/x@example.org`,
          { name: 'x' },
          404,
          `Member x@example.org of mailing list ${list} not found`,
        ],
        [
          'DELETE',
          `${members}/x@example.org`,
          null,
          404,
          `Member x@example.org of mailing list ${list} not found`,
        ],
      ]
      for (const [method, path, form, status, message] of table) {
        const answer = await call(method, path, form ? { form } : {})
        assert.deepEqual([answer.status, answer.body], [status, { message }], `${method} ${path}`)
      }
      const big = csv('a@example.org,'.padEnd(5_000_001, 'x'))
      const tooBig = await call('POST', `${members}.csv`, { form: { members: big } })
      const text = 'CSV file is too big, max allowed size is 5 MB'
      assert.deepEqual([tooBig.status, tooBig.body], [400, { message: text }])
      const nobody = await call('GET', '/v3/lists', { key: 'wrong' })
      assert.deepEqual([nobody.status, nobody.body], [401, { message: 'Invalid private key' }])
    },
  ],
  [
    'a key that may only read changes nothing',
    async () => {
      const list = await newList()
      await add(list, 'a@example.org')
      const made = await call('POST', '/v1/keys', { form: { role: 'basic', kind: 'user' } })
      const key = made.body.key.secret as string
      const [one, member] = [`/v3/lists/${list}`, `${membersPath(list)}/a@example.org`]
      for (const path of [
        '/v3/lists',
        '/v3/lists/pages',
        one,
        membersPath(list),
        `${membersPath(list)}/pages`,
        member,
      ]) {
        assert.equal((await call('GET', path, { key })).status, 200, path)
      }
      const form = { address: `x@${service.domain}`, name: 'x', members: '["x@example.org"]' }
      for (const [method, path] of [
        ['POST', '/v3/lists'],
        ['PUT', one],
        ['DELETE', one],
        ['POST', membersPath(list)],
        ['POST', `${membersPath(list)}.json`],
        ['POST', `${membersPath(list)}.csv`],
        ['PUT', member],
        ['DELETE', member],
      ] as const) {
        assert.equal((await call(method, path, { form, key })).status, 403, `${method} ${path}`)
      }
      assert.equal((await call('GET', one)).body.list.members_count, 1)
    },
  ],
  ['the public JavaScript client', javaScriptClient],
]

async function javaScriptClient(): Promise<void> {
  const { default: Mailgun } = await import('mailgun.js')
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const address = `js@${service.domain}`
  const made = await client.lists.create({ address, name: 'JS', access_level: 'members' })
  assert.equal(made.address, address)
  assert.equal((await client.lists.get(address)).name, 'JS')
  assert.equal((await client.lists.update(address, { address, description: 'D' })).description, 'D')
  const page = await client.lists.list({ limit: 2 })
  assert.equal(page.items.length, 2)
  assert.ok(page.pages.next?.page)
  assert.equal((await client.lists.listByAddress({ address })).total_count, 1)

  const { members } = client.lists
  const ann = await members.createMember(address, {
    address: 'ann@example.org',
    name: 'Ann',
    vars: JSON.stringify({ k: 1 }),
    subscribed: true,
    upsert: 'yes',
  })
  assert.deepEqual(ann, { address: 'ann@example.org', name: 'Ann', vars: { k: 1 }, subscribed: true })
  const bob = { address: 'bob@example.org', name: 'Bob', vars: { b: 2 }, subscribed: false }
  const many = await members.createMembers(address, { members: [bob], upsert: 'yes' })
  assert.ok(many['task-id'])
  assert.deepEqual(await members.getMember(address, 'bob@example.org'), bob)
  const updated = await members.updateMember(address, 'bob@example.org', {
    address: 'bob@example.org',
    subscribed: true,
  })
  assert.equal(updated.subscribed, true)
  const uploaded = await members.upload(address, { data: 'carl@example.org,Carl\n', filename: 'm.csv' })
  await eventsOf(uploaded['task-id'])
  const first = await members.listMembers(address, { limit: 2 })
  assert.deepEqual(
    first.items.map((one) => one.address),
    ['ann@example.org', 'bob@example.org'],
  )
  const second = await members.listMembers(address, { limit: 2, page: first.pages.next?.page as string })
  assert.deepEqual(
    second.items.map((one) => one.address),
    ['carl@example.org'],
  )
  const exact = await members.listMembersByAddress(address, { address: 'bob@example.org', subscribed: true })
  assert.equal(exact.total_count, 1)
  const gone = await members.destroyMember(address, 'bob@example.org')
  assert.equal(gone.member.address, 'bob@example.org')
  assert.equal((await client.lists.destroy(address)).address, address)
}

test('lists on PostgreSQL, and the rate limit of list operations', async (t) => {
  const other = await startTestService(t, { SENDWRIGHT_RATE_LIMIT: '100' }, { database: 'postgres' })
  const address = `pg@${other.domain}`
  await other.call('POST', '/v3/lists', { form: { address } })
  const members = JSON.stringify(Array.from({ length: 300 }, (_, n) => ({ address: `m${n}@example.org` })))
  const path = `/v3/lists/${address}/members`
  await other.call('POST', `${path}.json`, { form: { members } })
  await eventually('300 members', async () => {
    return (await other.call('GET', `${path}?limit=1`)).body.total_count === 300
  })
  const deleted = await other.call('DELETE', `${path}/m1@example.org`)
  assert.equal(deleted.headers.get('x-ratelimit-limit'), '300')
  assert.equal((await other.call('GET', `/v3/lists/${address}`)).body.list.members_count, 299)
  const page = await other.call('GET', `${path}/pages?page=last&limit=2`)
  assert.deepEqual(
    page.body.items.map((one: { address: string }) => one.address),
    ['m99@example.org', 'm9@example.org'],
  )
  // At once: five more are allowed every second, and a busy machine takes as long for five in a row.
  const refused = await eventually('a refusal', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => other.call('GET', '/v3/lists')))
    return answers.find(({ status }) => status !== 200)
  })
  assert.deepEqual([refused.status, refused.body], [429, { message: 'Too Many Requests' }])
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
})
