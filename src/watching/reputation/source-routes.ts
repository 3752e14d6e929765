/** Credentials of Gmail Postmaster Tools and Microsoft SNDS over HTTP, for the operator (reputation.md section 1). */
import { NotFound } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { ReputationSourceRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { trials } from './reading.ts'
import { GOOGLE_BODY, GOOGLE_SOURCE, SNDS_BODY, SNDS_SOURCE, SOURCE_TEST } from './shapes.ts'
import { SourceFailure } from './source-failure.ts'
import { givenGoogle, givenSnds, type SourceName, type Sources } from './sources.ts'

const api = operationsOf({ tag: 'Reputation', auth: { area: 'account', only: 'first' } })
const PATH = '/sendwright/v1/reputation-sources'
const NOT_FOUND = 'No credentials are stored'
const REMOVED = message('success', 'Removed; what was read stays')
const NAMES = { google: 'Gmail Postmaster Tools', snds: 'Microsoft SNDS' } as const
/** Domains in the view of the source. */
const DOMAINS_MAX = 1_000

interface SourceRouteParts extends Pick<Core, 'store' | 'clock'> {
  sources: Sources
  client: Pick<HttpClient, 'send'>
  domains: Pick<DomainDirectory, 'byName'>
  /** Credentials were stored. */
  changed(): void
}

export function sourceRoutes(parts: SourceRouteParts): Operation[] {
  return [...googleRoutes(parts), ...sndsRoutes(parts)]
}

function googleRoutes(parts: SourceRouteParts): Operation[] {
  const { sources } = parts

  async function view() {
    const { row, credentials } = await sources.read('google')
    const { settings, secrets } = credentials
    return {
      ...settings,
      has_client_secret: secrets.client_secret !== null,
      has_refresh_token: secrets.refresh_token !== null,
      ...stateOf(row),
      domains: await listedDomains(parts.store),
    }
  }

  return [
    api.get(`${PATH}/google`, {
      id: 'readGoogleReputationSource',
      summary: 'How Gmail Postmaster Tools are read, and whether they can be',
      description: 'For the first account only.',
      answers: { 200: GOOGLE_SOURCE, 404: NOT_FOUND },
      async handler() {
        return view()
      },
    }),
    api.put(`${PATH}/google`, {
      id: 'replaceGoogleReputationSource',
      audit: { given: ['grant', 'client_id', 'subject', 'token_url', 'api_url'] },
      summary: 'Store credentials of Gmail Postmaster Tools, and read them at once',
      description:
        'For the first account only. An absent secret stays while it goes to the same client and the same URLs.',
      body: GOOGLE_BODY,
      answers: { 200: GOOGLE_SOURCE },
      async handler({ document }) {
        const before = await sources.find('google')
        await sources.put('google', givenGoogle(document(), before?.credentials ?? null))
        parts.changed()
        return view()
      },
    }),
    removal(parts, 'google', 'deleteGoogleReputationSource'),
    trial('google', 'testGoogleReputationSource', async (signal) =>
      trials.google(parts, await sources.read('google'), signal),
    ),
  ]
}

function sndsRoutes(parts: SourceRouteParts): Operation[] {
  const { sources } = parts

  async function view() {
    const { row, credentials } = await sources.read('snds')
    return { ...credentials.settings, ...stateOf(row), read_through: dateOrNull(row.read_through) }
  }

  return [
    api.get(`${PATH}/snds`, {
      id: 'readSndsReputationSource',
      summary: 'How Microsoft SNDS is read, and whether it can be',
      description: 'For the first account only.',
      answers: { 200: SNDS_SOURCE, 404: NOT_FOUND },
      async handler() {
        return view()
      },
    }),
    api.put(`${PATH}/snds`, {
      id: 'replaceSndsReputationSource',
      audit: { given: ['api_url'] },
      summary: 'Store the key of Microsoft SNDS, and read it at once',
      description: 'For the first account only. An absent key stays while the URL does.',
      body: SNDS_BODY,
      answers: { 200: SNDS_SOURCE },
      async handler({ document }) {
        const before = await sources.find('snds')
        await sources.put('snds', givenSnds(document(), before?.credentials ?? null))
        parts.changed()
        return view()
      },
    }),
    removal(parts, 'snds', 'deleteSndsReputationSource'),
    trial('snds', 'testSndsReputationSource', async (signal) =>
      trials.snds(parts, await sources.read('snds'), signal),
    ),
  ]
}

const removal = (parts: SourceRouteParts, name: SourceName, id: string): Operation =>
  api.delete(`${PATH}/${name}`, {
    id,
    summary: `Remove the credentials of ${NAMES[name]}`,
    description: 'For the first account only. What was read stays for its year.',
    answers: { 200: REMOVED, 404: NOT_FOUND },
    async handler() {
      if (!(await parts.sources.remove(name))) throw new NotFound(NOT_FOUND)
      return { message: 'success' }
    },
  })

const trial = (name: SourceName, id: string, ask: (signal: AbortSignal) => Promise<string>): Operation =>
  api.post(`${PATH}/${name}/test`, {
    id,
    audit: { made: ['ok'] },
    summary: `Ask ${NAMES[name]} now, with the stored credentials`,
    description: 'For the first account only. Nothing is stored.',
    answers: { 200: SOURCE_TEST, 404: NOT_FOUND },
    async handler({ signal }) {
      try {
        return { ok: true, result: await ask(signal) }
      } catch (error) {
        if (!(error instanceof SourceFailure)) throw error
        return { ok: false, result: error.message }
      }
    },
  })

const timeOf = (ms: number) => formatRfc3339(new Date(Number(ms)))
const timeOrNull = (ms: number | null) => (ms === null ? null : timeOf(ms))
const dateOrNull = (day: number | null) => (day === null ? null : timeOf(day).slice(0, 10))

const stateOf = (row: ReputationSourceRow) => ({
  created_at: timeOf(row.created_at),
  updated_at: timeOf(row.updated_at),
  last_read_at: timeOrNull(row.read_at),
  next_read_at: timeOf(row.next_at),
  failures: Number(row.failures),
  error: row.failure,
  error_at: timeOrNull(row.failed_at),
  failing_since: timeOrNull(row.failing_since),
})

async function listedDomains(store: Store) {
  const rows = await store.db
    .selectFrom('gmail_domains')
    .innerJoin('domains', 'domains.id', 'gmail_domains.domain_id')
    .select(['domains.name', 'read_through', 'failure'])
    .orderBy('domains.name')
    .limit(DOMAINS_MAX)
    .execute()
  return rows.map(({ name, read_through, failure }) => ({
    ...{ name, read_through: dateOrNull(read_through), error: failure },
  }))
}
