/** The operations of the public API that change a domain's keys (docs/api/domain-keys.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { DOMAINS_KEY } from '../domain-queries.ts'

const segment = encodeURIComponent
const managementPath = (name: string) => `/v1/dkim_management/domains/${segment(name)}` as const

/** `kind`: algorithm, and for RSA the bits: `rsa 2048`. The key does not sign before it is activated. */
export const createKey = async (authority: string, selector: string, kind: string) => {
  const [algorithm = 'rsa', bits] = kind.split(' ')
  return valueOrThrow(
    await sendForm('POST', '/v1/dkim/keys', {
      signing_domain: authority,
      selector,
      algorithm,
      ...(bits !== undefined && { bits }),
    }),
  )
}

export const deleteKey = async (authority: string, selector: string) => {
  const query = new URLSearchParams({ signing_domain: authority, selector })
  return valueOrThrow(await sendJson('DELETE', `/v1/dkim/keys?${query}`))
}

/** Activation looks up the key's record first. */
export const switchKey = async (authority: string, selector: string, verb: 'activate' | 'deactivate') =>
  valueOrThrow(await sendJson('PUT', `/v4/domains/${segment(authority)}/keys/${segment(selector)}/${verb}`))

export const renameSelector = async (name: string, selector: string) =>
  valueOrThrow(
    await sendForm('PUT', `/v3/domains/${segment(name)}/dkim_selector`, {
      dkim_selector: selector,
    }),
  )

/** `self` false: the nearest parent domain of the account signs, if there is one. */
export const setAuthority = async (name: string, self: boolean) =>
  valueOrThrow(await sendForm('PUT', `/v3/domains/${segment(name)}/dkim_authority`, { self: String(self) }))

/** `interval` empty: no rotation. */
export const setRotation = async (name: string, interval: string) =>
  valueOrThrow(
    await sendForm('PUT', `${managementPath(name)}/rotation`, {
      rotation_enabled: String(interval !== ''),
      ...(interval !== '' && { rotation_interval: interval }),
    }),
  )

export const rotateNow = async (name: string) =>
  valueOrThrow(await sendJson('POST', `${managementPath(name)}/rotate`))

export type KeyRotation = Api.KeyRotation

const ROTATION_REFRESH_MS = 60_000 // the service takes a step each minute

export const rotationQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'rotation', name],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`/sendwright/v1/domains/${segment(name)}/key-rotation`, signal)),
    refetchInterval: ({ state }) => (state.data?.in_progress ? ROTATION_REFRESH_MS : false),
  })
