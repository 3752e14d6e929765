/** What a domain has in the directory of pods: its name, its tracking host and the host of its return paths. */
import { type Entry, entriesOf, leave } from '../../../platform/store/pods/entries.ts'
import type { DomainRow } from '../../../platform/store/schema.ts'
import type { Store, Tx } from '../../../platform/store/store.ts'

export type Hosts = Pick<DomainRow, 'name' | 'web_prefix' | 'mailfrom_host'>

export const hostEntries = ({ name, web_prefix, mailfrom_host }: Hosts): Entry[] =>
  entriesOf('host', [`${web_prefix}.${name}`, ...(mailfrom_host === name ? [] : [mailfrom_host])])

export const domainEntries = (row: Hosts): Entry[] => [
  ...entriesOf('domain', [row.name]),
  ...hostEntries(row),
]

/** Removes the hosts that no domain has any more. To be called after the change of the domain that had them. */
export async function leaveHosts(store: Store, tx: Tx, former: readonly Entry[]) {
  if (store.pod === null || former.length === 0) return
  const hosts = former.map(({ value }) => value)
  const rows = await tx
    .selectFrom('domains')
    .select(['name', 'web_prefix', 'mailfrom_host'])
    // A tracking host has one label more than its domain.
    .where((eb) =>
      eb.or([
        eb('mailfrom_host', 'in', hosts),
        eb(
          'name',
          'in',
          hosts.map((host) => host.slice(host.indexOf('.') + 1)),
        ),
      ]),
    )
    .execute()
  const kept = new Set(rows.flatMap(hostEntries).map(({ value }) => value))
  await leave(
    store,
    tx,
    former.filter(({ value }) => !kept.has(value)),
  )
}
