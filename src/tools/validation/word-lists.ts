/** The lists of `data/`: domains of disposable mailboxes, and local parts that stand for a role. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Lazy } from '../../base/flow/cache.ts'

const listOf = (name: string) =>
  new Lazy((): ReadonlySet<string> => {
    const text = readFileSync(join(import.meta.dirname, 'data', name), 'utf8')
    return new Set(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')))
  })

/** About 2 MB in memory, read with the first validation. */
const disposable = listOf('disposable-domains.txt')
const roles = listOf('role-names.txt')

/** The domain, or one that it is below of, gives out mailboxes for a few minutes. */
export function isDisposableDomain(domain: string): boolean {
  const domains = disposable.get() as ReadonlySet<string>
  for (let name = domain; name.includes('.'); name = name.slice(name.indexOf('.') + 1))
    if (domains.has(name)) return true
  return false
}

/** The local part names a function instead of a person; what follows a plus sign does not count. */
export function isRoleName(local: string): boolean {
  const [name = ''] = local.toLowerCase().split('+', 1)
  return (roles.get() as ReadonlySet<string>).has(name)
}
