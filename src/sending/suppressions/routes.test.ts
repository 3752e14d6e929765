import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'

type Form = Record<string, string | readonly string[]>

test('the four lists over HTTP', async (t) => {
  const service = await startTestService(t)

  const path = (kind: string, rest = '') => `/v3/${service.domain}/${kind}${rest}`
  const call = (...args: Parameters<TestService['call']>) => service.call(...args)
  const add = (kind: string, form: Form) => call('POST', path(kind), { form })
  const addJson = (kind: string, json: unknown) => call('POST', path(kind), { json })
  const clear = (kind: string) => call('DELETE', path(kind))
  const read = async (kind: string, address: string) =>
    (await call('GET', path(kind, `/${encodeURIComponent(address)}`))).body
  const list = async (kind: string, query = '') => (await call('GET', path(kind, query))).body

  const ADDED: [kind: string, form: Form, answer: object][] = [
    [
      'bounces',
      { address: 'Alice@Example.com' },
      { message: 'Address has been added to the bounces table', address: 'alice@example.com' },
    ],
    [
      'complaints',
      { address: 'Alice <alice@example.com>' },
      { message: 'Address has been added to the complaints table', address: 'alice@example.com' },
    ],
    [
      'unsubscribes',
      { address: ' alice@example.com ' },
      { message: 'Address has been added to the unsubscribes table', address: 'alice@example.com' },
    ],
    [
      'whitelists',
      { domain: 'Example.com' },
      {
        message: 'Address/Domain has been added to the allowlists table',
        type: 'domain',
        value: 'example.com',
      },
    ],
    [
      'allowlists',
      { address: 'bob@example.net', domain: 'example.org' },
      {
        message: 'Address/Domain has been added to the allowlists table',
        type: 'address',
        value: 'bob@example.net',
      },
    ],
  ]
  for (const [kind, form, answer] of ADDED) {
    await t.test(`adding one to ${kind} as ${JSON.stringify(form)}`, async () => {
      const added = await add(kind, form)
      assert.equal(added.status, 200)
      assert.deepEqual(added.body, answer)
      await clear(kind)
    })
  }

  await t.test('each field of a record comes back', async () => {
    const created_at = 'Thu, 13 Oct 2011 18:02:00 UTC'
    const time = { created_at: 'Thu, 13 Oct 2011 20:02:00 +0200' }
    await add('bounces', { address: 'a@x.org', code: '552', error: 'full', ...time })
    assert.deepEqual(await read('bounces', 'A@x.org'), {
      address: 'a@x.org',
      code: '552',
      error: 'full',
      created_at,
    })
    await add('bounces', { address: 'b@x.org', created_at: '1318528920' })
    assert.deepEqual(await read('bounces', 'b@x.org'), {
      address: 'b@x.org',
      code: '550',
      error: '',
      created_at,
    })
    await add('complaints', { address: 'a+b@x.org', ...time })
    assert.deepEqual(await read('complaints', 'a+b@x.org'), { address: 'a+b@x.org', count: 1, created_at })
    await add('unsubscribes', { address: 'a@x.org', tag: ['One', 'two'], tags: 'three', ...time })
    assert.deepEqual(await read('unsubscribes', 'a@x.org'), {
      address: 'a@x.org',
      tags: ['One', 'three', 'two'],
      created_at,
    })
    await add('whitelists', { domain: 'x.org', reason: 'ours' })
    const { createdAt, ...entry } = await read('allowlists', 'X.org')
    assert.deepEqual(entry, { type: 'domain', value: 'x.org', reason: 'ours' })
    assert.match(createdAt, /^\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d UTC$/)
    for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists']) await clear(kind)
  })

  await t.test('a time that is unset or to come is now, a long error is cut', async () => {
    for (const created_at of ['', 'Mon, 01 Jan 0001 00:00:00 UTC', 'Fri, 01 Jan 2100 00:00:00 UTC']) {
      await add('bounces', { address: 'a@x.org', created_at, error: 'e'.repeat(5000) })
      const { created_at: stored, error } = await read('bounces', 'a@x.org')
      assert.ok(Math.abs(Date.parse(stored) - Date.now()) < 60_000, `${created_at}: ${stored}`)
      assert.equal(error.length, 4096)
    }
    await clear('bounces')
  })

  await t.test('many at a time, with the text of the kind', async () => {
    const answers: [kind: string, records: unknown, message: string][] = [
      [
        'bounces',
        [{ address: 'a@x.org', code: 550 }, { address: 'b@x.org', code: '551' }, { address: 'A@x.org' }],
        '3 addresses have been added to the bounces table',
      ],
      ['bounces', { address: 'c@x.org' }, '1 addresses have been added to the bounces table'],
      [
        'complaints',
        [{ address: 'a@x.org', createdAt: 'Thu, 13 Oct 2011 18:02:00 +0000' }, { address: 'b@x.org' }],
        '2 complaint addresses have been added to the complaints table',
      ],
      [
        'unsubscribes',
        [
          { address: 'a@x.org', tags: [] },
          { address: 'b@x.org', tag: 'x' },
          { address: 'c@x.org', tags: ['y', '*'] },
        ],
        '3 addresses have been added to the unsubscribes table',
      ],
      [
        'whitelists',
        [{ address: 'a@x.org' }, { domain: 'x.org', reason: 'ours' }],
        '2 addresses/domains have been added to the allowlists table',
      ],
    ]
    for (const [kind, records, message] of answers) {
      const added = await addJson(kind, records)
      assert.equal(added.status, 200)
      assert.deepEqual(added.body, { message })
    }
    const summary = async (kind: string, ...members: string[]) =>
      (await list(kind)).items.map((item: Record<string, unknown>) => members.map((member) => item[member]))
    assert.deepEqual(await summary('bounces', 'address', 'code'), [
      ['a@x.org', '550'],
      ['b@x.org', '551'],
      ['c@x.org', '550'],
    ])
    assert.deepEqual((await read('complaints', 'a@x.org')).created_at, 'Thu, 13 Oct 2011 18:02:00 UTC')
    assert.deepEqual(await summary('unsubscribes', 'address', 'tags'), [
      ['a@x.org', ['*']],
      ['b@x.org', ['x']],
      ['c@x.org', ['*']],
    ])
    assert.deepEqual(await summary('whitelists', 'type', 'value', 'reason'), [
      ['address', 'a@x.org', ''],
      ['domain', 'x.org', 'ours'],
    ])
    for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists']) await clear(kind)
  })

  await t.test('a thousand records are taken, one more is not, and one bad one refuses all', async () => {
    const records = Array.from({ length: 1000 }, (_, index) => ({ address: `u${index}@x.org` }))
    assert.equal(
      (await addJson('bounces', records)).body.message,
      '1000 addresses have been added to the bounces table',
    )
    assert.equal((await list('bounces', '?limit=5000')).items.length, 1000)
    await clear('bounces')
    const tooMany = await addJson('bounces', [...records, { address: 'one@x.org' }])
    assert.equal(tooMany.status, 400)
    assert.deepEqual(tooMany.body, { message: 'Batch size should be less than 1000' })
    const bad = await addJson('bounces', [{ address: 'a@x.org' }, { address: 'nobody' }])
    assert.equal(bad.status, 400)
    assert.deepEqual(bad.body, { message: 'Invalid format for parameter address: nobody (index 1)' })
    assert.deepEqual((await list('bounces')).items, [])
  })

  await t.test('links and pages: every record once, whatever vanishes meanwhile', async () => {
    await addJson(
      'bounces',
      ['alice', 'bob', 'carol', 'dave', 'erin'].map((name) => ({ address: `${name}@x.org` })),
    )
    const base = service.config.publicUrl + path('bounces')
    assert.deepEqual((await list('bounces')).paging, {
      first: `${base}?limit=100&term=`,
      last: `${base}?page=last&limit=100&term=`,
      next: `${base}?page=next&address=erin%40x.org&limit=100&term=`,
      previous: `${base}?page=previous&address=alice%40x.org&limit=100&term=`,
    })
    const names = async (query: string) =>
      (await list('bounces', query)).items.map((item: { address: string }) => item.address.split('@')[0])
    assert.deepEqual(await names('?limit=2'), ['alice', 'bob'])
    assert.deepEqual(await names('?limit=2&page=next&address=BOB@x.org'), ['carol', 'dave'])
    assert.deepEqual(await names('?limit=2&page=next&p=bob@x.org'), ['carol', 'dave'])
    assert.deepEqual(await names('?limit=2&page=previous&address=dave@x.org'), ['bob', 'carol'])
    assert.deepEqual(await names('?limit=2&page=prev&address=dave@x.org'), ['bob', 'carol'])
    assert.deepEqual(await names('?limit=2&page=last'), ['dave', 'erin'])
    assert.deepEqual(await names('?limit=2&page=first'), ['alice', 'bob'])
    assert.deepEqual(await names('?limit=2&page=next'), ['alice', 'bob'])
    assert.deepEqual(await names('?term=D'), ['dave'])
    assert.deepEqual(await names('?page=&limit=&address=&term='), ['alice', 'bob', 'carol', 'dave', 'erin'])

    const walked: string[] = []
    let url = `${base}?limit=2&term=`
    for (;;) {
      const { items, paging } = (await call('GET', url.slice(service.config.publicUrl.length))).body
      if (items.length === 0) {
        assert.equal(paging.next, url)
        break
      }
      walked.push(...items.map((item: { address: string }) => item.address))
      await call('DELETE', path('bounces', `/${items.at(-1).address}`))
      url = paging.next
    }
    assert.deepEqual(
      walked,
      ['alice', 'bob', 'carol', 'dave', 'erin'].map((name) => `${name}@x.org`),
    )
    await clear('bounces')
    const { items, paging } = await list('bounces', '?limit=7&term=a')
    assert.deepEqual(items, [])
    assert.deepEqual(new Set(Object.values(paging)), new Set([`${base}?limit=7&term=a`]))
  })

  await t.test('removing one, and clearing what is empty', async () => {
    const removals: [kind: string, value: string, answer: object][] = [
      ['bounces', 'a@x.org', { message: 'Bounced address has been removed', address: 'a@x.org' }],
      ['complaints', 'a@x.org', { message: 'Spam complaint has been removed', address: 'a@x.org' }],
      ['unsubscribes', 'a@x.org', { message: 'Unsubscribe event has been removed', address: 'a@x.org' }],
      ['whitelists', 'x.org', { message: 'Allowlist address/domain has been removed', value: 'x.org' }],
    ]
    for (const [kind, value, answer] of removals) {
      await add(kind, { address: value.includes('@') ? value : '', domain: value })
      const removed = await call('DELETE', path(kind, `/${encodeURIComponent(value.toUpperCase())}`))
      assert.equal(removed.status, 200)
      assert.deepEqual(removed.body, answer)
    }
    const cleared: [kind: string, message: string][] = [
      ['bounces', 'Bounced addresses for this domain have been removed'],
      ['complaints', 'Complaint addresses for this domain have been removed'],
      ['unsubscribes', 'Unsubscribe addresses for this domain have been removed'],
      ['whitelists', 'Allowlist addresses/domains for this domain have been removed'],
    ]
    for (const [kind, message] of cleared) {
      await add(kind, { address: 'a@x.org' })
      for (const _ of [1, 2]) {
        const answer = await clear(kind)
        assert.equal(answer.status, 200)
        assert.deepEqual(answer.body, { message })
        assert.deepEqual((await list(kind)).items, [])
      }
    }
  })

  await t.test('a tag is removed alone, by query or form', async () => {
    await add('unsubscribes', { address: 'a@x.org', tag: ['a', 'b', 'c'] })
    await call('DELETE', path('unsubscribes', '/a@x.org?tag=A'))
    await call('DELETE', path('unsubscribes', '/a@x.org'), { form: { tag: 'b' } })
    assert.deepEqual((await read('unsubscribes', 'a@x.org')).tags, ['c'])
    const unknown = await call('DELETE', path('unsubscribes', '/a@x.org?tag=b'))
    assert.equal(unknown.status, 404)
    assert.deepEqual(unknown.body, { message: 'Unsubscribe event for this tag does not exist' })
    await call('DELETE', path('unsubscribes', '/a@x.org?tag=c'))
    assert.deepEqual((await list('unsubscribes')).items, [])
  })

  const REFUSED: [
    what: string,
    request: Parameters<TestService['call']>,
    status: number,
    message: string | RegExp,
  ][] = [
    [
      'no address',
      ['POST', 'bounces', { form: { code: '550' } }],
      400,
      'Missing mandatory parameter: address',
    ],
    ['no address', ['POST', 'complaints', { form: {} }], 400, 'Missing mandatory parameter: address'],
    ['no address', ['POST', 'unsubscribes', { form: {} }], 400, 'Missing mandatory parameter: address'],
    ['neither', ['POST', 'whitelists', { form: {} }], 400, 'Missing mandatory parameter: address/domain'],
    [
      'no address at all',
      ['POST', 'bounces', { form: { address: 'a@b@c' } }],
      400,
      'Invalid format for parameter address: a@b@c',
    ],
    [
      'no domain part',
      ['POST', 'bounces', { form: { address: 'alice@' } }],
      400,
      'Invalid format for parameter address: alice@',
    ],
    [
      'a bad domain',
      ['POST', 'whitelists', { form: { domain: 'not a domain' } }],
      400,
      'Invalid format for parameter domain: not a domain',
    ],
    [
      'a bad code',
      ['POST', 'bounces', { form: { address: 'a@x.org', code: 'five' } }],
      400,
      'Invalid format for parameter code: five',
    ],
    [
      'a bad date',
      ['POST', 'bounces', { form: { address: 'a@x.org', created_at: 'yesterday' } }],
      400,
      'Invalid format for parameter created_at: yesterday',
    ],
    [
      'a hundred and one tags',
      [
        'POST',
        'unsubscribes',
        { form: { address: 'a@x.org', tag: Array.from({ length: 101 }, (_, n) => `t${n}`) } },
      ],
      400,
      'Invalid format for parameter tags: more than 100 tags',
    ],
    ['broken JSON', ['POST', 'bounces', { body: '[{' }], 400, /^Invalid json: ./],
    [
      'a list of no objects',
      ['POST', 'bounces', { json: ['a@x.org'] }],
      400,
      /^Invalid json: .*\(index 0\)$/,
    ],
    ['an empty list', ['POST', 'bounces', { json: [] }], 400, /^Invalid json: ./],
    ['an unknown page', ['GET', 'bounces?page=middle'], 400, 'Invalid format for parameter page: middle'],
    ['limit 0', ['GET', 'bounces?limit=0'], 400, 'Invalid format for parameter limit: 0'],
    ['a limit in words', ['GET', 'bounces?limit=ten'], 400, 'Invalid format for parameter limit: ten'],
    ['reading unknown', ['GET', 'bounces/no@x.org'], 404, 'Address not found in bounces table'],
    ['removing unknown', ['DELETE', 'bounces/no@x.org'], 404, 'Address not found in bounces table'],
    ['reading unknown', ['GET', 'complaints/no@x.org'], 404, 'No spam complaints found for this address'],
    ['removing unknown', ['DELETE', 'complaints/no@x.org'], 404, 'No spam complaints found for this address'],
    ['reading unknown', ['GET', 'unsubscribes/no@x.org'], 404, 'Address not found in unsubscribers table'],
    [
      'removing unknown',
      ['DELETE', 'unsubscribes/no@x.org'],
      404,
      'Address not found in unsubscribers table',
    ],
    [
      'a tag of unknown',
      ['DELETE', 'unsubscribes/n@x.org?tag=a'],
      404,
      'Address not found in unsubscribers table',
    ],
    ['reading unknown', ['GET', 'whitelists/no.org'], 404, 'Address/Domain not found in allowlist table'],
    ['removing unknown', ['DELETE', 'whitelists/no.org'], 404, 'Address/Domain not found in allowlist table'],
    ['a NUL', ['GET', 'bounces/no%00@x.org'], 404, 'Address not found in bounces table'],
  ]
  for (const [what, [method, rest, options], status, message] of REFUSED) {
    await t.test(`${method} ${rest} with ${what} gives ${status}`, async () => {
      const answer = await call(method, path(rest), options)
      assert.equal(answer.status, status)
      assert.deepEqual(Object.keys(answer.body), ['message'])
      if (message instanceof RegExp) assert.match(answer.body.message, message)
      else assert.equal(answer.body.message, message)
    })
  }

  await t.test('a domain of nobody is not found by any operation', async () => {
    for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists']) {
      for (const [method, rest] of [
        ['GET', ''],
        ['GET', '/a@x.org'],
        ['POST', ''],
        ['POST', '/import'],
        ['DELETE', '/a@x.org'],
        ['DELETE', ''],
      ] as const) {
        const form = method === 'POST' ? { form: { address: 'a@x.org' } } : {}
        const answer = await call(method, `/v3/nobody.example/${kind}${rest}`, form)
        assert.equal(answer.status, 404, `${method} ${kind}${rest}`)
        assert.deepEqual(answer.body, { message: 'Domain not found' })
      }
    }
  })

  const upload = (kind: string, content: string | Uint8Array<ArrayBuffer>) =>
    call('POST', path(kind, '/import'), { form: { file: new File([content], 'list.csv') } })
  const imported = (kind: string, count: number) =>
    eventually(`${count} records in ${kind}`, async () => {
      const { items } = await list(kind, '?limit=1000')
      return items.length === count && items
    })

  await t.test('imports take the columns of each kind, in any order, plain or packed', async () => {
    const files: [kind: string, csv: string, items: object[]][] = [
      [
        'bounces',
        '\uFEFFerror,Address,extra,code,created_at\r\n"5.1.1, ""gone""",A@x.org,?,551,1318528920\r\n,b@x.org\r\nnobody\r\n',
        [
          {
            address: 'a@x.org',
            code: '551',
            error: '5.1.1, "gone"',
            created_at: 'Thu, 13 Oct 2011 18:02:00 UTC',
          },
          { address: 'b@x.org', code: '550', error: '' },
        ],
      ],
      [
        'complaints',
        'address\na@x.org\n\nb@x.org,more',
        [{ address: 'a@x.org', count: 1 }, { address: 'b@x.org' }],
      ],
      [
        'unsubscribes',
        'address,tags\na@x.org,\nb@x.org,"one, two"\nb@x.org,three\nc@x.org,*\n',
        [
          { address: 'a@x.org', tags: ['*'] },
          { address: 'b@x.org', tags: ['one', 'three', 'two'] },
          { address: 'c@x.org', tags: ['*'] },
        ],
      ],
      ['unsubscribes', 'tag,address\none,a@x.org\n', [{ address: 'a@x.org', tags: ['one'] }]],
      [
        'whitelists',
        'address,domain,reason\na@x.org,,one\n,x.org,two\nb@x.org,x.org,both\n,,none\n',
        [
          { type: 'address', value: 'a@x.org', reason: 'one' },
          { type: 'domain', value: 'x.org', reason: 'two' },
        ],
      ],
    ]
    for (const [kind, csv, expected] of files) {
      for (const content of [csv, gzipSync(csv)]) {
        const answer = await upload(kind, content)
        assert.equal(answer.status, 202)
        assert.deepEqual(answer.body, { message: 'file uploaded successfully for processing. standby...' })
        const items = await imported(kind, expected.length)
        for (const [index, item] of expected.entries()) {
          for (const [name, value] of Object.entries(item)) assert.deepEqual(items[index][name], value)
        }
        await clear(kind)
      }
    }
  })

  await t.test('a file without a usable header is refused at once', async () => {
    const broken = new Uint8Array(gzipSync('address\na@x.org\n').subarray(0, 12))
    for (const content of ['', '\n\n', 'a@x.org,550\n', 'name,code\n', '"address', broken]) {
      const answer = await upload('bounces', content)
      assert.equal(answer.status, 400)
      assert.deepEqual(answer.body, { message: 'while reading csv header' })
    }
    const none = await call('POST', path('bounces', '/import'), { form: { other: 'x' } })
    assert.equal(none.body.message, 'Missing mandatory parameter: file')
  })

  await t.test('a file of more than 25 MB is refused', async () => {
    const answer = await upload('bounces', `address\n${'a@x.org\n'.repeat(25 * 131_072)}`)
    assert.equal(answer.status, 413)
    assert.deepEqual(answer.body, { message: 'file size exceeds 25MB limit' })
  })

  await t.test('importing the same file twice leaves the same list', async () => {
    const csv = `address,error\n${Array.from({ length: 900 }, (_, index) => `u${index}@x.org,${index}`).join('\n')}`
    await upload('bounces', csv)
    const once = await imported('bounces', 900)
    await upload('bounces', csv)
    await upload('complaints', 'address\nlast@x.org\n')
    await imported('complaints', 1)
    assert.deepEqual(await imported('bounces', 900), once)
    await clear('bounces')
    await clear('complaints')
  })

  await t.test('keys without the right are refused, an analyst reads the allowlist', async () => {
    const created = await call('POST', '/v1/keys', { form: { role: 'basic', kind: 'user' } })
    const key = created.body.key.secret
    assert.equal((await call('GET', path('bounces'), { key })).status, 403)
    assert.equal((await call('GET', path('whitelists'), { key })).status, 200)
    assert.equal((await call('DELETE', path('whitelists'), { key })).status, 403)
  })

  await t.test('every change is in the audit log with its key, newest first', async () => {
    await add('bounces', { address: 'audited@x.org' })
    await call('DELETE', path('bounces', '/audited@x.org'))
    await addJson('complaints', [{ address: 'b@x.org' }, { address: 'c@x.org' }])
    await clear('complaints')
    const { body } = await call('GET', '/sendwright/v1/audit?limit=4')
    const changes = body.items.map((item: Record<string, unknown>) => [item['action'], item['detail']])
    assert.deepEqual(changes, [
      ['complaints.clear', {}],
      ['complaints.add', { addresses: ['b@x.org', 'c@x.org'] }],
      ['bounces.remove', { addresses: ['audited@x.org'] }],
      ['bounces.add', { addresses: ['audited@x.org'] }],
    ])
    const [first] = body.items
    const keyId = (await call('GET', '/sendwright/v1/audit')).headers.get('x-service-key-id')
    assert.equal(first.key_id, keyId)
    assert.equal(first.subject, service.domain)
    assert.match(first.remote_address, /^127\./)
    const next = (await call('GET', body.paging.next.slice(service.config.publicUrl.length))).body
    assert.equal(next.items.length, 4)
    assert.ok(next.items[0].id < body.items[3].id)
    const back = `/sendwright/v1/audit?limit=4&page=previous&id=${next.items[0].id}`
    assert.deepEqual((await call('GET', back)).body.items, body.items)
    assert.equal((await call('GET', '/sendwright/v1/audit?page=last&limit=1')).body.items.length, 1)
  })

  await t.test('the policy is read, set in parts, and held to its ranges', async () => {
    const policy = `/sendwright/v1/domains/${service.domain}/suppression-policy`
    const standard = {
      hard_bounces_to_suppress: 1,
      soft_bounces_to_suppress: 0,
      window_days: 30,
      lifetime_days: 0,
    }
    assert.deepEqual((await call('GET', policy)).body, standard)
    const set = await call('PUT', policy, { json: { hard_bounces_to_suppress: 3, lifetime_days: 90 } })
    assert.equal(set.status, 200)
    await call('PUT', policy, { form: { soft_bounces_to_suppress: '5', window_days: '7' } })
    assert.deepEqual((await call('GET', policy)).body, {
      hard_bounces_to_suppress: 3,
      soft_bounces_to_suppress: 5,
      window_days: 7,
      lifetime_days: 90,
    })
    for (const json of [{ hard_bounces_to_suppress: -1 }, { window_days: 0 }, { lifetime_days: 'long' }]) {
      assert.equal((await call('PUT', policy, { json })).status, 400)
    }
    assert.equal((await call('PUT', policy, { json: { lifetime_days: 9999 } })).status, 400)
    const unknown = await call('GET', '/sendwright/v1/domains/nobody.example/suppression-policy')
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])
    await call('PUT', policy, { json: standard })
  })

  await t.test('every operation is described', async () => {
    const { paths } = (await call('GET', '/openapi.json')).body
    for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists', 'allowlists']) {
      const at = (rest: string) => Object.keys(paths[`/v3/{domain_name}/${kind}${rest}`] ?? {}).sort()
      assert.deepEqual(at(''), ['delete', 'get', 'post'])
      assert.deepEqual(at('/{address}'), ['delete', 'get'])
      assert.deepEqual(at('/import'), ['post'])
    }
  })
})

