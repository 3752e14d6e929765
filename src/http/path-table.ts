/** Which methods a path has, to tell a 405 from a 404; and paths that look known but are not. */

/** Static heads under /v3 that win over `{domain}` (auth-limits.md section 1, rule 11). */
const RESERVED_HEADS = new Set([
  ...['domains', 'ips', 'ip_pools', 'ip_warmups', 'dynamic_pools', 'routes', 'lists', 'stats'],
])

/** True if the template starts `/v3/{x}` and this x is the head of another resource, never a domain. */
export function isReservedHead(template: string, head: string | undefined): boolean {
  return template.startsWith('/v3/{') && RESERVED_HEADS.has((head ?? '').toLowerCase())
}

export class PathTable {
  /** Templates by their number of parts. */
  private readonly byLength = new Map<number, Array<{ parts: string[]; template: string; method: string }>>()

  add(method: string, template: string): void {
    const parts = template.split('/')
    const rows = this.byLength.get(parts.length) ?? []
    rows.push({ parts, template, method })
    this.byLength.set(parts.length, rows)
  }

  /** Methods of every template that fits the path (without query), HEAD beside GET; empty: unknown path. */
  methodsOf(path: string): string[] {
    const parts = path.split('/')
    const methods = new Set<string>()
    for (const row of this.byLength.get(parts.length) ?? []) {
      const fits = row.parts.every(
        (part, index) => part === parts[index] || (isVariable(part) && parts[index]),
      )
      if (!fits || isReservedHead(row.template, parts[2])) continue
      methods.add(row.method)
      if (row.method === 'GET') methods.add('HEAD')
    }
    return [...methods].sort()
  }
}

const isVariable = (part: string) => part.startsWith('{')
