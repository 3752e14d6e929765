/** The service answers what the official Go and Java clients ask for: the tables of their calls. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Answer, startTestService, TEST_KEY, type TestService } from '../../support/service.ts'
import { missingIn } from './exchange.ts'
import { SETTINGS } from './scene.ts'
import { type CallTable, type ClientCall, filled } from './tables.ts'

const FOLDER = join(import.meta.dirname, 'tables')
const tables = await Promise.all(
  readdirSync(FOLDER).map(async (file) => ({
    file,
    table: ((await import(join(FOLDER, file))) as { TABLE: CallTable }).TABLE,
  })),
)

let service: TestService
test.before(async (t) => {
  const context = t as TestContext
  const settings = await Promise.all(tables.map(({ table }) => table.surroundings?.(context)))
  const addresses = settings.flatMap((one) => one?.['SENDWRIGHT_IPS'] ?? [])
  service = await startTestService(
    context,
    Object.assign({ ...SETTINGS }, ...settings, { SENDWRIGHT_IPS: addresses.join() }),
  )
})

for (const { file, table } of tables)
  test(`calls of the clients: ${file}`, async () => {
    const names = new Map([['domain', service.domain]])
    for (const [name, value] of Object.entries((await table.prepare?.(service)) ?? {})) names.set(name, value)
    for (const one of table.calls) {
      const answer = await make(one, names)
      const what = `${one.client} ${one.call}: ${answer.text}`
      assert.equal(answer.status, one.status ?? 200, what)
      if (one.response !== undefined) assert.equal(missingIn(answer.body, one.response), null, what)
      for (const [name, member] of Object.entries(one.keep ?? {})) names.set(name, answer.body[member])
    }
  })

async function make(
  { client, method, path, json, form }: ClientCall,
  names: ReadonlyMap<string, string>,
): Promise<Pick<Answer, 'status' | 'text' | 'body'>> {
  const body = json === undefined ? form && formOf(form, names) : filled(JSON.stringify(json), names)
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json'
  const answer = await fetch(service.url + filled(path, names), {
    ...{ method, redirect: 'manual' },
    headers: {
      authorization: `Basic ${btoa(`api:${TEST_KEY}`)}`,
      ...(client === 'java' && { accept: 'application/json' }),
      ...((client === 'java' || body !== undefined) && { 'content-type': type }),
    },
    ...(body !== undefined && { body }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  return { status: answer.status, text, body: isJson ? JSON.parse(text) : null }
}

function formOf(form: NonNullable<ClientCall['form']>, names: ReadonlyMap<string, string>): string {
  const fields = new URLSearchParams()
  for (const [name, value] of Object.entries(form)) fields.append(name, filled(value, names))
  return String(fields)
}