test('each list as a CSV file, which makes the same list when it is imported', async (t) => {
  const service = await startTestService(t)
  const path = (kind: string, rest = '') => `/v3/${service.domain}/${kind}${rest}`
  const created_at = 'Thu, 05 Mar 2026 10:00:00 UTC'
  const given: Record<string, object[]> = {
    // A spreadsheet would run the first address and the text.
    bounces: [
      { address: '+odd@example.com', code: '552', error: '=1+1, "full"', created_at },
      { address: 'b@example.com', created_at },
    ],
    complaints: [{ address: 'c@example.com', created_at }],
    unsubscribes: [{ address: 'd@example.com', tags: ['news', 'offers'], created_at }],
    whitelists: [
      { address: 'e@example.com', reason: 'ours', created_at },
      { domain: 'example.net', created_at },
    ],
  }
  for (const [kind, records] of Object.entries(given)) {
    assert.equal((await service.call('POST', path(kind), { json: records })).status, 200)
    const items = async () => (await service.call('GET', path(kind))).body.items as unknown[]
    const before = await items()
    const file = await service.call('GET', path(kind), { headers: { accept: 'text/csv' } })
    assert.match(file.headers.get('content-type') ?? '', /^text\/csv/)
    assert.equal((await service.call('DELETE', path(kind))).status, 200)
    const form = { file: new File([file.text], `${kind}.csv`) }
    assert.equal((await service.call('POST', path(kind, '/import'), { form })).status, 202)
    await eventually(`${kind} imported`, async () => (await items()).length === before.length)
    assert.deepEqual(await items(), before)
  }
  const some = await service.call('GET', path('bounces', '?term=b'), { headers: { accept: 'text/csv' } })
  assert.deepEqual(some.text.replace('\uFEFF', '').split('\r\n').slice(0, 2), [
    'address,code,error,created_at',
    'b@example.com,550,,"Thu, 05 Mar 2026 10:00:00 UTC"',
  ])
})
