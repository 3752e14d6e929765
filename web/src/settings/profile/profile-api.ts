/** The operations of the public API about the own user (docs/api/own-operations.md section 7). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { askPasskey, makePasskey } from '../../sign-in/passkey-client.ts'

const ME = '/sendwright/v1/me'
/** Begins all keys below: a change of one may change the others. */
export const PROFILE_KEY = 'own-profile'

export type Profile = Api.OwnProfile
export type Passkey = Api.Passkey
export type OwnSession = Api.BrowserSession

export const profileQuery = queryOptions({
  queryKey: [PROFILE_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(ME, signal)),
})

export const passkeysQuery = queryOptions({
  queryKey: [PROFILE_KEY, 'passkeys'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${ME}/passkeys`, signal)),
})

export const ownSessionsQuery = queryOptions({
  queryKey: [PROFILE_KEY, 'sessions'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${ME}/sessions`, signal)).items,
})

export const changeProfile = async (
  changes: Pick<Profile, 'name'> & { language: string; time_zone: string },
) => valueOrThrow(await sendJson('PUT', ME, changes))

export const changePassword = async (password: string) =>
  valueOrThrow(await sendJson('PUT', `${ME}/password`, { password }))

export const beginApp = async () => valueOrThrow(await sendJson('POST', `${ME}/totp`))

export const confirmApp = async (code: string) =>
  valueOrThrow(await sendJson('PUT', `${ME}/totp`, { code })).recovery_codes

export const removeApp = async () => valueOrThrow(await sendJson('DELETE', `${ME}/totp`))

export const renewCodes = async () =>
  valueOrThrow(await sendJson('POST', `${ME}/recovery-codes`)).recovery_codes

export const beginPasskey = async () => valueOrThrow(await sendJson('POST', `${ME}/passkeys/options`))

/** The browser asks its user. */
export const addPasskey = async (name: string, options: Api.PasskeyCreation) =>
  valueOrThrow(await sendJson('POST', `${ME}/passkeys`, { name, passkey: await makePasskey(options) }))

export const renamePasskey = async (id: string, name: string) =>
  valueOrThrow(await sendJson('PUT', `${ME}/passkeys/${encodeURIComponent(id)}`, { name }))

export const removePasskey = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `${ME}/passkeys/${encodeURIComponent(id)}`))

export const endSession = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `${ME}/sessions/${encodeURIComponent(id)}`))

export const endOtherSessions = async () =>
  valueOrThrow(await sendJson('DELETE', `${ME}/sessions?keep_current=true`))

export const proveByPassword = async (password: string, code: string) =>
  valueOrThrow(await sendJson('POST', `${ME}/proof`, { current_password: password, code }))

/** The browser asks its user. */
export async function proveByPasskey() {
  const { passkey } = valueOrThrow(await sendJson('POST', `${ME}/proof/options`))
  if (passkey === null) throw new Error('There is no passkey')
  return valueOrThrow(await sendJson('POST', `${ME}/proof`, { passkey: await askPasskey(passkey) }))
}
