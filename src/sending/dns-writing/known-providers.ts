/** The DNS providers of accounts: how a request becomes a row, and a row becomes something that writes. */

import { isIP } from 'node:net'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import { confidentialUrl, hostName } from '../../platform/config/parsers.ts'
import { createHostNames } from '../../platform/posts/http-client.ts'
import { lockedAccount } from '../../platform/store/account-rows.ts'
import type { DnsProviderRow } from '../../platform/store/schema.ts'
import { normalizeName } from '../../protocols/dns/names.ts'
import type { TsigKey } from '../../protocols/dns/tsig.ts'
import type { DnsProvider } from './provider.ts'
import { type ApiParts, createApi } from './providers/api.ts'
import { cloudflareWords, createCloudflare } from './providers/cloudflare.ts'
import { createDesec, desecWords } from './providers/desec.ts'
import { createHetzner, hetznerWords, isHetznerBusy } from './providers/hetzner.ts'
import { createUpdateServer } from './providers/rfc2136.ts'
import { createRoute53, isRoute53Busy, route53Headers, route53Words } from './providers/route53.ts'
import type { GivenProvider, ProviderKind, ProviderView } from './shapes.ts'

/** What is no secret, as it is stored. */
type Settings = Partial<
  Pick<GivenProvider, 'server' | 'key_name' | 'algorithm' | 'access_key_id' | 'api_url'>
>

interface OpenParts extends ApiParts {
  resolve(host: string): Promise<readonly string[]>
  allow: Core['allow']
}

interface Kind {
  /** Settings that there must be, and those that there may be. */
  needs: readonly (keyof Settings)[]
  takes: readonly (keyof Settings)[]
  open(parts: OpenParts, settings: Settings, secret: string): DnsProvider
}

/** For kinds with a token in one field of the header. */
const tokenKind = (
  who: string,
  baseUrl: string,
  scheme: string,
  wordsOf: (body: unknown) => string,
  create: (api: ReturnType<typeof createApi>, parts: OpenParts) => DnsProvider,
  isBusy?: (status: number, body: unknown) => boolean,
): Kind => ({
  needs: [],
  takes: ['api_url'],
  open: (parts, { api_url: url = baseUrl }, secret) => {
    const headers = () => ({ authorization: `${scheme} ${secret}` })
    return create(
      createApi(parts, { who, baseUrl: url, secret, headers, wordsOf, ...(isBusy && { isBusy }) }),
      parts,
    )
  },
})

const ROUTE53_URL = 'https://route53.amazonaws.com'
const DNS_PORT = 53

/** Providers by kind: data, and one function each. */
const KINDS: Readonly<Record<ProviderKind, Kind>> = {
  cloudflare: tokenKind(
    ...(['Cloudflare', 'https://api.cloudflare.com/client/v4', 'Bearer'] as const),
    ...[cloudflareWords, createCloudflare],
  ),
  desec: tokenKind(...(['deSEC', 'https://desec.io/api/v1', 'Token'] as const), ...[desecWords, createDesec]),
  hetzner: tokenKind(
    ...(['Hetzner', 'https://api.hetzner.cloud/v1', 'Bearer'] as const),
    hetznerWords,
    (api, { clock, signal }) => createHetzner(api, clock, signal),
    isHetznerBusy,
  ),
  route53: {
    needs: ['access_key_id'],
    takes: ['access_key_id', 'api_url'],
    open(parts, { access_key_id: id = '', api_url: baseUrl = ROUTE53_URL }, secret) {
      const headers = route53Headers(parts.clock, new URL(baseUrl).host, id, secret)
      const options = { who: 'Route 53', baseUrl, secret, headers, wordsOf: route53Words }
      return createRoute53(createApi(parts, { ...options, isBusy: isRoute53Busy, read: (text) => text }))
    },
  },
  rfc2136: {
    needs: ['server', 'key_name'],
    takes: ['server', 'key_name', 'algorithm'],
    open(parts, { server = '', key_name: name = '', algorithm = 'hmac-sha256' }, secret) {
      const key: TsigKey = { name, algorithm, secret: Buffer.from(secret, 'base64') }
      return createUpdateServer({ ...parts, ...serverOf(server), key })
    },
  },
}

