/**
 * Data folders as releases left them, one file each in test/fixtures/releases: a header in JSON, a line end, and the contents of
 * the files that it lists, all compressed with Brotli. Every table has rows, and some mail is queued.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import { VERSION } from '../../src/base/process/version.ts'
import { addRows, rowsFor } from './account-rows.ts'
import { FILLED_ENV, fillAccount, setFaults } from './fill-account.ts'
import { createReceiver } from './http-receiver.ts'
import { eventually } from './service.ts'
import { startOpened } from './subaccounts.ts'

export const FIXTURES = join(import.meta.dirname, '../fixtures/releases')
const ENDING = '.br'

export interface ReleaseFixture {
  /** The release that made it. */
  version: string
  schema: number
  /** Rows by table. */
  rows: Record<string, number>
  /** A domain that exists. */
  domain: string
  /** Recipients of mail that is not sent yet. */
  waiting: string[]
  files: { path: string; sizeBytes: number }[]
}

/** Names of all, oldest first. */
export const fixtureNames = (): string[] =>
  readdirSync(FIXTURES)
    .filter((name) => name.endsWith(ENDING))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))

/** Writes the files of a fixture into `folder`. */
export function unpackFixture(name: string, folder: string): ReleaseFixture {
  const bytes = brotliDecompressSync(readFileSync(join(FIXTURES, name)))
  const end = bytes.indexOf('\n')
  const fixture = JSON.parse(bytes.subarray(0, end).toString()) as ReleaseFixture
  let at = end + 1
  for (const { path, sizeBytes } of fixture.files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, path), bytes.subarray(at, at + sizeBytes), { mode: 0o600 })
    at += sizeBytes
  }
  assert.equal(at, bytes.byteLength)
  keepWaiting(folder)
  return fixture
}

/** Mail that was tried once is given up after eight hours; a fixture is older than that. */
function keepWaiting(folder: string): void {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec(`UPDATE deliveries SET expires_at = ${LATER} WHERE state IN ('scheduled', 'queued')`)
  database.close()
}

const DOMAIN = 'fixture.example.com'

/** Makes the fixture of this version and schema, and returns its path. */
export async function makeFixture(t: TestContext): Promise<string> {
  const receiver = await createReceiver({ answer: 500 })
  t.after(receiver.close)
  const opened = await startOpened(t, FILLED_ENV)
  const { service } = opened
  await setFaults(service)
  const { domainId } = await fillAccount(
    service,
    (method, path, options) => service.call(method, path, options),
    DOMAIN,
    receiver.url,
  )
  const accountId = service.service.first.accountId
  const { store } = opened.core
  await addRows(store, rowsFor(accountId, domainId, DOMAIN))
  await eventually(
    'figures',
    async () => (await store.read({ sql: 'SELECT 1 FROM figures LIMIT 1', values: [] })).length > 0,
  )
  const [user] = await store.read({ sql: 'SELECT id, email FROM users LIMIT 1', values: [] })
  const [login] = await store.read({ sql: 'SELECT login FROM credentials LIMIT 1', values: [] })
  await addRows(store, passingRows({ ...user, ...login, accountId }))
  await service.service.stop()
  return pack(service.config.dataFolder)
}

/** Far enough that no job takes them. */
const LATER = 4_000_000_000_000

