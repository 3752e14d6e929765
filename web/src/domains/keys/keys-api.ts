/** The operations of the public API that change a domain's keys (docs/api/domain-keys.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import { valueOrThrow } from '../../queries.ts'
import { DOMAINS_KEY } from '../domain-queries.ts'
import type { DomainKey } from '../domains-api.ts'

const segment = encodeURIComponent
const managementPath = (name: string) => `/v1/dkim_management/domains/${segment(name)}`

/** `kind`: algorithm, and for RSA the bits: `rsa 2048`. The key does not sign before it is activated. */
export const createKey = async (authority: string, selector: string, kind: string) => {
  const [algorithm = 'rsa', bits] = kind.split(' ')
  return valueOrThrow(
    await sendForm<DomainKey>('POST', '/v1/dkim/keys', {
      signing_domain: authority,
      selector,
      algorithm,
      ...(bits !== undefined && { bits }),
    }),
  )
}

export const deleteKey = async (authority: string, selector: string) => {
  const query = new URLSearchParams({ signing_domain: authority, selector })
  return valueOrThrow(await sendJson<{ message: string }>('DELETE', `/v1/dkim/keys?${query}`))
}

/** Activation looks up the key's record first. */
export const switchKey = async (authority: string, selector: string, verb: 'activate' | 'deactivate') =>
  valueOrThrow(
    await sendJson<{ message: string }>(
      'PUT',
      `/v4/domains/${segment(authority)}/keys/${segment(selector)}/${verb}`,
    ),
  )

export const renameSelector = async (name: string, selector: string) =>
  valueOrThrow(
    await sendForm<{ message: string }>('PUT', `/v3/domains/${segment(name)}/dkim_selector`, {
      dkim_selector: selector,
    }),
  )

/** `self` false: the nearest parent domain of the account signs, if there is one. */
export const setAuthority = async (name: string, self: boolean) =>
  valueOrThrow(
    await sendForm<{ message: string; changed: boolean }>(
      'PUT',
      `/v3/domains/${segment(name)}/dkim_authority`,
      { self: String(self) },
    ),
  )

/** `interval` empty: no rotation. */
export const setRotation = async (name: string, interval: string) =>
  valueOrThrow(
    await sendForm<object>('PUT', `${managementPath(name)}/rotation`, {
      rotation_enabled: String(interval !== ''),
      ...(interval !== '' && { rotation_interval: interval }),
    }),
  )

export const rotateNow = async (name: string) =>
  valueOrThrow(await sendJson<{ message: string }>('POST', `${managementPath(name)}/rotate`))

export interface KeyRotation {
  state: 'disabled' | 'wait_verify' | 'enabled'
  active_selector: string | null
  rotation_enabled: boolean
  rotation_interval: string
  /** RFC 3339; null: no rotation is planned. */
  next_at: string | null
  /** `publishing`: `selector` is the new key; `retiring`: it is the former one. */
  in_progress: { phase: 'publishing' | 'retiring'; selector: string; until: string } | null
}

const ROTATION_REFRESH_MS = 60_000 // the service takes a step each minute

export const rotationQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'rotation', name],
    queryFn: async ({ signal }) =>
      valueOrThrow(
        await getJson<KeyRotation>(`/sendwright/v1/domains/${segment(name)}/key-rotation`, signal),
      ),
    refetchInterval: ({ state }) => (state.data?.in_progress ? ROTATION_REFRESH_MS : false),
  })
