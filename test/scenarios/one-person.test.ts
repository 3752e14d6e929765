/** What is stored about one person is exported whole, and erased from every table, file and log, and nothing else is. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import pino from 'pino'
import { MADE_ANEW } from '../../src/carry/migrate/catalog.ts'
import { READ_WHOLE } from '../../src/carry/person/fates.ts'
import { signatureOf } from '../../src/carry/person/report.ts'
import { STORES } from '../../src/carry/person/stores.ts'
import type { Store } from '../../src/platform/store/store.ts'
import { rowsNaming } from '../support/account-traces.ts'
import { eachDatabase } from '../support/databases.ts'
import { FILLED_ENV, fillAccount, setFaults } from '../support/fill-account.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { PERSON, PHRASE, plantPerson } from '../support/plant-person.ts'
import { eventually, type TestService } from '../support/service.ts'
import { activeDomain, callAs, createSubaccount, sendFrom, startOpened } from '../support/subaccounts.ts'

const PATH = '/sendwright/v1/people'
const DOMAIN = 'planted.example.com'
/** Written by the background meanwhile, or by this test. */
const CHANGING = new Set([
  'jobs',
  'outgoing_leases',
  'person_tasks',
  'audit',
  'figures',
  'figure_packs',
  'figure_places',
  'nodes',
])
/** Passing work that the test cannot hold. */
const PASSING = new Set(['suppression_imports', 'list_expansions', 'outgoing_posts', 'classified_failures'])
const CHANGING_COLUMNS =
  /^(due_at|attempts|next_check_at|checks_json|state_since|updated_at|lease_\w+|used|recount_at|members_count|version|last_seen)$/

async function run(service: TestService, kind: 'export' | 'erase', dryRun: boolean, call = service.call) {
  const json = { address: 'PLANTED.person@example.org', dry_run: dryRun }
  const started = await call('POST', `${PATH}/${kind}`, { json })
  assert.equal(started.status, 202, started.text)
  const { id } = started.body.task
  return eventually(`${kind} ${id}`, async () => {
    const { body } = await call('GET', `${PATH}/tasks/${id}`)
    assert.notEqual(body.state, 'failed', JSON.stringify(body))
    return body.state === 'done' && body
  })
}

/** Files of a `.tar.gz`. */
function unpack(packed: Buffer): Map<string, string> {
  const bytes = gunzipSync(packed)
  const files = new Map<string, string>()
  for (let at = 0; at < bytes.length && bytes[at] !== 0; ) {
    const name = bytes.toString('latin1', at, bytes.indexOf(0, at))
    const size = Number.parseInt(bytes.toString('latin1', at + 124, at + 135), 8)
    files.set(name, bytes.toString('utf8', at + 512, at + 512 + size))
    at += 512 * (1 + Math.ceil(size / 512))
  }
  return files
}

/** The texts in any letter case, and in base 64 at any alignment. */
function findIn(where: string, bytes: Buffer): string[] {
  const text = bytes.toString('latin1').toLowerCase()
  const forms = [PERSON, PERSON.replace('@', '%40'), PHRASE.toLowerCase()]
  const found = forms.filter((form) => text.includes(form)).map((form) => `${where}: ${form}`)
  const raw = bytes.toString('latin1')
  for (const mark of [PERSON, PHRASE])
    for (const shift of [0, 1, 2]) {
      const form = Buffer.from(`${' '.repeat(shift)}${mark}`)
        .toString('base64')
        .slice(4, -4)
      if (raw.includes(form)) found.push(`${where}: ${mark} in base 64`)
    }
  return found
}

async function traces(store: Store, folder: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    found.push(...findIn(entry.name, await readFile(path)))
  }
  for (const [table, rows] of await rowsNaming(store, ['']))
    for (const row of rows)
      for (const value of Object.values(row))
        found.push(
          ...findIn(table, value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value))),
        )
  return [...new Set(found)]
}