/** Of tables whose rows come and go, or that need another server. */
const passingRows = (known: Record<string, unknown>): Record<string, object> => ({
  suppression_imports: {
    ...{
      id: 'import',
      account_id: 'none',
      domain_id: 'none',
      kind: 'bounces',
      blob: 'b'.repeat(22),
      rows_done: 1,
    },
    ...{ rows_bad: 0, attempts: 0, lease_token: 't', lease_owner: 'o', lease_until: LATER, created_at: 1 },
  },
  domain_deletions: {
    domain_id: 'none',
    name: 'gone.example.com',
    domain_json: '{}',
    due_at: LATER,
    attempts: 1,
  },
  outgoing_leases: { lane: 'none', owner: 'o', token: 't', until_at: LATER },
  mta_sts_policies: {
    domain: 'sts.example.com',
    policy_id: '1',
    policy_text: 'version: STSv1',
    expires_at: LATER,
  },
  acme_challenges: { token: 'token', host: 'h.example.com', answer: 'a', ends_at: LATER },
  acme_accounts: {
    directory: 'https://acme.example.com',
    key_sealed: Buffer.of(1, 0, 255),
    url: null,
    contact: '',
  },
  counted_visits: { visit: 'visit', counted_at: LATER },
  login_places: { login: known['login'], network: '192.0.2.0/24', last_at: LATER },
  recovery_codes: { user_id: known['id'], digest: 'digest' },
  user_places: { login: known['email'], network: '192.0.2.0/24', last_at: LATER },
  account_changes: { account_id: 'none', changed_at: 1, due_at: LATER, attempts: 0 },
  account_rate_limits: { account_id: known['accountId'], name: 'sending', count: 100_000 },
  user_identities: { issuer: 'https://id.example.com', subject: 's', user_id: known['id'], linked_at: 1 },
  oidc_sign_ins: { digest: 'digest', expires_at: LATER },
  met_challenges: { digest: 'digest', expires_at: LATER },
  passkeys: {
    ...{ id: 'passkey', user_id: known['id'], credential_id: 'AQID', public_key: Buffer.of(1, 0, 255) },
    ...{ counter: 1, transports: 'internal', name: 'Phone', created_at: 1 },
  },
  shared_ip_exclusions: { account_id: 'none' },
  ip_tasks: {
    ...{ id: 'task', account_id: 'none', kind: 'none', params_json: '{}', position: '', created_at: 1 },
    ...{ updated_at: LATER },
  },
  greylist: { key: 'key', since_at: 1, expires_at: LATER },
  forwarded_copies: { mail: 'mail', address: 'address', expires_at: LATER },
  dynamic_pool_tasks: {
    account_id: 'none',
    with_subaccounts: 0,
    initiated_by: 'k',
    position: '',
    updated_at: LATER,
  },
  ip_blocks: {
    ...{ ip: '192.0.2.1', site: 'mx.example.com', provider: 'p', reply: '550 blocked', since_at: 1 },
    ...{ until_at: LATER, pause_ms: 1, times: 1, cleared_at: null, listed_by: null },
  },
  ip_names: { ip: '192.0.2.1', good_at: 1 },
  nodes: {
    ...{ id: 'node', host: 'h', roles_json: '[]', addresses_json: '[]', version: VERSION, state: 'running' },
    ...{ started_at: 1, last_seen_at: 1 },
  },
  validation_probes: { key: 'key', result: 'unknown', until_at: LATER },
  placement_seeds: {
    ...{ test_id: 'none', address: 'seed@example.com', provider: 'p', state: 'done', destination: 'inbox' },
    ...{ category: '', seconds: 1, facts_json: '{}' },
  },
  tls_results: {
    ...{ day: '2100-01-01', recipient_domain: 'd', policy_domain: 'd', policy_type: 'sts', mx_host: 'm' },
    ...{ result_type: '', sending_ip: '192.0.2.1', sessions: 1 },
  },
  tls_reports: {
    day: '2100-01-01',
    domain: 'd',
    uri: 'mailto:x@d',
    id: 'r',
    content: null,
    created_at: LATER,
  },
})

/** Rows by table. */
export function countRows(folder: string): Record<string, number> {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  const names = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    .all()
  const counted = names.map(({ name }) => [
    String(name),
    Number(database.prepare(`SELECT count(*) AS rows FROM ${name}`).get()?.['rows']),
  ])
  database.close()
  return Object.fromEntries(counted) as Record<string, number>
}

function pack(folder: string): string {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec("UPDATE deliveries SET due_at = 1 WHERE state IN ('scheduled', 'queued'); VACUUM")
  database.exec('PRAGMA journal_mode = DELETE')
  const schema = Number(
    database.prepare('SELECT max(version) AS newest FROM schema_versions').get()?.['newest'],
  )
  const waiting = database
    .prepare("SELECT recipient FROM deliveries WHERE state IN ('scheduled', 'queued') ORDER BY recipient")
    .all()
    .map(({ recipient }) => String(recipient))
  database.close()
  const rows = countRows(folder)
  const empty = Object.keys(rows).filter((name) => rows[name] === 0)
  assert.deepEqual(empty, [], 'every table has rows: add some in fill-account.ts, account-rows.ts or here')
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => /^(sendwright\.db|secret|blobs\/.*)$/.test(path))
    .sort()
  const contents = paths.map((path) => readFileSync(join(folder, path)))
  const files = paths.map((path, at) => ({ path, sizeBytes: contents[at]?.byteLength ?? 0 }))
  const fixture: ReleaseFixture = { version: VERSION, schema, rows, domain: DOMAIN, waiting, files }
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(fixture)}\n`), ...contents])
  const target = join(FIXTURES, `${VERSION}-schema-${schema}${ENDING}`)
  mkdirSync(FIXTURES, { recursive: true })
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 }
  writeFileSync(target, brotliCompressSync(bytes, { params }))
  return target
}