/** @throws BadRequest */
function serverOf(text: string): { host: string; port: number } {
  const [, inBrackets, bare, port = String(DNS_PORT)] =
    /^(?:\[([\da-f:.]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const host = inBrackets ?? bare ?? ''
  const isUsable = isIP(host) !== 0 || isHostName(host)
  if (!isUsable || Number(port) < 1 || Number(port) > 65_535)
    throw new BadRequest('Invalid parameter: server')
  return { host: host.toLowerCase(), port: Number(port) }
}

function isHostName(text: string): boolean {
  try {
    return hostName(text) !== ''
  } catch {
    return false
  }
}

const SEALED_AS = 'dns-provider'
/** Each is asked for its zones where a domain names none. */
const PROVIDERS_MAX = 10

export type KnownProviders = ReturnType<typeof createKnownProviders>

export function createKnownProviders({ store, sealer, clock, httpClient, resolver, allow }: Core) {
  const { db } = store
  const resolve = createHostNames(resolver, clock)
  const ownerOf = (accountId: string, name: string) => `${accountId} ${name}`

  const find = (accountId: string, name: string) =>
    db
      .selectFrom('dns_providers')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('name', '=', name)
      .executeTakeFirst()

  /** Settings and secret of a request. @throws BadRequest */
  function given(body: GivenProvider, before: DnsProviderRow | undefined) {
    const { kind, secret } = body
    const { needs, takes } = KINDS[kind]
    const settings: Settings = {}
    for (const [member, value] of Object.entries(body)) {
      if (member === 'kind' || member === 'secret') continue
      if (!(takes as readonly string[]).includes(member)) throw new BadRequest(`${member} is not for ${kind}`)
      Object.assign(settings, { [member]: value })
    }
    const missing = needs.find((member) => settings[member] === undefined)
    if (missing !== undefined) throw new BadRequest(`Missing mandatory parameter: ${missing}`)
    const checked = checkedSettings(kind, settings)
    if (secret !== undefined && secretFault(kind, secret)) throw new BadRequest('Invalid parameter: secret')
    // A stored secret goes nowhere else than where it was for.
    const stays = before?.kind === kind && before.settings_json === JSON.stringify(checked)
    if (secret === undefined && !stays) throw new BadRequest('Missing mandatory parameter: secret')
    return { kind, settings_json: JSON.stringify(checked), secret }
  }

  return {
    async list(accountId: string): Promise<DnsProviderRow[]> {
      const rows = db.selectFrom('dns_providers').selectAll().where('account_id', '=', accountId)
      return rows.orderBy('name').execute()
    },

    /** @throws NotFound */
    async one(accountId: string, name: string): Promise<DnsProviderRow> {
      const row = await find(accountId, name)
      if (row === undefined) throw new NotFound('DNS provider not found')
      return row
    },

    /** @throws BadRequest for a fault, a missing secret, or over PROVIDERS_MAX */
    async put(accountId: string, name: string, body: GivenProvider): Promise<DnsProviderRow> {
      const now = Math.floor(clock.now())
      const before = await find(accountId, name)
      const { secret, ...row } = given(body, before)
      const sealed =
        secret === undefined
          ? (before as DnsProviderRow).secret_sealed
          : sealer.seal(SEALED_AS, secret, ownerOf(accountId, name))
      const change = { ...row, secret_sealed: sealed, updated_at: now }
      await lockedAccount(store, accountId, async (tx) => {
        const names = await tx
          .selectFrom('dns_providers')
          .select('name')
          .where('account_id', '=', accountId)
          .execute()
        if (names.length >= PROVIDERS_MAX && !names.some((one) => one.name === name))
          throw new BadRequest(`at most ${PROVIDERS_MAX} DNS providers`)
        await tx
          .insertInto('dns_providers')
          .values({ account_id: accountId, name, created_at: now, ...change })
          .onConflict((conflict) => conflict.columns(['account_id', 'name']).doUpdateSet(change))
          .execute()
      })
      return (await find(accountId, name)) as DnsProviderRow
    },

    /** @throws NotFound */
    async remove(accountId: string, name: string): Promise<void> {
      const { numDeletedRows } = await db
        .deleteFrom('dns_providers')
        .where('account_id', '=', accountId)
        .where('name', '=', name)
        .executeTakeFirst()
      if (Number(numDeletedRows) === 0) throw new NotFound('DNS provider not found')
    },

    removeAll: (accountId: string) =>
      db.deleteFrom('dns_providers').where('account_id', '=', accountId).execute(),

    /** For one operation: `signal` and `untilMs` end its requests. */
    open(row: DnsProviderRow, limits: Pick<ApiParts, 'signal' | 'untilMs'>): DnsProvider {
      const secret = sealer.open(SEALED_AS, row.secret_sealed, ownerOf(row.account_id, row.name)).toString()
      const parts = { client: httpClient, clock, resolve, allow, ...limits }
      return KINDS[row.kind].open(parts, JSON.parse(row.settings_json) as Settings, secret)
    },
  }
}

/** @throws BadRequest */
function checkedSettings(kind: ProviderKind, settings: Settings): Settings {
  const { api_url: url, key_name: key } = settings
  if (url !== undefined && (confidentialUrl(url) === null || /[?\s]/.test(url)))
    throw new BadRequest('Invalid parameter: api_url')
  if (kind !== 'rfc2136') return { ...settings, ...(url && { api_url: url.replace(/\/+$/, '') }) }
  serverOf(settings.server ?? '')
  const name = normalizeName(key ?? '')
  if (name === null) throw new BadRequest('Invalid parameter: key_name')
  return { ...settings, key_name: name, algorithm: settings.algorithm ?? 'hmac-sha256' }
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** A secret is part of a header field, or base64. */
const secretFault = (kind: ProviderKind, secret: string): boolean =>
  kind === 'rfc2136' ? !BASE64.test(secret) : !/^[\x21-\x7e]+$/.test(secret)

export function providerView({ name, kind, settings_json: json, ...row }: DnsProviderRow): ProviderView {
  const settings = JSON.parse(json) as Settings
  return {
    ...{ name, kind },
    server: settings.server ?? null,
    key_name: settings.key_name ?? null,
    algorithm: settings.algorithm ?? null,
    access_key_id: settings.access_key_id ?? null,
    api_url: settings.api_url ?? null,
    created_at: new Date(Number(row.created_at)).toISOString(),
    updated_at: new Date(Number(row.updated_at)).toISOString(),
  }
}
