/** Addresses that the account may be called from (docs/api/accounts.md section 8). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export type CallerAddress = Api.CallerAddress

export const ADDRESSES_KEY = 'caller-addresses'
const PATH = '/v2/ip_whitelist'

export const addressesQuery = queryOptions({
  queryKey: [ADDRESSES_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(PATH, signal)).addresses,
})

/** The address that this browser's session was opened from; null: it belongs to another account, as when acting for one. */
export const ownAddressQuery = queryOptions({
  queryKey: ['own-address'],
  async queryFn({ signal }) {
    const { items } = valueOrThrow(await getJson('/sendwright/v1/sessions', signal))
    return items.find(({ current }) => current)?.remote_address ?? null
  },
})

const send = async (method: 'POST' | 'PUT' | 'DELETE', fields: Readonly<Record<string, string>>) =>
  valueOrThrow(await sendForm(method, PATH, fields))

/** Forced: the page has warned already, and knows more than the check, which does not concern sessions. */
export const addAddress = ({ ip_address, description }: CallerAddress) =>
  send('POST', { address: ip_address.trim(), description, force: 'true' })

export const describeAddress = ({ ip_address, description }: CallerAddress) =>
  send('PUT', { address: ip_address, description })

export const removeAddress = ({ ip_address }: CallerAddress) =>
  send('DELETE', { address: ip_address, force: 'true' })
