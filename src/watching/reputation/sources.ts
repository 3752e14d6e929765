/** Credentials of the two sources, sealed, and how reading them goes. */
import { BadRequest, present } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { confidentialUrl } from '../../platform/config/parsers.ts'
import type { ReputationSourceRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { GOOGLE_URLS, type GoogleBody, SNDS_URL, type SndsBody } from './shapes.ts'
import { type SourceFailure, waitAfter } from './source-failure.ts'

export type SourceName = 'google' | 'snds'

interface Credentials<S, T> {
  settings: S
  secrets: T
}
export type GoogleCredentials = Credentials<
  {
    grant: GoogleBody['grant']
    client_id: string
    subject: string | null
    token_url: string
    api_url: string
  },
  { client_secret: string | null; refresh_token: string | null }
>
export type SndsCredentials = Credentials<{ api_url: string }, { key: string }>
export type CredentialsOf<N extends SourceName> = N extends 'google' ? GoogleCredentials : SndsCredentials

export interface Source<N extends SourceName> {
  row: ReputationSourceRow
  credentials: CredentialsOf<N>
}

const SEALED_AS = 'reputation-source'

export type Sources = ReturnType<typeof createSources>

export function createSources(store: Store, sealer: Sealer, clock: Clock) {
  const nowMs = () => Math.floor(clock.now())

  async function find<N extends SourceName>(name: N): Promise<Source<N> | null> {
    const row = await store.db
      .selectFrom('reputation_sources')
      .selectAll()
      .where('name', '=', name)
      .executeTakeFirst()
    if (row === undefined) return null
    const secrets = JSON.parse(sealer.open(SEALED_AS, row.secrets_sealed, name).toString()) as unknown
    const credentials = { settings: JSON.parse(row.settings_json) as unknown, secrets }
    return { row, credentials: credentials as CredentialsOf<N> }
  }

  return {
    find,
    /** @throws NotFound */
    async read<N extends SourceName>(name: N): Promise<Source<N>> {
      return present(await find(name), 'No credentials are stored')
    },
    /** Stores credentials, which are read with at once. What was read before stays. */
    async put<N extends SourceName>(name: N, { settings, secrets }: CredentialsOf<N>): Promise<void> {
      const now = nowMs()
      const sealed = sealer.seal(SEALED_AS, JSON.stringify(secrets), name)
      await store.commit([
        {
          sql: `INSERT INTO reputation_sources
              (name, settings_json, secrets_sealed, revision, created_at, updated_at, next_at, failures)
            VALUES (?, ?, ?, 1, ?, ?, 0, 0)
            ON CONFLICT (name) DO UPDATE SET settings_json = excluded.settings_json,
              secrets_sealed = excluded.secrets_sealed, revision = reputation_sources.revision + 1,
              updated_at = excluded.updated_at, next_at = 0, failures = 0, failing_since = NULL, failed_at = NULL,
              failure = NULL`,
          values: [name, JSON.stringify(settings), sealed, now, now],
        },
      ])
    },
    /** False: none were stored. */
    async remove(name: SourceName): Promise<boolean> {
      const [result] = await store.commit([
        { sql: 'DELETE FROM reputation_sources WHERE name = ?', values: [name] },
      ])
      return result?.affected === 1
    },
    /** For a unit that stores the days up to `day`; SNDS only. */
    readThrough: ({ name, revision }: ReputationSourceRow, day: number): Statement => ({
      sql: `UPDATE reputation_sources SET read_through = ? WHERE name = ? AND revision = ?
        AND (read_through IS NULL OR read_through < ?)`,
      values: [day, name, revision, day],
    }),
    async succeeded({ name, revision }: ReputationSourceRow, nextAt: number): Promise<void> {
      await store.commit([
        {
          sql: `UPDATE reputation_sources SET read_at = ?, next_at = ?, failures = 0, failing_since = NULL,
              failed_at = NULL, failure = NULL
            WHERE name = ? AND revision = ?`,
          values: [nowMs(), nextAt, name, revision],
        },
      ])
    },
    async failed(row: ReputationSourceRow, failure: SourceFailure): Promise<void> {
      const now = nowMs()
      const failures = Number(row.failures) + 1
      const waitMs = Math.max(waitAfter(failures), failure.retryMs ?? 0)
      await store.commit([
        {
          sql: `UPDATE reputation_sources SET next_at = ?, failures = ?, failed_at = ?, failure = ?,
              failing_since = COALESCE(failing_since, ?)
            WHERE name = ? AND revision = ?`,
          values: [now + waitMs, failures, now, failure.message, now, row.name, row.revision],
        },
      ])
    },
  }
}

/** @throws BadRequest */
export function givenGoogle(body: GoogleBody, before: GoogleCredentials | null): GoogleCredentials {
  const settings = {
    ...{ grant: body.grant, client_id: body.client_id, subject: body.subject ?? null },
    token_url: urlOf('token_url', body.token_url ?? GOOGLE_URLS.token_url),
    api_url: urlOf('api_url', body.api_url ?? GOOGLE_URLS.api_url),
  }
  // Secrets go to nobody else than those they were given for.
  const isSame =
    before !== null &&
    (['client_id', 'token_url', 'api_url'] as const).every((name) => before.settings[name] === settings[name])
  const kept = isSame ? before.secrets : { client_secret: null, refresh_token: null }
  const secrets = {
    client_secret: body.client_secret ?? kept.client_secret,
    refresh_token: settings.grant === 'refresh_token' ? (body.refresh_token ?? kept.refresh_token) : null,
  }
  if (settings.grant === 'jwt_bearer' && secrets.client_secret === null)
    throw new BadRequest('client_secret is missing: a service account needs its private key')
  if (settings.grant === 'refresh_token' && secrets.refresh_token === null)
    throw new BadRequest('refresh_token is missing')
  return { settings, secrets }
}

/** @throws BadRequest */
export function givenSnds(body: SndsBody, before: SndsCredentials | null): SndsCredentials {
  const settings = { api_url: urlOf('api_url', body.api_url ?? SNDS_URL) }
  const key = body.key ?? (before?.settings.api_url === settings.api_url ? before.secrets.key : undefined)
  if (key === undefined) throw new BadRequest('key is missing')
  return { settings, secrets: { key } }
}

function urlOf(name: string, text: string): string {
  const url = confidentialUrl(text)
  if (url === null || url.search !== '')
    throw new BadRequest(`${name} must be an https URL without a query and without a login`)
  return url.href
}