/** Rows that neither name the person nor belong to their mail, without what the background changes. */
async function others(store: Store, ids: readonly string[]): Promise<Map<string, string[]>> {
  const kept = new Map<string, string[]>()
  for (const [table, rows] of await rowsNaming(store, [''])) {
    // What is made from the events goes with them; what is packed or sealed is counted below.
    const isApart = READ_WHOLE.has(table) || Object.hasOwn(MADE_ANEW, table)
    if (CHANGING.has(table) || PASSING.has(table) || isApart) continue
    const texts = rows.map((row) =>
      JSON.stringify(
        Object.entries(row)
          .filter(([name]) => !CHANGING_COLUMNS.test(name))
          .map(([name, value]) => [
            name,
            value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
          ]),
      ),
    )
    kept.set(
      table,
      texts
        .filter((text) => !ids.some((id) => text.includes(id)) && findIn('', Buffer.from(text)).length === 0)
        .sort(),
    )
  }
  return kept
}

/** Lists with another number of members than they say. */
const miscounted = (store: Store) =>
  store.read({
    sql: `SELECT id FROM lists WHERE members_count <> (SELECT count(*) FROM list_members WHERE list_id = lists.id)`,
    values: [],
  })

eachDatabase((database) => {
  test('a person who is everywhere is exported, and then erased from everywhere', async (t) => {
    let log = ''
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        log += chunk.toString()
        done()
      },
    })
    const receiver = await createReceiver({ answer: 500 })
    t.after(receiver.close)
    const opened = await startOpened(t, FILLED_ENV, { database, log: pino({ level: 'trace' }, stream) })
    const { service, core } = opened
    const { store } = core
    await setFaults(service)
    const filled = await fillAccount(service, service.call, DOMAIN, receiver.url)
    await plantPerson(service, core, { ...filled, hook: receiver.url })
    await eventually('the end of all attempts', async () => {
      const sql = `SELECT 1 FROM deliveries WHERE state = 'sending' OR (state = 'queued' AND attempts = 0)
        UNION ALL SELECT 1 FROM list_expansions WHERE state = 'running'`
      return (await store.read({ sql, values: [] })).length === 0
    })
    const folder = service.config.dataFolder
    const mentioned = await traces(store, folder)
    assert.ok(mentioned.length > 2, 'the search finds what was planted')

    const dry = await run(service, 'erase', true)
    const missing = Object.entries(STORES).flatMap(([name, { does }]) =>
      (does === 'erased' || does === 'pseudonymised') && !dry.counts[name] && !PASSING.has(name)
        ? [name]
        : [],
    )
    assert.deepEqual(missing, ['person_tasks', ...NOT_PLANTED].sort(), 'every other store was planted')
    assert.equal((await traces(store, folder)).length, mentioned.length, 'a dry run changes nothing')

    const exported = await run(service, 'export', false)
    const download = `${service.url}${PATH}/tasks/${exported.id}/download`
    const authorization = `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}`
    const packed = await fetch(download, { headers: { authorization } })
    assert.equal(packed.status, 200)
    const files = unpack(Buffer.from(await packed.arrayBuffer()))
    const named = (end: string) => [...files].filter(([name]) => name.endsWith(end))
    assert.ok(named('.eml').some(([, text]) => text.includes(PHRASE)))
    assert.ok(files.get('person/index.html')?.includes(PERSON))
    for (const [name, text] of named('.html')) assert.doesNotMatch(text, /<script/i, name)
    for (const name of ['events', 'messages', 'list_members', 'suppressions', 'audit', 'consent_trail'])
      assert.ok(files.has(`person/${name}/0001.json`), name)
    for (const [name, text] of named('.json')) {
      JSON.parse(text)
      assert.ok(!text.includes('other@example.org'), `${name} shows another person`)
    }

    const own = 'SELECT id FROM deliveries WHERE lower(recipient) = ?'
    const captured = 'SELECT id FROM inbox WHERE lower(envelope_to_json) = ?'
    const ids = [
      ...(await store.read({ sql: own, values: [PERSON] })),
      ...(await store.read({ sql: captured, values: [JSON.stringify([PERSON])] })),
    ].map(({ id }) => String(id))
    const before = await others(store, ids)
    const logged = log.length
    const erased = await run(service, 'erase', false)
    assert.equal((await service.call('GET', `${PATH}/tasks/${exported.id}/download`)).status, 404)
    assert.deepEqual(await traces(store, folder), [])
    assert.deepEqual(findIn('the log', Buffer.from(log.slice(logged))), [])
    const { exports, idempotency_keys: answers, validation_jobs: lists } = erased.counts
    assert.deepEqual(
      [exports, answers, lists],
      [
        { found: 1, erased: 1 },
        { found: 1, erased: 1 },
        { found: 1, pseudonymised: 1 },
      ],
    )
    assert.deepEqual(await miscounted(store), [], 'lists count their members')
    assert.ok(erased.counts.events.erased > 0 && erased.counts.audit.pseudonymised > 0)
    const after = await others(store, [])
    for (const [table, rows] of before) {
      const now = new Set(after.get(table) ?? [])
      assert.deepEqual(
        rows.filter((row) => !now.has(row)),
        [],
        `${table} has lost nothing of others`,
      )
    }

    await t.test('mail to the person is still suppressed, and the record can be removed', async () => {
      const refusal = async () => {
        const form = { from: `shop@${DOMAIN}`, to: PERSON, subject: 'Again', text: 'Hi.' }
        assert.equal((await service.call('POST', `/v3/${DOMAIN}/messages`, { form })).status, 200)
        return eventually('a refusal', async () => {
          const query = `event=failed&recipient=${PERSON}`
          return (await service.events(`?${query}`, DOMAIN))[0]
        })
      }
      assert.match(String((await refusal())['reason']), /^suppress-/)
      for (const kind of ['bounces', 'complaints', 'unsubscribes']) {
        const path = `/v3/${DOMAIN}/${kind}/${PERSON}`
        assert.equal((await service.call('GET', path)).status, 200, kind)
        assert.equal((await service.call('DELETE', path)).status, 200, kind)
        assert.equal((await service.call('GET', path)).status, 404, kind)
      }
    })

    await t.test('the report is signed with the key of webhooks', async () => {
      const { report, signature } = (await service.call('GET', `${PATH}/tasks/${erased.id}/report`)).body
      const { http_signing_key: key } = (await service.call('GET', '/v5/accounts/http_signing_key')).body
      assert.equal(signature.value, signatureOf(key, report))
      assert.deepEqual(report.counts, erased.counts)
      assert.ok(report.kept.some(({ store }: { store: string }) => store === 'backups'))
    })
  })

  test('the admin of a subaccount reaches its own people only', async (t) => {
    const opened = await startOpened(t, FILLED_ENV, { database })
    const { service, core } = opened
    const call = callAs(service, await createSubaccount(service, 'child'))
    await activeDomain(core, call, 'child.example.com')
    await activeDomain(core, service.call, 'parent.example.com')
    await sendFrom(call, 'child.example.com', { to: PERSON })
    await sendFrom(service.call, 'parent.example.com', { to: PERSON })
    const eventsOf = async (domain: string) => {
      const rows = (await rowsNaming(core.store, [domain])).get('events') ?? []
      return rows.filter(({ recipient }) => recipient === PERSON).length
    }
    await eventually(
      'both',
      async () => (await eventsOf('parent.example.com')) === 2 && (await eventsOf('child.example.com')) === 2,
    )
    const { id } = await run(service, 'erase', false, call)
    assert.deepEqual([await eventsOf('child.example.com'), await eventsOf('parent.example.com')], [0, 2])
    assert.equal(
      (await service.call('GET', `${PATH}/tasks/${id}`)).status,
      404,
      "the subaccount's task is its own",
    )
    const missing = await call('POST', `${PATH}/erase`, { json: { address: PERSON } })
    assert.equal(missing.body.task.dry_run, true, 'it only counts by default')
    await run(service, 'erase', false)
    assert.equal(await eventsOf('parent.example.com'), 0, 'the operator reaches all')
    await sendFrom(service.call, 'parent.example.com', { to: 'later@example.org' })
    await eventually('events afterwards are found', async () => {
      const query = '?event=delivered&recipient=later@example.org'
      return (await service.events(query, 'parent.example.com')).length === 1
    })
  })
})

/** Filled by what the test does not do. */
const NOT_PLANTED: string[] = []
